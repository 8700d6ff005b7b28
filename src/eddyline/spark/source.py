"""Files as a Spark source: parquet, csv and json, read by the readers of the local engine and packed in the same task.

Rows never pass through the JVM: what Spark sees are parcels. The offset is how many pieces (row groups, files) of each
stream were read, in the order of their names; streams are read side by side, each by the same share of what it has.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from eddyline.engine.packing import Packed, Packer
from eddyline.runtime.formats import open_source
from eddyline.runtime.sources.source import Piece, Pieces, Wanted
from eddyline.runtime.spec import Spec, home_of
from eddyline.spark.tasks import PACKED_DDL, as_rows, current_batch, decision_of

NATIVE = ("parquet", "csv", "json", "generate")
"""Formats that are read here, without the JVM."""


@dataclass
class Part(InputPartition):
    """Pieces of streams that one task reads."""

    pieces: Sequence[tuple[str, Piece]]
    number: int


class EddylineFiles(DataSource):
    """The source `eddyline`; its options are the job's spec and which tables (once) or streams to read."""

    @classmethod
    def name(cls) -> str:
        return "eddyline"

    def schema(self) -> str:
        return PACKED_DDL

    def reader(self, schema: Any) -> DataSourceReader:
        return TableReader(self.options)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return StreamFiles(self.options)


class _Reading:
    """Reads and packs pieces."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._text = options["spec"]
        self._names = json.loads(options["streams"])
        self._tasks = int(options["tasks"])

    def _source(self, name: str) -> Pieces:
        spec = Spec(**json.loads(self._text))
        declaration = next(d for d in spec.script.declarations if d.kind != "SINK" and d.name.lower() == name.lower())
        if declaration.columns is None:
            schema = spec.schema(name)
            declaration = type(declaration)(
                **{**declaration.__dict__, "columns": tuple((f.name, f.type) for f in schema)}
            )
        source: Pieces = open_source(declaration, spec.settings["seed"])  # type: ignore[assignment]
        return source

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
        spec, home = home_of(self._text)
        packer = Packer(home, decision_of(home, batch), part.number)
        sinks = spec.sinks(home.query)

        def parcels() -> Iterator[Packed]:
            for name, piece in part.pieces:
                source = self._source(name)
                everything = f"late {name}" in sinks or f"dead {name}" in sinks
                wanted = Wanted.of(source.schema, home.split.needed[name], everything)
                for chunk in source.read_piece(piece, wanted):
                    if chunk.dead is not None:
                        yield from packer.dead(name, chunk.dead)
                    if chunk.rows.num_rows:
                        yield from packer.rows(name, chunk.rows)
            yield packer.finish()

        yield from as_rows(parcels())


class TableReader(_Reading, DataSourceReader):
    """Tables, whole."""

    def partitions(self) -> Sequence[InputPartition]:
        return self._parts([(name, piece) for name in self._names for piece in self._source(name).pieces()])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        return self._packed(partition, 0)


class StreamFiles(_Reading, DataSourceStreamReader):
    """Streams, a batch at a time."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._pieces: dict[str, list[Piece]] = {}
        self._rows_file = options["rows_file"]

    def _all(self) -> dict[str, list[Piece]]:
        if not self._pieces:
            times = {s.stream.name: s.stream.time for s in home_of(self._text)[1].query.sources}
            self._pieces = {name: self._source(name).pieces(times[name]) for name in self._names}
        return self._pieces

    def initialOffset(self) -> dict[str, Any]:
        return dict.fromkeys(self._names, 0) | {"ended": False}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """The next pieces: always of the stream that is furthest behind, until there are enough rows."""
        pieces = self._all()
        with open(self._rows_file, encoding="utf-8") as file:
            most = int(file.read())
        end, rows = {name: start[name] for name in pieces}, 0
        while going := [name for name in pieces if end[name] < len(pieces[name])]:
            name = min(going, key=lambda name: self._behind(name, end[name]))
            next_rows = pieces[name][end[name]].rows
            if rows and rows + next_rows / 2 > most:
                break
            rows += next_rows
            end[name] += 1
        return end | {"ended": all(end[name] == len(pieces[name]) for name in pieces)}

    def _behind(self, name: str, at: int) -> float:
        """How far a stream has come: by event time where that is known of all, else by the share that was read."""
        pieces = self._pieces
        if all(piece.newest is not None for of_stream in pieces.values() for piece in of_stream):
            return -math.inf if at == 0 else float(pieces[name][at - 1].newest or 0)
        return at / len(pieces[name])

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        pieces = self._all()
        return self._parts([(name, p) for name in self._names for p in pieces[name][start[name] : end[name]]])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        return self._packed(partition, current_batch())

    def commit(self, end: dict[str, Any]) -> None:
        pass

    def stop(self) -> None:
        pass
