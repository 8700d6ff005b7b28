"""Our own formats as a Spark source: the readers of the local engine read them, and the same task packs the rows.

Rows never pass through the JVM: Spark sees only parcels. A stream is read in pieces (row groups, files, blocks of
generated rows); the next piece is always of the stream that is furthest behind. A source with offsets of its own
(`OffsetSource`) gets an equal share of the batch, and divides it itself.

For every job Spark starts a Python process that plans its batches, and this process imports this module. So only tasks
import the engine, and planning gets what it needs of the sources as an option, without the query (`sources_option`).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from eddyline.faults import reach

if TYPE_CHECKING:
    import pyarrow as pa

    from eddyline.engine.tally import FilePlace
    from eddyline.protocol.packing import Packed
    from eddyline.runtime.running.spec import Spec
    from eddyline.runtime.sources.file_progress import FileProgress
    from eddyline.runtime.sources.source import Piece

PACKED_DDL = "slot int, blob binary"


@dataclass
class PiecesOfTask(InputPartition):
    """Pieces of streams that one task reads."""

    pieces: Sequence[tuple[str, Piece]]
    number: int


def _place(piece: Piece) -> FilePlace:
    from eddyline.engine.tally import FilePlace

    return FilePlace(tuple(os.fsencode(part) for part in Path(piece.file.path).parts), piece.group)


class EddylineFiles(DataSource):
    """The Spark source of one job; its options are the job's spec and the tables (read once) or streams to read."""

    def schema(self) -> str:
        return PACKED_DDL

    def reader(self, schema: Any) -> DataSourceReader:
        return TableReader(self.options)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return StreamFiles(self.options)


def source_of(name: str) -> type[EddylineFiles]:
    """The source under a name that is unique in the session. When Spark starts to read, it changes the environment of
    the source, a map; jobs that begin at the same time would break a shared one for each other."""
    return type("EddylineFiles", (EddylineFiles,), {"name": classmethod(lambda cls: name)})


def sources_option(spec: Spec, streams: Mapping[str, str | None]) -> str:
    """The option with what planning needs of streams and tables, which are given with their time columns."""
    declared = {d.name.lower(): d for d in spec.script.declarations if d.kind != "SINK"}
    known = {}
    for name, time in streams.items():
        d = declared[name.lower()]
        options = dict(d.options)
        if d.format == "csv" and d.columns is None and options.get("header", "auto").lower() == "auto":
            options["header"] = "true"  # the columns came from a header, but tasks get them as declared columns
        known[name] = [d.kind, d.format, options, spec.schemas[name.lower()], time, spec.settings["seed"]]
    return json.dumps(known)


