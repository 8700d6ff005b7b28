"""Files as a Spark source: parquet, csv and json, read by the readers of the local engine and packed in the same task.

Rows never pass through the JVM: what Spark sees are parcels. A stream is read in pieces (row groups, files, blocks of
generated rows), in the order of their names; streams are read side by side, always the one that is furthest behind.
A source with offsets of its own (a log) gets an equal share of the batch, and cuts it itself.

Spark starts a process for every job that plans its batches, and it imports this module. So the engine is imported by
tasks only, and what planning needs to know of the sources comes as an option, without the query (`sources_option`).
"""

from __future__ import annotations

import json
import math
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from eddyline.faults import reach

if TYPE_CHECKING:
    import pyarrow as pa

    from eddyline.engine.packing import Packed
    from eddyline.runtime.sources.source import Piece
    from eddyline.runtime.spec import Spec

PACKED_DDL = "slot int, blob binary"


@dataclass
class Part(InputPartition):
    """Pieces of streams that one task reads."""

    pieces: Sequence[tuple[str, Piece]]
    number: int


class EddylineFiles(DataSource):
    """Reads for one job; its options are the job's spec and which tables (once) or streams to read."""

    def schema(self) -> str:
        return PACKED_DDL

    def reader(self, schema: Any) -> DataSourceReader:
        return TableReader(self.options)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return StreamFiles(self.options)


def source_of(name: str) -> type[EddylineFiles]:
    """The source under a name that no other job of the session has: Spark changes the environment of a source, one
    map, when it starts to read, and jobs that begin together would break it for each other."""
    return type("EddylineFiles", (EddylineFiles,), {"name": classmethod(lambda cls: name)})


def sources_option(spec: Spec, streams: Mapping[str, str | None]) -> str:
    """What planning needs to know of streams and tables, which are given with their time columns."""
    declared = {d.name.lower(): d for d in spec.script.declarations if d.kind != "SINK"}
    known = {}
    for name, time in streams.items():
        d = declared[name.lower()]
        options = dict(d.options)
        if d.format == "csv" and d.columns is None and options.get("header", "auto").lower() == "auto":
            options["header"] = "true"  # tasks take the columns for declared ones, and these came from a header
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
        from eddyline.runtime.schemas import schema_of

        kind, format_, options, schema, time, seed = self._known[name]
        columns = tuple((field.name, field.type) for field in schema_of(schema))
        declaration = Declaration(kind, name, columns, format_, options, time, 0, None, None, Place(1, 1))
        return open_source(declaration, seed, self._follow, checked=True)

    def _parts(self, pieces: Sequence[tuple[str, Piece]]) -> list[Part]:
        """About the same rows for every task."""
        loads: list[list[tuple[str, Piece]]] = [[] for _ in range(self._tasks)]
        sizes = [0] * self._tasks
        for name, piece in sorted(pieces, key=lambda p: -p[1].rows):
            least = sizes.index(min(sizes))
            loads[least].append((name, piece))
            sizes[least] += piece.rows
        return [Part(load, number) for number, load in enumerate(loads) if load]

    def _packed(self, part: Part, batch: int) -> Iterator[pa.RecordBatch]:
        from eddyline.engine.packing import Packer
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
                packer.at((Path(piece.path).parts, piece.group) if isinstance(piece, Piece) else None)
                everything = f"late {name}" in sinks or f"dead {name}" in sinks
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
    """Tables, whole."""

    def partitions(self) -> Sequence[InputPartition]:
        return self._parts([(name, piece) for name in self._known for piece in self._source(name).pieces()])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        return self._packed(partition, 0)


class StreamFiles(_Reading, DataSourceStreamReader):
    """Streams, a batch at a time. How far a stream was read is the name of its last piece: what sorts after it is to
    come, so new files must have later names."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._opened: dict[str, Any] = {}
        self._pieces: dict[str, list[Piece]] = {}
        self._timed = False
        self._rows_file = options["rows_file"]

    @property
    def _logs(self) -> dict[str, Any]:
        """Sources with offsets of their own. Each is opened once, where batches are planned: tasks get none of it."""
        if not self._opened:
            self._opened = {name: self._source(name) for name in self._known}
        return {name: source for name, source in self._opened.items() if hasattr(source, "plan")}

    def _look(self) -> None:
        """What there is to read now."""
        files = self._known.keys() - self._logs.keys()
        self._pieces = {name: self._source(name).pieces(self._known[name][4]) for name in sorted(files)}
        self._timed = all(piece.newest is not None for pieces in self._pieces.values() for piece in pieces)

    def _place(self, name: str, offset: str) -> int:
        """How many pieces come no later than the one that is named."""
        pieces = self._pieces[name]
        return bisect_right(pieces, _order(offset), key=lambda p: _order(self._named(name, p))) if offset else 0

    def _named(self, name: str, piece: Piece) -> str:
        """The name of a piece in an offset: that of its file in the folder that is read, however that is written."""
        from eddyline.runtime.sources.paths import folder_of

        path = os.path.relpath(piece.path, folder_of(self._known[name][2]["path"])) if piece.path else ""
        return f"{path}#{piece.group}"

    def initialOffset(self) -> dict[str, Any]:
        streams: dict[str, Any] = dict.fromkeys(self._known, "") | {name: {} for name in self._logs}
        return {"streams": streams, "unread": [], "ended": False}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """The next pieces: always of the stream that is furthest behind, until there are enough rows. `unread` are the
        streams of which some are left."""
        if not self._pieces or self._follow:
            self._look()
        with open(self._rows_file, encoding="utf-8") as file:
            most = int(file.read())
        share = max(1, most // len(self._known))
        before = start["streams"]
        logs = {name: log.plan(before[name], share) for name, log in self._logs.items()}
        most -= share * len(logs)
        pieces, rows = self._pieces, 0
        at = {name: self._place(name, before[name]) for name in pieces}
        while going := [name for name in pieces if at[name] < len(pieces[name])]:
            name = min(going, key=lambda name: self._behind(name, at[name]))
            next_rows = pieces[name][at[name]].rows
            if rows and rows + next_rows / 2 > most:
                break
            rows += next_rows
            at[name] += 1
        end = {name: self._named(name, pieces[name][at[name] - 1]) if at[name] else "" for name in pieces}
        ended = not going and not self._follow and all(log.ended(logs[name]) for name, log in self._logs.items())
        return {"streams": end | logs, "unread": going, "ended": ended}

    def _behind(self, name: str, at: int) -> float:
        """How far a stream has come: by event time where that is known of all, else by the share that was read."""
        if self._timed:
            return -math.inf if at == 0 else float(self._pieces[name][at - 1].newest or 0)
        return at / len(self._pieces[name])

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if not self._pieces:
            self._look()
        begin, until = start["streams"], end["streams"]
        chosen = []
        for name, pieces in self._pieces.items():
            chosen += [(name, p) for p in pieces[self._place(name, begin[name]) : self._place(name, until[name])]]
        for name, log in self._logs.items():
            chosen += [(name, p) for p in log.between(begin[name], until[name])]
        return self._parts(chosen)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from eddyline.spark.tasks import current_batch

        assert isinstance(partition, Part)
        return self._packed(partition, current_batch())

    def commit(self, end: dict[str, Any]) -> None:
        pass

    def stop(self) -> None:
        for log in self._logs.values() if self._opened else ():
            log.close()


def _order(name: str) -> tuple[tuple[str, ...], int]:
    """Pieces are in the order of their files' paths."""
    path, _, group = name.rpartition("#")
    return Path(path).parts, int(group)
