"""Newline-delimited JSON, a block of lines at a time.

Arrow parses a clean block at once. A block that Arrow refuses is halved until the refused part is small, and that part
is read line by line: each value's text is then cast as in csv. Reading by line accepts everything that Arrow accepts,
with the same values, so the places of the cuts do not matter. A key that a line does not have is NULL. Values for which
JSON has no notation are read as the json sink writes them.
"""

from __future__ import annotations

import functools
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pjson

from eddyline.errors import CorruptFile, JobError, SettingError
from eddyline.runtime.sources.columns import chunk_of, inferred
from eddyline.runtime.sources.json_values import from_json, inner, is_bytes, needs_care
from eddyline.runtime.sources.paths import files, filled, why
from eddyline.runtime.sources.source import Chunk, Found, Piece, Wanted, dead_rows, no_rows, text_piece
from eddyline.runtime.sources.text import is_utf8

_BLOCK = 1 << 20
_ARRAY = re.compile(rb"\s*\[\s*(\{|$)")
"""The beginning of a file that is one array; any other line that is an array is a dead row."""
_SMALL = 64
_HALVINGS = 64
"""After this many refusals in one block the rest of it is read line by line: halving would cost more than it saves."""


class JsonFormat:
    """Files with one schema: the declared one, or one inferred from the first block of the first file."""

    def __init__(self, path: str, declared: pa.Schema | None) -> None:
        self._files = filled(path, files(path), declared is not None)
        self.schema = declared if declared is not None else _infer(self._files[0])

    def is_complete(self, file: Found) -> bool:
        """Always true: a text file does not show whether it is complete."""
        return True

    def pieces(self, file: Found, time: str | None = None) -> list[Piece]:
        """The whole file as one piece."""
        return [text_piece(file)]

    def read_piece(self, piece: Piece, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of the file."""
        return self.read_file(piece.file, wanted)

    def read_file(self, file: Found, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a file."""
        careful = any(needs_care(self.schema.field(name).type) for name in wanted.columns)
        for lines in _blocks(Path(file.path)):
            if careful:
                yield from self._carefully(lines, wanted)
            else:
                yield from self._parse(lines, wanted, [_HALVINGS])

    def _parse(self, lines: list[bytes], wanted: Wanted, halvings: list[int]) -> Iterator[Chunk]:
        table = _quickly(lines, self.schema, wanted)
        if table is not None:
            raw = {name: table.column(name).combine_chunks() for name in wanted.columns}
            yield chunk_of(self.schema, wanted, raw, table.num_rows, from_json)
        elif len(lines) <= _SMALL or halvings[0] <= 0:
            yield from self._carefully(lines, wanted)
        else:
            halvings[0] -= 1
            middle = len(lines) // 2
            yield from self._parse(lines[:middle], wanted, halvings)
            yield from self._parse(lines[middle:], wanted, halvings)

    def _carefully(self, lines: list[bytes], wanted: Wanted) -> Iterator[Chunk]:
        nested = [name for name in wanted.columns if pa.types.is_nested(self.schema.field(name).type)]
        values: dict[str, list[Any]] = {name: [] for name in wanted.columns}
        reasons: list[str] = []
        for line in lines:
            try:
                row = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
                whole = json.loads(line) if nested else row
                if not isinstance(row, dict):
                    raise ValueError("not an object")
                types = {name: self.schema.field(name).type for name in nested}
                deep = {name: pa.scalar(inner(whole.get(name), type_), type_) for name, type_ in types.items()}
            except (ValueError, TypeError, ArithmeticError, RecursionError, pa.ArrowException) as error:
                text = line.decode("utf-8", errors="replace")
                reasons.append(f"not a JSON object of this stream ({why(error)}): {text}")
                continue
            for name, column in values.items():
                column.append(deep[name].as_py() if name in deep else _text(row.get(name)))
        if reasons:
            shape = pa.RecordBatch.from_arrays([pa.nulls(len(reasons), pa.string())], names=[self.schema.names[0]])
            yield Chunk(no_rows(self.schema, wanted), dead_rows(self.schema, shape, pa.array(reasons, pa.string())))
        raw = {
            name: pa.array(column, self.schema.field(name).type if name in nested else pa.string())
            for name, column in values.items()
        }
        yield chunk_of(self.schema, wanted, raw, len(lines) - len(reasons), from_json)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _quickly(lines: list[bytes], schema: pa.Schema, wanted: Wanted) -> pa.Table | None:
    """The lines as Arrow parses them; None if Arrow cannot, or finds a number of rows other than that of lines."""
    fields = [pa.field(name, _wire_type(schema.field(name).type)) for name in wanted.columns]
    options = pjson.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")
    block = b"\n".join(lines)
    if not is_utf8(block):  # Arrow would accept such texts
        return None
    reading = pjson.ReadOptions(use_threads=False, block_size=len(block) + 1)
    try:
        table = pjson.read_json(io.BytesIO(block), reading, options)
    except pa.ArrowException:
        return None
    return table if table.num_rows == len(lines) else None


def _wire_type(type_: pa.DataType) -> pa.DataType:
    """The type to request from Arrow: Arrow reads dates as numbers and bytes as plain text, and knows no zones and no
    dictionaries."""
    zoned = pa.types.is_timestamp(type_) and type_.tz is not None
    if zoned or pa.types.is_date(type_) or pa.types.is_dictionary(type_) or is_bytes(type_):
        return pa.string()
    return type_


def _blocks(path: Path) -> Iterator[list[bytes]]:
    """Lists of lines that are not blank, about a block of text each; JobError if the file is one array."""
    first = True
    for lines in _lines_of(path):
        if first and _ARRAY.match(lines[0].removeprefix(b"\xef\xbb\xbf")):
            raise CorruptFile(f"{path} is one JSON array; newline-delimited JSON is read: one object per line")
        first = False
        yield lines


def _lines_of(path: Path) -> Iterator[list[bytes]]:
    tail = b""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            while data := stream.read(_BLOCK):
                head, newline, rest = data.rpartition(b"\n")
                if newline and len(tail) + len(data) >= _BLOCK:
                    yield from _lines(tail + head)
                    tail = rest
                else:
                    tail += data
        yield from _lines(tail)
    except (pa.ArrowException, OSError) as error:
        raise CorruptFile(f"{path} cannot be read as json: {why(error)}") from None


def _lines(text: bytes) -> Iterator[list[bytes]]:
    lines = [line for line in text.split(b"\n") if line and not line.isspace()]
    if lines:
        yield lines


def _infer(path: Path) -> pa.Schema:
    """The schema of the first block without the lines that are not JSON objects."""
    lines = next(_blocks(path), [])
    if not lines:
        raise SettingError(f"{path} is empty, there are no columns to take from it; declare them")
    for candidate in (lines, [line for line in lines if _is_object(line)]):
        try:
            table_of = functools.partial(_table_of, b"\n".join(candidate))
            return inferred(table_of([]), table_of)
        except pa.ArrowException as error:
            complaint = why(error)
    raise JobError(f"{path}: the columns cannot be told from the first lines ({complaint}); declare them")


def _table_of(block: bytes, texts: list[str]) -> pa.Table:
    """A block as Arrow infers it, with some columns as text."""
    options = pjson.ParseOptions(explicit_schema=pa.schema([pa.field(name, pa.string()) for name in texts]))
    return pjson.read_json(io.BytesIO(block), pjson.ReadOptions(block_size=len(block) + 1), options)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
