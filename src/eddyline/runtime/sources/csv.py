"""CSV files, a block at a time: everything is read as bytes first, so that a bad value costs one row and not a block.

Options are Spark's: `header`, `sep` (or `delimiter`), `quote`, `escape`, `nullValue`, `multiLine`. `header` may also
be `auto`, the default: with declared columns the first line is a header if it names them; without, it must be one.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from eddyline.errors import JobError, SettingError
from eddyline.runtime.sources.columns import chunk_of, inferred
from eddyline.runtime.sources.paths import files, why
from eddyline.runtime.sources.source import Chunk, Wanted, dead_rows, no_rows
from eddyline.runtime.sources.text import cast_or_null

_BLOCK = 1 << 20


@dataclass(frozen=True)
class CsvOptions:
    """How the text is laid out."""

    header: str = "auto"
    sep: str = ","
    quote: str = '"'
    escape: str = ""
    null_value: str = ""
    multi_line: bool = False

    def parse_options(self, handler: object = None) -> pcsv.ParseOptions:
        """The same for pyarrow."""
        return pcsv.ParseOptions(
            delimiter=self.sep,
            quote_char=self.quote or False,
            escape_char=self.escape or False,
            newlines_in_values=self.multi_line,
            invalid_row_handler=handler,
        )


class CsvSource:
    """Files with one schema: the declared one, or what the first block of the first file looks like."""

    endless = False

    def __init__(self, path: str, declared: pa.Schema | None, options: CsvOptions) -> None:
        self._files = [f for f in files(path) if f.stat().st_size]
        self._options = options
        if declared is None and not self._files:
            raise SettingError(f"{path} holds no file to take the columns from; declare them")
        self._declared = declared is not None
        self.schema = declared if declared is not None else self._infer(self._files[0])

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        """All rows, file after file."""
        for path in self._files:
            try:
                yield from self._read_file(path, wanted)
            except (pa.ArrowException, OSError) as error:
                raise JobError(f"{path} cannot be read as csv: {why(error)}") from None

    def _read_file(self, path: Path, wanted: Wanted) -> Iterator[Chunk]:
        names, header = self._layout(path)
        misfits: list[str] = []

        def misfit(row: pcsv.InvalidRow) -> str:
            misfits.append(f"{row.actual_columns} columns where {row.expected_columns} were expected: {row.text}")
            return "skip"

        by_name = {name.lower(): name for name in names}
        columns = {name: by_name.get(name.lower(), "") for name in wanted.columns}
        for name, place in columns.items():
            if not place:
                raise JobError(f"{path} has no column {name}; it has {', '.join(names)}")
        reader = pcsv.open_csv(
            pa.input_stream(str(path), compression="detect"),
            pcsv.ReadOptions(use_threads=False, block_size=_BLOCK, column_names=names, skip_rows=int(header)),
            self._options.parse_options(misfit),
            pcsv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(names, pa.binary()),
                include_columns=list(columns.values()),
                null_values=[self._options.null_value],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        for batch in reader:
            yield from self._chunks(batch, columns, wanted)
            yield from self._dead(misfits, wanted)
        yield from self._dead(misfits, wanted)

    def _chunks(self, batch: pa.RecordBatch, columns: Mapping[str, str], wanted: Wanted) -> Iterator[Chunk]:
        """The batch of bytes as text, less the rows that are not UTF-8, as a chunk."""
        raw: dict[str, pa.Array] = {}
        broken = np.zeros(batch.num_rows, dtype=np.bool_)
        for name, place in columns.items():
            raw[name], bad = cast_or_null(lambda part: part.cast(pa.string()), batch.column(place), pa.string())
            if bad is not None and name in wanted.needed:
                broken |= bad
        if broken.any():
            dead = pa.RecordBatch.from_arrays(list(raw.values()), names=list(raw)).filter(pa.array(broken))
            reasons = pa.array(["not text in UTF-8"] * dead.num_rows, pa.string())
            keep = pa.array(~broken)
            raw = {name: array.filter(keep) for name, array in raw.items()}
            yield Chunk(no_rows(self.schema, wanted), dead_rows(self.schema, dead, reasons))
        yield chunk_of(self.schema, wanted, raw, batch.num_rows - int(broken.sum()))

    def _dead(self, misfits: list[str], wanted: Wanted) -> Iterator[Chunk]:
        """Lines with a wrong number of columns; their text is in the reason."""
        if misfits:
            reasons = pa.array(misfits, pa.string())
            nulls = [pa.nulls(len(misfits), pa.string()) for _ in self.schema.names]
            rows = pa.RecordBatch.from_arrays(nulls, names=self.schema.names)
            misfits.clear()
            yield Chunk(no_rows(self.schema, wanted), dead_rows(self.schema, rows, reasons))

    def _layout(self, path: Path) -> tuple[list[str], bool]:
        """The names of a file's columns, and whether its first line is a header."""
        options = self._options
        with pa.input_stream(str(path), compression="detect") as stream:
            text = stream.read(_BLOCK).decode("utf-8-sig", errors="replace")
        quoting = {"quotechar": options.quote} if options.quote else {"quoting": csv.QUOTE_NONE}
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=options.sep, **quoting)
        first = [field.strip() for field in next(lines, [])]
        if options.header == "true" or (options.header == "auto" and not self._declared):
            return first, True
        if not self._declared:
            return [f"_c{i}" for i in range(len(first))], False
        same = [n.lower() for n in first] == [n.lower() for n in self.schema.names]
        shuffled = {n.lower() for n in self.schema.names} <= {n.lower() for n in first}
        if options.header == "auto" and (same or shuffled):
            return first, True
        return list(self.schema.names), False

    def _infer(self, path: Path) -> pa.Schema:
        """The first block as pyarrow understands it. Lines that do not fit are left to `read`."""
        self.schema = pa.schema([])
        try:
            names, header = self._layout(path)
            reader = pcsv.open_csv(
                pa.input_stream(str(path), compression="detect"),
                pcsv.ReadOptions(use_threads=False, block_size=_BLOCK, column_names=names, skip_rows=int(header)),
                self._options.parse_options(lambda row: "skip"),
                pcsv.ConvertOptions(null_values=[self._options.null_value], strings_can_be_null=True),
            )
            block = next(iter(reader), None)
        except (pa.ArrowException, OSError) as error:
            raise JobError(f"{path} cannot be read as csv: {why(error)}") from None
        if block is None:
            return pa.schema([pa.field(name, pa.string()) for name in names])
        return inferred(pa.Table.from_batches([block]))