class _Reading:
    """Reads and packs pieces."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._text = options["spec"]
        self._known: dict[str, Any] = json.loads(options["sources"])
        self._follow = options["follow"] == "true"
        self._tasks = int(options["tasks"])

    def _source(self, name: str) -> Any:
        from eddyline.cql.declaration import Declaration
        from eddyline.cql.places import Place
        from eddyline.runtime.formats import open_source
        from eddyline.runtime.running.schemas import schema_of

        kind, format_, options, schema, time, seed = self._known[name]
        columns = tuple((field.name, field.type) for field in schema_of(schema))
        declaration = Declaration(kind, name, columns, format_, options, time, 0, None, None, Place(1, 1))
        return open_source(declaration, seed, self._follow, checked=True)

    def _parts(self, pieces: Sequence[tuple[str, Piece]]) -> list[PiecesOfTask]:
        """Divide the pieces into one part for each task, with about the same number of rows."""
        loads: list[list[tuple[str, Piece]]] = [[] for _ in range(self._tasks)]
        sizes = [0] * self._tasks
        for name, piece in sorted(pieces, key=lambda p: -p[1].rows):
            least = sizes.index(min(sizes))
            loads[least].append((name, piece))
            sizes[least] += piece.rows
        return [PiecesOfTask(load, number) for number, load in enumerate(loads) if load]

    def _packed(self, part: PiecesOfTask, batch: int) -> Iterator[pa.RecordBatch]:
        from eddyline.protocol.outlet import Outlet
        from eddyline.protocol.packing import Packer
        from eddyline.runtime.sources.source import Piece, Wanted
        from eddyline.spark.functions import home_in_task
        from eddyline.spark.tasks import as_rows, decision_of

        spec, home = home_in_task(self._text)
        reach("spark: pieces are to be read")
        packer = Packer(home, decision_of(home, batch), part.number)
        sinks = spec.sinks(home.query)

        def parcels() -> Iterator[Packed]:
            for name, piece in part.pieces:
                source = self._source(name)
                packer.at(_place(piece) if isinstance(piece, Piece) else None)
                everything = Outlet("late", name) in sinks or Outlet("dead", name) in sinks
                needed = home.split.streams[name].read_for(home.split.needed[name])
                wanted = Wanted.of(source.schema, needed, everything)
                for chunk in source.read_piece(piece, wanted):
                    if chunk.dead is not None:
                        yield from packer.dead(name, chunk.dead)
                    if chunk.rows.num_rows:
                        yield from packer.rows(name, chunk.rows)
            yield from packer.finish()

        yield from as_rows(parcels())
        reach("spark: pieces are read")


class TableReader(_Reading, DataSourceReader):
    """Reads whole tables."""

    def partitions(self) -> Sequence[InputPartition]:
        from eddyline.runtime.sources.source import Files

        found = []
        for name in self._known:
            source = self._source(name)
            if isinstance(source, Files):
                found += [(name, piece) for file in source.found() for piece in source.pieces(file)]
            else:
                found += [(name, piece) for piece in source.pieces()]
        return self._parts(found)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, PiecesOfTask)
        return self._packed(partition, 0)


class StreamFiles(_Reading, DataSourceStreamReader):
    """Reads streams batch by batch. runtime/sources/file_progress.py records how far a stream of files was read."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._files: dict[str, FileProgress] = {}
        self._with_offsets: dict[str, Any] = {}
        self._looked = False
        self._newest: dict[str, float] = {}
        """For each stream how far its last planned piece reaches."""
        self._rows_file, self._checkpoint, self._run = options["rows_file"], options["checkpoint"], options["run"]

    def _open(self) -> None:
        """Open the sources, once, in the process that plans batches; tasks do not need them open."""
        from eddyline.runtime.sources.file_progress import FileProgress
        from eddyline.runtime.sources.source import OffsetSource
        from eddyline.state.log.labelled import LabelledFiles
        from eddyline.state.log.store import Store

        if self._files or self._with_offsets:
            return
        checkpoint = LabelledFiles(Store(self._checkpoint))
        for name in sorted(self._known):
            source = self._source(name)
            if isinstance(source, OffsetSource):
                self._with_offsets[name] = source
            else:
                self._files[name] = FileProgress(source, checkpoint, name, self._known[name][4])

    def initialOffset(self) -> dict[str, Any]:
        self._open()
        streams: dict[str, Any] = {name: [0, 0] for name in self._files} | {name: {} for name in self._with_offsets}
        return {"streams": streams, "unread": [], "backlog": 0, "ended": False, "run": "", "waits": 0}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """Plan the next batch: pieces of the stream that is furthest behind, until there are enough rows. `unread`
        names the streams with remaining pieces, `backlog` is about how many rows remain; `ended` says that this `run`
        sees no more rows; `waits` is the last batch after which rows waited for answers: then a batch follows, with
        new rows or without."""
        self._open()
        if not self._looked or self._follow:
            for files in self._files.values():
                files.look()
            self._looked = True
        with open(self._rows_file, encoding="utf-8") as file:
            most, waits = map(int, file.read().split())
        before = start["streams"]
        shares = self._shares(most)
        planned = {name: source.plan(before[name], shares[name]) for name, source in self._with_offsets.items()}
        most -= sum(shares.values())
        pieces, rows = {name: files.unread(before[name]) for name, files in self._files.items()}, 0
        timed = all(piece.newest is not None for some in pieces.values() for piece in some)
        at = dict.fromkeys(pieces, 0)

        def behind(name: str) -> float:
            """How far a stream was read: by event time if that is known for all streams, else by the share of its
            pieces."""
            if not timed:
                read = before[name][0]
                return float((read + at[name]) / (read + len(pieces[name])))
            newest = pieces[name][at[name] - 1].newest if at[name] else None
            return self._newest.get(name, -math.inf) if newest is None else newest

        while going := [name for name in pieces if at[name] < len(pieces[name])]:
            name = min(going, key=behind)
            next_rows = pieces[name][at[name]].rows
            if rows and rows + next_rows / 2 > most:
                break
            rows += next_rows
            at[name] += 1
        self._newest = {name: behind(name) for name in pieces} if timed else {}
        end = {name: files.after(before[name], pieces[name][: at[name]]) for name, files in self._files.items()}
        ended = (
            not going
            and not self._follow
            and all(source.ended(planned[name]) for name, source in self._with_offsets.items())
        )
        if end | planned == before and waits <= start.get("waits", 0):
            return start
        backlog = sum(piece.rows for name in going for piece in pieces[name][at[name] :])
        backlog += sum(source.backlog(planned[name]) for name, source in self._with_offsets.items())
        told = {"unread": going, "backlog": backlog, "ended": ended, "run": self._run, "waits": waits}
        return {"streams": end | planned, **told}

    def _shares(self, most: int) -> dict[str, int]:
        """The rows of a batch of each source with offsets: an equal share, but sources that know their rates divide
        their shares by them, so that none runs ahead of another."""
        share = most / len(self._known)
        rates = {name: getattr(source, "rate", 0.0) for name, source in self._with_offsets.items()}
        rated, whole = sum(rate > 0 for rate in rates.values()), sum(rates.values())
        return {name: max(1, int(share * rated * rate / whole if rate else share)) for name, rate in rates.items()}

    def _is_done(self, end: dict[str, Any]) -> bool:
        """Whether the batch that ends at this offset, which an earlier run planned, was committed."""
        from eddyline.protocol.checkpoint import Checkpoint
        from eddyline.state.log.store import Store

        commit = Checkpoint(Store(self._checkpoint)).last()
        if commit is None or commit.finished or not isinstance(commit.offsets, list):
            return commit is not None and commit.finished
        return bool(json.loads(commit.offsets[0]) == end)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._open()
        begin, until = start["streams"], end["streams"]
        if end["run"] != self._run and not self._is_done(end):
            for name, files in self._files.items():
                files.look()
                files.see_anew(begin[name], until[name])
        chosen = []
        for name, source in {**self._files, **self._with_offsets}.items():
            chosen += [(name, piece) for piece in source.between(begin[name], until[name])]
        return self._parts(chosen)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from eddyline.spark.tasks import current_batch

        assert isinstance(partition, PiecesOfTask)
        return self._packed(partition, current_batch())

    def commit(self, end: dict[str, Any]) -> None:
        pass

    def stop(self) -> None:
        for source in self._with_offsets.values():
            source.close()
