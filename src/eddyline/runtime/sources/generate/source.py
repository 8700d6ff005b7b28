"""The generator as a source.

Rows are made in blocks of a fixed size, each with a random generator of its own seeded by (seed, number of the block),
so the rows depend on the declaration and the seed alone, however they are read. A row made at time t has an event time
between t - disorder and t: with a LATENESS of at least the disorder no row is late, except the share that `late` asks
for.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.cql.declaration import Declaration
from eddyline.cql.names import did_you_mean
from eddyline.errors import SettingError
from eddyline.runtime.options import Options, duration, instant
from eddyline.runtime.sources.generate.columns import RowsToMake, check, defaults, make
from eddyline.runtime.sources.generate.drift import DriftSegment, segments
from eddyline.runtime.sources.generate.pace import Pace
from eddyline.runtime.sources.generate.values import Value, read_value
from eddyline.runtime.sources.source import Chunk, Found, Piece, Wanted

_BLOCK = 32768
_START = "2026-01-01"
_STREAM_SETTINGS: dict[str, Value] = {"rate": 1000.0, "disorder": 0.0, "late": 0.0, "late_by": 10_000_000.0}


class GenerateSource:
    """Options: rows or duration, rate, start, seed, disorder, late, late_by, drift, and COLUMN.domain,
    COLUMN.distribution, COLUMN.selectivity, COLUMN.nulls."""

    def __init__(self, declaration: Declaration, seed: int) -> None:
        if declaration.columns is None:
            raise SettingError(
                f"generate needs the columns: CREATE {declaration.kind} {declaration.name} (ts TIMESTAMP, ...)"
            )
        self.schema = pa.schema([pa.field(name, type_) for name, type_ in declaration.columns])
        self._time = (declaration.time or "").lower()
        if not self._time.isidentifier() and self._time not in ("", *(name.lower() for name in self.schema.names)):
            raise SettingError("generate makes the event times: TIMESTAMP BY names one of its columns, no expression")
        self._lateness = declaration.lateness
        options = Options.of(declaration)
        self._start = instant(options.text("start", _START), "start")
        rows = options.whole("rows", 0) if "rows" in options else None
        length = duration(options.text("duration"), "duration") if "duration" in options else None
        name = zlib.crc32(declaration.name.lower().encode())
        self._seed = (options.whole("seed", 0), 0) if "seed" in options else (seed, name)
        self._segments = segments(self._settings(options), options.text("drift"))
        options.done()
        for settings in (settings for segment in self._segments for settings in (segment.first, segment.last)):
            for field in self.schema:
                check(field.name, field.type, self._of_column(field, settings))
        self._pace = Pace(self._segments)
        limits = [] if rows is None else [rows]
        limits += [] if length is None else [self._pace.rows_until(length)]
        limits += [self._pace.rows_until(np.inf)] if self._pace.ends else []
        self._rows = min(limits) if limits else None

    @property
    def endless(self) -> bool:
        """Whether neither `rows` nor `duration` bounds it."""
        return self._rows is None

    def count(self) -> int | None:
        """The number of rows; None if it never ends."""
        return self._rows

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        """The rows; all columns are drawn, so that a query's choice of columns does not change their values."""
        block = 0
        while self._rows is None or block * _BLOCK < self._rows:
            yield self._chunk(block, wanted)
            block += 1

    def found(self) -> list[Found]:
        """The generator as one file without a name, with its number of rows as size."""
        return [Found(size=self._rows or 0)]

    def at(self, name: str, size: int, changed: int, number: int = 0) -> Found:
        """The same file, as it was found before."""
        return Found(size=size)

    def read_file(self, file: Found, wanted: Wanted) -> Iterator[Chunk]:
        """All rows."""
        return self.read(wanted)

    def pieces(self, file: Found, time: str | None = None) -> list[Piece]:
        """The blocks of a generator that ends."""
        blocks = range(-(-(self._rows or 0) // _BLOCK))
        ends = [self._pace.times(block * _BLOCK + self._size(block) - 1, 1)[0][0] for block in blocks]
        return [Piece(file, self._size(block), block, self._start + int(ends[block])) for block in blocks]

    def read_piece(self, piece: Piece, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a block."""
        yield self._chunk(piece.group, wanted)

    def _size(self, block: int) -> int:
        return _BLOCK if self._rows is None else min(_BLOCK, self._rows - block * _BLOCK)

    def _chunk(self, block: int, wanted: Wanted) -> Chunk:
        return Chunk(self._block(block, self._size(block)).select(list(wanted.columns)))

    def _settings(self, options: Options) -> dict[str, Value]:
        """The value of every setting at the start: that of the option, else the default."""
        settings = {key: _value(key, options.text(key)) if key in options else value
                    for key, value in _STREAM_SETTINGS.items()}  # fmt: skip
        for field in self.schema:
            settings |= {f"{field.name.lower()}.{key}": value for key, value in self._defaults(field).items()}
        for key, text in options.prefixed({name.lower() for name in self.schema.names}).items():
            if key not in settings:
                column, _, word = key.rpartition(".")
                hint = did_you_mean(word, [k.rpartition(".")[2] for k in settings if k.rpartition(".")[0] == column])
                raise SettingError(
                    f"generate has no option '{options.as_written(key)}': column {column} has no {word}{hint}",
                    f"option {key}",
                )
            settings[key] = _value(key, text)
        return settings

    def _defaults(self, field: pa.Field) -> dict[str, Value]:
        return defaults(field.type, field.name.lower() == self._time)

    def _of_column(self, field: pa.Field, settings: Mapping[str, Value]) -> dict[str, Value]:
        """The settings of one column."""
        return {key: settings[f"{field.name.lower()}.{key}"] for key in self._defaults(field)}

    def _block(self, block: int, rows: int) -> pa.RecordBatch:
        rng = np.random.Generator(np.random.PCG64([*self._seed, block]))
        first = block * _BLOCK
        made, segment = self._pace.times(first, rows)
        cuts = np.flatnonzero(np.diff(segment)) + 1
        runs = [
            self._run(self._segments[int(segment[low])], first + low, made[low:high], rng)
            for low, high in zip([0, *cuts], [*cuts, rows], strict=True)
        ]
        if len(runs) == 1:
            return runs[0]
        return pa.Table.from_batches(runs).combine_chunks().to_batches()[0]

    def _run(
        self, segment: DriftSegment, first: int, made: NDArray[np.int64], rng: np.random.Generator
    ) -> pa.RecordBatch:
        """Rows of one block within one segment."""
        length = (segment.end or segment.start) - segment.start
        places = (made - segment.start) / length if length else np.zeros(len(made))
        numbers = np.arange(first, first + len(made), dtype=np.int64)
        rows = RowsToMake(numbers, self._event_times(segment, numbers, made, places, rng), places, rng)
        arrays = []
        for field in self.schema:
            name = field.name.lower()
            if name == self._time:
                arrays.append(pc.cast(pa.array(rows.times, pa.timestamp("us")), field.type, safe=False))
                continue
            at_start, at_end = (self._of_column(field, settings) for settings in (segment.first, segment.last))
            arrays.append(make(field.type, at_start, at_end, rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _event_times(
        self,
        segment: DriftSegment,
        numbers: NDArray[np.int64],
        made: NDArray[np.int64],
        places: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        rows = RowsToMake(numbers, made, places, rng)

        def setting(key: str) -> NDArray[np.float64]:
            first, last = segment.first[key], segment.last[key]
            assert isinstance(first, float) and isinstance(last, float)
            return rows.between(first, last)

        disorder = setting("disorder")
        back = disorder * rng.random(len(made))
        late = rows.chance(segment.first["late"], segment.last["late"])
        further = np.maximum(disorder, self._lateness) + setting("late_by") * rng.random(len(made))
        return self._start + made - np.where(late, further, back).astype(np.int64)


def _value(key: str, text: str) -> Value:
    """The value of an option; SettingError with the option's name if it is wrong."""
    try:
        return read_value(key, text)
    except SettingError as error:
        raise SettingError(str(error), f"option {key}") from None
