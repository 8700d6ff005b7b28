"""JSON objects as rows, one for each line or message.

Arrow parses a clean list of lines at once. A list that Arrow refuses is halved until the refused part is small, and
that part is read line by line: each value's text is then cast as in csv. Reading by line accepts everything that Arrow
accepts, with the same values, so the places of the cuts do not matter. A key that a line does not have is NULL. Values
for which JSON has no notation are read as the json sink writes them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pjson

from eddyline.runtime.sources.beside import Beside
from eddyline.runtime.sources.columns import chunk_of
from eddyline.runtime.sources.json_values import from_json, inner, is_bytes, needs_care
from eddyline.runtime.sources.paths import why
from eddyline.runtime.sources.source import Chunk, Wanted, dead_rows, no_rows
from eddyline.runtime.sources.text import is_utf8

_FIRST = itemgetter(0)
_SMALL = 64
_HALVINGS = 64
"""After this many refusals in one list the rest of it is read line by line: halving would cost more than it saves."""


class JsonText:
    """Reads lines as rows of a schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def chunks(self, lines: Sequence[bytes], wanted: Wanted, beside: Beside | None = None) -> Iterator[Chunk]:
        """The rows of lines, none of which is blank. Wanted columns that are in `beside` are taken from there. At least
        one column of the lines is read: a line that is no object is dead, whatever is wanted."""
        besides = {} if beside is None else beside.columns
        own = [name for name in wanted.columns if name not in besides]
        own = own or [name for name in self._schema.names if name not in besides][:1]
        if any(needs_care(self._schema.field(name).type) for name in own):
            yield from self._carefully(lines, wanted, own, beside)
        else:
            yield from self._parse(lines, wanted, own, beside, [_HALVINGS])

    def _parse(
        self, lines: Sequence[bytes], wanted: Wanted, own: list[str], beside: Beside | None, halvings: list[int]
    ) -> Iterator[Chunk]:
        table = _quickly(lines, self._schema, own)
        if table is not None:
            raw = {name: table.column(name).combine_chunks() for name in own}
            yield self._chunk(raw, wanted, table.num_rows, beside)
        elif len(lines) <= _SMALL or halvings[0] <= 0:
            yield from self._carefully(lines, wanted, own, beside)
        else:
            halvings[0] -= 1
            middle = len(lines) // 2
            for start, part in ((0, lines[:middle]), (middle, lines[middle:])):
                cut = None if beside is None else beside.slice(start, len(part))
                yield from self._parse(part, wanted, own, cut, halvings)

    def _carefully(
        self, lines: Sequence[bytes], wanted: Wanted, own: list[str], beside: Beside | None
    ) -> Iterator[Chunk]:
        nested = [name for name in own if pa.types.is_nested(self._schema.field(name).type)]
        values: dict[str, list[Any]] = {name: [] for name in own}
        reasons: dict[int, str] = {}
        for number, line in enumerate(lines):
            try:
                row = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
                whole = json.loads(line) if nested else row
                if not isinstance(row, dict):
                    raise ValueError("not an object")
                types = {name: self._schema.field(name).type for name in nested}
                deep = {name: pa.scalar(inner(whole.get(name), type_), type_) for name, type_ in types.items()}
            except (ValueError, TypeError, ArithmeticError, RecursionError, pa.ArrowException) as error:
                text = line.decode("utf-8", errors="replace")
                reasons[number] = f"not a JSON object of this stream ({why(error)}): {text}"
                continue
            for name, column in values.items():
                column.append(deep[name].as_py() if name in deep else _text(row.get(name)))
        if reasons:
            dead = np.array(list(reasons), np.int64)
            yield Chunk(
                no_rows(self._schema, wanted),
                dead_lines(self._schema, list(reasons.values()), None if beside is None else beside.take(dead)),
            )
            good = np.setdiff1d(np.arange(len(lines)), dead)
            beside = None if beside is None else beside.take(good)
        raw = {
            name: pa.array(column, self._schema.field(name).type if name in nested else pa.string())
            for name, column in values.items()
        }
        yield self._chunk(raw, wanted, len(lines) - len(reasons), beside)

    def _chunk(self, raw: dict[str, pa.Array], wanted: Wanted, rows: int, beside: Beside | None) -> Chunk:
        return chunk_of(self._schema, wanted, raw, rows, from_json, beside)


def dead_lines(schema: pa.Schema, reasons: list[str], beside: Beside | None) -> pa.RecordBatch:
    """The dead rows of texts that are no rows at all."""
    columns = {} if beside is None else {n: v for n, v in beside.columns.items() if n in schema.names}
    shape = columns or {schema.names[0]: pa.nulls(len(reasons), pa.string())}
    told = pa.array(reasons, pa.string())
    return dead_rows(schema, pa.RecordBatch.from_pydict(shape), told if beside is None else beside.told(told))


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _quickly(lines: Sequence[bytes], schema: pa.Schema, columns: Sequence[str]) -> pa.Table | None:
    """The lines as Arrow parses them; None if Arrow cannot, or finds a number of rows other than that of lines, or must
    not see them: null is a row to Arrow, and the process crashes if it is the first."""
    if not begin_as_objects(lines):
        return None
    fields = [pa.field(name, _wire_type(schema.field(name).type)) for name in columns]
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


def begin_as_objects(lines: Sequence[bytes]) -> bool:
    """Whether all lines begin as objects do; a compiled loop if there is no space before them.

    >>> begin_as_objects([b'{"a": 1}', b' {}']), begin_as_objects([b'{"a": 1}', b"null"])
    (True, False)
    """
    if all(lines) and set(map(_FIRST, lines)) == {ord("{")}:
        return True
    return all(line.lstrip().startswith(b"{") for line in lines)


def _wire_type(type_: pa.DataType) -> pa.DataType:
    """The type to request from Arrow: Arrow reads dates as numbers and bytes as plain text, and knows no zones and no
    dictionaries."""
    zoned = pa.types.is_timestamp(type_) and type_.tz is not None
    if zoned or pa.types.is_date(type_) or pa.types.is_dictionary(type_) or is_bytes(type_):
        return pa.string()
    return type_
