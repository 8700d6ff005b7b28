"""Prepares a script to run on the local engine: binds the query, opens sources and checks sinks.

Everything that can be refused is refused here, before a row is read, with the place in the script if there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

from eddyline.bound.bind import bind
from eddyline.bound.model import BoundQuery, BoundStream
from eddyline.cql.declaration import Declaration
from eddyline.cql.names import did_you_mean
from eddyline.cql.places import Place, wrong
from eddyline.cql.script import Script, parse
from eddyline.errors import EddylineError, ScriptError, SettingError
from eddyline.protocol.checkpoint import Checkpoint
from eddyline.runtime.formats import check_asked, open_sink, open_source, read_whole
from eddyline.runtime.secrets import check_no_secret
from eddyline.runtime.sinks.print_rows import PrintSink
from eddyline.runtime.sinks.sink import Sink
from eddyline.runtime.sources.paths import nested, overlap
from eddyline.runtime.sources.source import KnownById, Source, Wanted, dead_schema
from eddyline.state.log.store import Store

Opener = Callable[[Declaration, int], Source]
"""Opens the source of a declaration. The number is the seed of everything random."""
SinkOpener = Callable[[Declaration, pa.Schema, TextIO], Sink]
"""Opens the sink of a declaration, for rows of a schema."""


class ColumnsUnknown(EddylineError):
    """Raised by an opener for a source whose columns it cannot know yet."""


@dataclass(frozen=True)
class GivenInput:
    """A stream or table that a Python program hands over beside the script."""

    source: Source
    time: str | None = None
    lateness: int = 0


@dataclass(frozen=True)
class JobInput:
    """A stream or table of the query, the columns to read, and the sinks of its late and dead rows."""

    name: str
    source: Source
    time: str | None
    """The time column, or the expression as it was declared; None for a table."""
    lateness: int
    wanted: Wanted
    stream: BoundStream
    late: Sink | None = None
    dead: Sink | None = None


def check_same(inputs: Iterable[JobInput], offsets: Mapping[str, Any]) -> None:
    """JobError if what was read up to these offsets, by stream, is not what the job had read before them."""
    for i in inputs:
        if i.name in offsets and isinstance(i.source, KnownById):
            i.source.check_same(offsets[i.name])


@dataclass(frozen=True)
class AskedTable:
    """A table of the query that is asked for its rows: it has access methods, and no source."""

    declaration: Declaration
    stream: BoundStream
    columns: tuple[str, ...]
    """The columns that the query uses and those of all indexes, in the order of the table."""
    dead: Sink | None = None
    """The sink of lookups that finally fail."""

    @property
    def schema(self) -> pa.Schema:
        """The declared columns."""
        return pa.schema(self.declaration.columns)


@dataclass(frozen=True)
class Job:
    """Everything that a runner needs. `inputs` and `asked` have each stream or table once, however many aliases it
    has."""

    text: str
    """The script."""
    query: BoundQuery
    inputs: tuple[JobInput, ...]
    sink: Sink
    asked: tuple[AskedTable, ...] = ()

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """Every sink of the job."""
        more = (*(s for i in self.inputs for s in (i.late, i.dead)), *(table.dead for table in self.asked))
        return (self.sink, *(s for s in more if s is not None))


def prepare(
    text: str,
    given: Mapping[str, GivenInput] | None = None,
    sink: Sink | None = None,
    seed: int = 0,
    out: TextIO | None = None,
    opener: Opener = open_source,
    sink_opener: SinkOpener = open_sink,
    checkpoint: str | None = None,
) -> Job:
    """Makes the job that a script describes; raises ScriptError if the script is wrong.

    `given` are streams and tables from Python. `sink` takes the rows of a bare SELECT; by default they are printed to
    `out`. `opener` and `sink_opener` make sources and sinks. A job that continues from its `checkpoint` may find
    results in its sinks.
    """
    out = out or sys.stdout
    catalog = _Catalog(text, given, seed, opener)
    query = catalog.bind()
    read = [catalog.declaration(s.stream.name) for s in query.sources]
    sinks = _Sinks(catalog.script, out, read, sink_opener, checkpoint)
    inputs, asked = [], []
    for stream in {s.stream.name: s.stream for s in query.sources}.values():
        declaration = catalog.declaration(stream.name)
        needed = {
            c for i, s in enumerate(query.sources) if s.stream.name == stream.name for c in query.columns_of_source(i)
        }
        if stream.is_asked:
            needed |= {column for method in stream.methods for column in method.columns}
            dead = sinks.open(declaration.dead_into, dead_schema(pa.schema(declaration.columns)), declaration.place)
            asked.append(AskedTable(declaration, stream, stream.read_for(needed), dead))
            continue
        source = catalog.source(stream.name)
        if source.endless and (stream.is_table or (query.group is not None and query.group.slide is None)):
            what = "a table is read whole" if stream.is_table else "an aggregate without SLIDE is emitted at the end"
            raise wrong(
                catalog.script.text,
                declaration.place,
                f"{what}, and {stream.name} never ends; give it rows or a duration",
            )
        plain = pa.schema([(field.name, field.type) for field in source.schema])  # without notes of the inference
        late = sinks.open(declaration.late_into, plain, declaration.place)
        dead = sinks.open(declaration.dead_into, dead_schema(source.schema), declaration.place)
        needed |= set() if stream.time is None else {stream.time}
        wanted = Wanted.of(source.schema, stream.read_for(needed), late is not None or dead is not None)
        time = stream.time if stream.computed is None else declaration.time
        inputs.append(JobInput(stream.name, source, time, stream.lateness, wanted, stream, late, dead))
    into = catalog.script.insert_into
    if into is not None and sink is not None:
        raise SettingError(f"the rows go INTO {into}; leave out either INSERT INTO or the sink")
    result = sinks.open(into, query.schema, catalog.script.insert_place) or sink or PrintSink(out, query.schema)
    return Job(text, query, tuple(inputs), result, tuple(asked))


def explain(
    text: str, given: Mapping[str, GivenInput] | None = None, seed: int = 0, opener: Opener = open_source
) -> BoundQuery:
    """The bound query of a script; sinks are not checked."""
    return _Catalog(text, given, seed, opener).bind()


def check_without_columns(
    text: str, seed: int, opener: Opener, sink_opener: SinkOpener, checkpoint: str | None
) -> tuple[str, ...]:
    """Checks everything that does not need the columns of the sources for which `opener` raises ColumnsUnknown: the
    other sources, and the options and folders of sinks. Returns the names of the sources with unknown columns."""
    catalog, unknown = _Catalog(text, None, seed, opener), []
    script = catalog.script
    declared = {d.name.lower(): d for d in script.declarations if d.kind != "SINK"}
    named = dict.fromkeys(item.stream.lower() for item in script.sources)
    read = [declared[name] for name in named if name in declared]
    for declaration in read:
        if declaration.methods:
            catalog.check_asked(declaration)
            continue
        try:
            catalog.source(declaration.name)
        except ColumnsUnknown:
            unknown.append(declaration.name)
    sinks = _Sinks(script, sys.stdout, read, sink_opener, checkpoint)
    for name, place in [(script.insert_into, script.insert_place)] + [
        (into, d.place) for d in read for into in (d.late_into, d.dead_into)
    ]:
        sinks.open(name, pa.schema([]), place)
    return tuple(unknown)


class _Catalog:
    """The declared sources by name (any case); each is opened once, when the binder first asks for its columns."""

    def __init__(self, text: str, given: Mapping[str, GivenInput] | None, seed: int, opener: Opener) -> None:
        """`given` is None if no Python program gives streams."""
        self.script, self._seed, self._opener = _with_given(parse(text), given or {}), seed, opener
        self._python = given is not None
        self._open: dict[str, Source] = {name.lower(): g.source for name, g in (given or {}).items()}

    def bind(self) -> BoundQuery:
        """The query; every table that is asked can be reached."""
        for declaration in self.script.declarations:
            try:
                check_no_secret(declaration)
            except SettingError as error:
                raise _placed(self.script.text, declaration, error) from None
        query = bind(self.script, self._schema_of, self._python)
        asked = dict.fromkeys(s.stream.name for s in query.sources if s.stream.is_asked)
        for name in asked:
            self.check_asked(self.declaration(name))
        if asked:
            from eddyline.plan.reachable import missing_binding, missing_join  # they import compiled kernels

            if (missing := missing_binding(query) or missing_join(query)) is not None:
                source, sentence = missing
                raise wrong(self.script.text, self.script.sources[source].place, sentence)
        return query

    def check_asked(self, declaration: Declaration) -> None:
        try:
            check_asked(declaration)
        except SettingError as error:
            raise _placed(self.script.text, declaration, error) from None

    def declaration(self, name: str) -> Declaration:
        return next(d for d in self.script.declarations if d.kind != "SINK" and d.name.lower() == name.lower())

    def source(self, name: str) -> Source:
        self._schema_of(self.declaration(name))
        return self._open[name.lower()]

    def _schema_of(self, declaration: Declaration) -> pa.Schema:
        key = declaration.name.lower()
        if key not in self._open:
            try:
                self._open[key] = self._opener(declaration, self._seed)
            except SettingError as error:
                raise _placed(self.script.text, declaration, error) from None
        return self._open[key].schema


class _Sinks:
    """The declared sinks by name (any case); each takes the rows of one output."""

    def __init__(
        self, script: Script, out: TextIO, sources: Sequence[Declaration], opener: SinkOpener, checkpoint: str | None
    ) -> None:
        self._script, self._out, self._sources, self._opener = script, out, sources, opener
        self._begins = checkpoint is None or not _begun(checkpoint)
        self._declared = {d.name.lower(): d for d in script.declarations if d.kind == "SINK"}
        self._used: set[str] = set()
        self._paths: dict[Path, str] = {}
        """The paths of the open sinks, as the script writes them."""

    def open(self, name: str | None, schema: pa.Schema, place: Place) -> Sink | None:
        """Opens and checks the sink of that name; None for no name."""
        if name is None:
            return None
        declaration = self._declared.get(name.lower())
        if declaration is None:
            raise wrong(self._script.text, place, f"there is no sink '{name}'{did_you_mean(name, self._declared)}")
        path = declaration.options.get("path")
        folder = None if path is None else Path(path).resolve()
        if name.lower() in self._used or folder in self._paths:
            what = f"sink '{name}'" if name.lower() in self._used else f"the path '{path}'"
            raise wrong(
                self._script.text,
                declaration.place,
                f"{what} is used twice; rows of each kind need a sink of their own",
            )
        self._used.add(name.lower())
        if path is not None and folder is not None:
            for other, written in self._paths.items():
                if nested(folder, other):
                    raise wrong(
                        self._script.text,
                        declaration.place,
                        f"the path '{path}' contains or lies in '{written}', which another sink writes to;"
                        " each sink needs a folder of its own",
                    )
            self._paths[folder] = path
        for source in self._sources:
            for options in (source.options, *(method.options for method in source.methods)):
                read = options.get("path")
                if path and read and overlap(path, read):
                    raise wrong(
                        self._script.text,
                        declaration.place,
                        f"the path '{path}' is, contains or lies in '{read}', which {source.name} is read from;"
                        " results need a folder of their own",
                    )
        try:
            sink = self._opener(declaration, schema, self._out)
            if self._begins:
                sink.check()
        except SettingError as error:
            raise _placed(self._script.text, declaration, error) from None
        return sink


def _begun(checkpoint: str) -> bool:
    """Whether a job has begun with this checkpoint; JobError or SettingError for a folder that cannot be one."""
    found = Checkpoint(Store(checkpoint))
    found.check(None)
    return found.begun


def _placed(text: str, declaration: Declaration, error: SettingError) -> ScriptError:
    """The error of a declaration, with the place of its wrong part."""
    return wrong(text, declaration.places.get(error.at, declaration.place), str(error))


def _with_given(script: Script, given: Mapping[str, GivenInput]) -> Script:
    """The script with declarations for the streams and tables that Python hands over. Methods are those of tables that
    are asked."""
    declared = {d.name.lower() for d in script.declarations}
    for name in given:
        if name.lower() in declared:
            raise SettingError(f"{name} is declared in the script and given from Python; leave one out")
    extra = tuple(
        Declaration(
            "TABLE" if g.time is None else "STREAM",
            name,
            None,
            "python",
            {},
            g.time,
            g.lateness,
            None,
            None,
            Place(1, 1),
        )
        for name, g in given.items()
    )
    return replace(script, declarations=(*map(read_whole, script.declarations), *extra))
