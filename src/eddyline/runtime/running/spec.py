"""The spec of a job: text from which other processes can work on it. It has the script, columns, settings and folders.

Every process with the same spec makes the same query, the same split and the same sinks. The spec includes the columns
of the sources, because only the driver looks them up (in files, in a DataFrame), once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from eddyline.bound.bind import bind
from eddyline.bound.model import BoundQuery
from eddyline.bound.udf import Udf, called
from eddyline.cql.declaration import Declaration
from eddyline.cql.places import Place
from eddyline.cql.script import Script, parse
from eddyline.engine.plan_source import MakePlanSource
from eddyline.engine.planner import plan_source
from eddyline.protocol.home import Home, checkpoint_at
from eddyline.protocol.outlet import RESULTS, Outlet
from eddyline.protocol.packing import REASON
from eddyline.runtime.access.job_lookups import lookups_of
from eddyline.runtime.formats import read_whole
from eddyline.runtime.options import Options
from eddyline.runtime.running.handed_over import folder_of
from eddyline.runtime.running.modules import import_all
from eddyline.runtime.running.schemas import schema_of
from eddyline.runtime.sinks.batches import BatchFiles, HandOver, PassOn
from eddyline.runtime.sinks.files import FileOptions, writes_files
from eddyline.runtime.sinks.sink import Sink
from eddyline.runtime.sources.source import dead_rows, dead_schema
from eddyline.settings import Settings
from eddyline.state.log.labelled import LabelledFiles
from eddyline.state.log.store import Store

AnySink = BatchFiles | HandOver | PassOn

Give = Callable[[Outlet, int, Sequence[str]], None]
"""Takes (outlet, batch, files): rows for a sink that does not write files itself."""

_plans: MakePlanSource = plan_source


def plan_by(plans: MakePlanSource) -> None:
    """From now on these are the plan sources of the slots of all homes that this process makes. For tests."""
    global _plans
    _plans = plans


@dataclass(frozen=True)
class Spec:
    """Everything that a process needs to know about a job."""

    text: str
    schemas: Mapping[str, str]
    """By stream or table, its columns (runtime/running/schemas.py)."""
    given: Mapping[str, tuple[str | None, int]]
    """Streams and tables that the script does not declare: time column and lateness."""
    settings: Mapping[str, Any]
    modules: Sequence[str]
    """Modules with user functions, by name."""
    files: Mapping[str, str]
    """Files with user functions: their texts, by path."""
    checkpoint: str
    arenas: str | None
    """The folder that holds the state of slots between turns; None: slots stay in the process."""
    anywhere: bool
    """Whether slots may be on other hosts than the driver; they then make the folder of arenas there."""
    slots: int
    job: str
    """The id of the job in the names of its files (runtime/sinks/folder.py)."""

    def as_json(self) -> str:
        """Serialise for another process."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def script(self) -> Script:
        """The script, with declarations for the streams and tables that Python hands over."""
        script = parse(self.text)
        start = Place(1, 1)
        extra = []
        for name, (time, late) in self.given.items():
            kind, path = "TABLE" if time is None else "STREAM", folder_of(self.checkpoint, name)
            extra.append(Declaration(kind, name, None, "parquet", {"path": path}, time, late, None, None, start))
        return Script(**{**script.__dict__, "declarations": (*map(read_whole, script.declarations), *extra)})

    def schema(self, name: str) -> pa.Schema:
        """The columns of a stream or table."""
        return schema_of(self.schemas[name.lower()])

    @property
    def query(self) -> BoundQuery:
        """The bound query."""
        return bind(self.script, lambda declaration: self.schema(declaration.name))

    def sinks(
        self, query: BoundQuery, give: Give | None = None, sink: Callable[[Outlet], Sink] | None = None
    ) -> dict[Outlet, AnySink]:
        """The sink of each outlet that has one. `give` gets the rows for sinks that do not write files, when they are
        published. If it is known which `sink` an outlet has, rows are written to it at once instead."""
        script = self.script
        declared = {d.name.lower(): d for d in script.declarations if d.kind == "SINK"}
        wanted = {RESULTS: (script.insert_into, query.schema)}
        for name in {s.stream.name for s in query.sources}:
            declaration = next(d for d in script.declarations if d.kind != "SINK" and d.name.lower() == name.lower())
            if declaration.late_into is not None:
                wanted[Outlet("late", name)] = (declaration.late_into, self.schema(name))
            if declaration.dead_into is not None:
                wanted[Outlet("dead", name)] = (declaration.dead_into, dead_schema(self.schema(name)))
        made: dict[Outlet, AnySink] = {}
        for outlet, (into, schema) in wanted.items():
            found = None if into is None else declared[into.lower()]
            if found is not None and writes_files(found):
                options = FileOptions.read(found.format, Options.of(found), found.partition_by)
                made[outlet] = BatchFiles(options, schema, self.job)
            elif sink is not None:
                made[outlet] = PassOn(schema, sink(outlet).write)
            else:
                folder = f"staged/{outlet.name}"
                made[outlet] = HandOver(LabelledFiles(Store(self.checkpoint)), folder, schema, _giver(give, outlet))
        return made

    def home(self, query: BoundQuery, sinks: Mapping[Outlet, AnySink]) -> Home:
        """A new home of the slots; results are staged in these sinks."""

        def stage(outlet: Outlet, name: str, batches: Sequence[pa.RecordBatch]) -> list[str]:
            if outlet not in sinks:
                return []
            if outlet.kind == "dead":
                batches = [as_dead_rows(self.schema(outlet.stream), batch) for batch in batches]
            return sinks[outlet].stage(name, batches)

        checkpoint, settings = checkpoint_at(self.checkpoint), Settings(**self.settings)
        lookups = lookups_of(query, self.script.declarations)
        where = self.slots, checkpoint, self.arenas, stage, self.anywhere
        return Home(query, settings, *where, _plans, lookups=lookups)


def _giver(give: Give | None, outlet: Outlet) -> Callable[[int, Sequence[str]], None]:
    return lambda batch, files: None if give is None else give(outlet, batch, files)


def home_of(text: str) -> tuple[Spec, Home]:
    """The spec that `as_json` serialised, and the home of its slots. Both are made once in a process, and again when
    user functions are redefined."""
    spec = Spec(**json.loads(text))
    import_all(spec.modules, spec.files)
    return _home_of(text, tuple(called(spec.text)))


@lru_cache(maxsize=4)
def _home_of(text: str, functions: tuple[Udf, ...]) -> tuple[Spec, Home]:
    spec = Spec(**json.loads(text))
    query = spec.query
    return spec, spec.home(query, spec.sinks(query))


def as_dead_rows(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Dead rows in the form of their sink. Rows that the split found dead have the columns of the stream and a
    reason."""
    if batch.schema.names[-1] != REASON:
        return batch
    return dead_rows(schema, batch, batch.column(REASON))
