"""CSV files, a block at a time: everything is read as bytes first, so that a bad value costs one row and not a block.

Options are Spark's: `header`, `sep` (or `delimiter`), `quote`, `escape`, `nullValue`, `multiLine`. `header` may also
be `auto`, the default: with declared columns the first line is a header if it reads as one (csv_header.py); without,
it must be one.
A row that Arrow would not read as one row is dead: too many or too few columns, or a quote that is not closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from eddyline.bound.inferred_text import from_file
from eddyline.errors import JobError, SettingError
from eddyline.runtime.sources.columns import chunk_of
from eddyline.runtime.sources.csv_header import is_header, misfit, places, twice
from eddyline.runtime.sources.csv_text import CsvOptions
from eddyline.runtime.sources.inference import inferred
from eddyline.runtime.sources.paths import files, filled, has_end, unreadable
from eddyline.runtime.sources.source import Chunk, Found, Piece, Wanted, dead_rows, no_rows, text_piece
from eddyline.runtime.values.text import cast_or_null, is_utf8


class CsvFormat:
    """Files with one schema: the declared one, or one inferred from the first file that has a row. A declared
    schema is compared with the header of the first file, unless that was done before (`checked`)."""

    def __init__(self, path: str, declared: pa.Schema | None, options: CsvOptions, checked: bool = False) -> None:
        self._options = options
        self._declared = declared is not None
        self._files = filled(path, files(path), self._declared)
        self.schema = declared if declared is not None else self._inferred()
        if declared is not None and self._files and not checked:
            self._check(self._files[0])

    def is_rowless(self, file: Found) -> bool:
        """Whether the file is empty."""
        return not file.size

    def is_complete(self, file: Found) -> bool:
        """Whether the file has its end, if it is compressed; other text does not show it."""
        return has_end(file)

    def pieces(self, file: Found, time: str | None = None) -> list[Piece]:
        """The whole file as one piece."""
        return [text_piece(file)]

    def count(self, file: Found) -> int:
        """The number of rows of a file, by its lines."""
        try:
            path = Path(file.path)
            texts = self._texts(path, self._layout(path)[1])
            if self._options.multi_line:
                return sum(len(self._options.rows(text)) + len(unclosed) for text, unclosed in texts)
            return sum(text.count(b"\n") or text.count(b"\r") for text, _ in texts)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(file.path, "csv", error) from None

    def read_piece(self, piece: Piece, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of the file."""
        return self.read_file(piece.file, wanted)

    def read_file(self, file: Found, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a file."""
        try:
            yield from self._read_file(Path(file.path), wanted)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(file.path, "csv", error) from None

    def _read_file(self, path: Path, wanted: Wanted) -> Iterator[Chunk]:
        names, header = self._layout(path)
        if names and (wrong := self._misfit(names, wanted.columns)):
            raise JobError(f"{path} {wrong}")
        columns = places(names, wanted.columns)
        for text, unclosed in self._texts(path, header):
            table, misfits = self._parse(text, names, columns.values())
            if not self._options.is_sound(text, table.num_rows + len(misfits)):
                text, unclosed = self._options.split(text)
                table, misfits = self._parse(text, names, columns.values())
            misfits += [_reason("a quote that is not closed", line) for line in unclosed]
            for batch in table.combine_chunks().to_batches():
                yield from self._chunks(batch, columns, wanted)
            yield from self._dead(misfits, wanted)

    def _texts(self, path: Path, header: bool) -> Iterator[tuple[bytes, list[bytes]]]:
        """The blocks of a file without its header."""
        for text, unclosed in self._options.blocks(path):
            body = text
            if header and text.strip(b"\r\n"):
                body = text.lstrip(b"\r\n")
                body = body[self._options.first_row(body) :]
                header = False
            yield body, unclosed

    def _parse(self, text: bytes, names: list[str], columns: Iterable[str]) -> tuple[pa.Table, list[str]]:
        """The columns as bytes, and the reasons of dead rows, which have too many or too few columns."""
        misfits: list[str] = []

        def misfit(row: pcsv.InvalidRow) -> str:
            columns = f"{row.actual_columns} column{'s' if row.actual_columns != 1 else ''}"
            what = f"{columns} where {row.expected_columns} were expected"
            misfits.append(_reason(what, row.text))
            return "skip"

        if not is_utf8(text):
            text, odd = self._without_odd_misfits(text, names)
            misfits += [_reason(f"not {len(names)} columns, nor text in UTF-8", row) for row in odd]
        convert = pcsv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(names, pa.binary()),
            include_columns=list(columns),
            null_values=self._options.null_values,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        return self._arrow(text, names, misfit, convert), misfits

    def _without_odd_misfits(self, text: bytes, names: list[str]) -> tuple[bytes, list[bytes]]:
        """The text without the rows that have a wrong number of columns and are not UTF-8, and these rows: Arrow cannot
        report them. Their columns are counted as if the bytes were Latin-1, which gives the same number."""
        rows = self._options.rows(text)
        odd = [i for i, row in enumerate(rows) if not is_utf8(row)]
        wrong: set[int] = set()

        def misfit(row: pcsv.InvalidRow) -> str:
            wrong.add(odd[row.number - 1])
            return "skip"

        self._arrow(b"".join(rows[i].decode("latin-1").encode() for i in odd), names, misfit, pcsv.ConvertOptions())
        kept = b"".join(row for i, row in enumerate(rows) if i not in wrong)
        return kept, [rows[i].rstrip(b"\r\n") for i in sorted(wrong)]

    def _arrow(self, text: bytes, names: list[str], misfit: object, convert: pcsv.ConvertOptions) -> pa.Table:
        if not text.strip(b"\r\n"):
            return pa.table({name: pa.array([], pa.binary()) for name in convert.include_columns})
        reading = pcsv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names)
        return pcsv.read_csv(pa.BufferReader(text), reading, self._options.parse_options(misfit), convert)

    def _chunks(self, batch: pa.RecordBatch, columns: Mapping[str, str], wanted: Wanted) -> Iterator[Chunk]:
        """The batch of bytes as chunks of text; rows that are not UTF-8 are dead."""
        raw: dict[str, pa.Array] = {}
        broken = np.zeros(batch.num_rows, dtype=np.bool_)
        for name, place in columns.items():
            raw[name], bad = cast_or_null(lambda part: part.cast(pa.string()), batch.column(place))
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
        """The dead rows of lines with a wrong number of columns; the reason has the text of the line."""
        if misfits:
            reasons = pa.array(misfits, pa.string())
            nulls = [pa.nulls(len(misfits), pa.string()) for _ in self.schema.names]
            rows = pa.RecordBatch.from_arrays(nulls, names=self.schema.names)
            misfits.clear()
            yield Chunk(no_rows(self.schema, wanted), dead_rows(self.schema, rows, reasons))

    def _check(self, path: Path) -> None:
        """SettingError for declared columns that the header of a file does not name."""
        try:
            names, _ = self._layout(path)
        except (pa.ArrowException, OSError) as error:
            if not has_end(Found(str(path))):
                return  # its writer has not finished it
            raise unreadable(path, "csv", error) from None
        if names and (wrong := self._misfit(names, self.schema.names)):
            raise SettingError(f"{path} {wrong}")

    def _misfit(self, names: list[str], columns: Sequence[str]) -> str:
        """Why some columns cannot be found in a file whose columns have these names; "" if all can."""
        if again := twice(names, columns):
            return f"names the column {again} twice in its header {', '.join(names)}"
        if all(places(names, columns).values()):
            return ""
        return misfit(names, self.schema, self._has_header)

    @property
    def _has_header(self) -> bool:
        """Whether every file must begin with a header."""
        return self._options.header == "true" or (self._options.header == "auto" and not self._declared)

    def _layout(self, path: Path) -> tuple[list[str], bool]:
        """The names of a file's columns, and whether its first line is a header."""
        text = next((text for text, _ in self._options.blocks(path) if text.strip(b"\r\n")), b"").lstrip(b"\r\n")
        end = self._options.first_row(text)
        if self._has_header:
            if text and not end:
                raise JobError(f"{path} cannot be read as csv: its header has a quote that is not closed")
            return self._fields(text[:end]), True
        if not end:
            text = self._options.split(text)[0].lstrip(b"\r\n")
            end = self._options.first_row(text)
        first = self._fields(text[:end])
        if not self._declared:
            return [f"_c{i}" for i in range(len(first))], False
        if self._options.header == "auto" and is_header(first, self.schema):
            return first, True
        return list(self.schema.names), False

    def _fields(self, row: bytes) -> list[str]:
        """The fields of one row, as text."""
        if not row:
            return []
        places = [f"f{i}" for i in range(row.count(self._options.sep.encode()) + 1)]
        convert = pcsv.ConvertOptions(check_utf8=False, column_types=dict.fromkeys(places, pa.binary()))
        reading = pcsv.ReadOptions(use_threads=False, block_size=len(row) + 1, autogenerate_column_names=True)
        table = pcsv.read_csv(pa.BufferReader(row), reading, self._options.parse_options(), convert)
        return [str(column[0].as_py(), "utf-8", errors="replace").strip() for column in table.columns]

    def _inferred(self) -> pa.Schema:
        """The schema of the first file that has a row; of the first that has a header if none has a row."""
        self.schema = pa.schema([])
        headers = []
        for path in self._files:
            schema, has_rows = self._infer(path)
            if has_rows:
                return from_file(schema, path)
            headers += [from_file(schema, path)] if len(schema) else []
        if not headers:
            raise SettingError(f"{self._files[0]} is empty, there are no columns to take from it; declare them")
        return headers[0]

    def _infer(self, path: Path) -> tuple[pa.Schema, bool]:
        """The schema of the first block as pyarrow infers it, and whether it has a row. Lines that do not fit are
        ignored here; `read` reports them."""
        try:
            names, header = self._layout(path)
            if again := twice(names, names):
                raise SettingError(
                    f"{path} names the column {again} twice in its header; rename one, or declare others"
                )
            text, _ = next(self._texts(path, header), (b"", []))
            rows, _ = self._options.split(text)
            if not is_utf8(rows):
                rows, _ = self._without_odd_misfits(rows, names)

            def table_of(texts: list[str]) -> pa.Table:
                convert = pcsv.ConvertOptions(
                    null_values=self._options.null_values,
                    strings_can_be_null=True,
                    column_types=dict.fromkeys(texts, pa.string()),
                )
                return self._arrow(rows, names, lambda row: "skip", convert)

            table = table_of([])
            if table.num_rows:
                return inferred(table, table_of, self._places(path, header, table.num_rows), csv=True), True
        except (pa.ArrowException, OSError) as error:
            raise unreadable(path, "csv", error) from None
        return pa.schema([pa.field(name, pa.string()) for name in names]), False

    def _places(self, path: Path, header: bool, rows: int) -> Callable[[int], str]:
        """The place of each of the `rows` of the first block: the file, and the line if every line is a row."""

        def place(row: int) -> str:
            text, _ = next(self._options.blocks(path))
            lines = [number for number, line in enumerate(text.splitlines(), 1) if line][header:]
            return f"{path.name}, line {lines[row]}" if len(lines) == rows else path.name

        return place


def _reason(what: str, row: str | bytes) -> str:
    return f"{what}: {row if isinstance(row, str) else row.decode(errors='replace')}"
