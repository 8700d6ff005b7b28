"""JSON objects as rows, one for each line or message.

Arrow parses a clean list of lines at once. A list that Arrow refuses is halved until the refused part is small, and
that part is read line by line. Reading by line accepts everything that Arrow accepts, with the same values
(runtime/values/json.py), so the places of the cuts do not matter. A key that a line does not have is NULL.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pjson
from numpy.typing import NDArray

from eddyline.os_errors import why
from eddyline.runtime.sources.beside import Beside
from eddyline.runtime.sources.columns import Converted, chunk_of
from eddyline.runtime.sources.source import Chunk, Wanted, dead_rows, no_rows
from eddyline.runtime.values.json import from_json, from_json_values, is_bytes, value_of
from eddyline.runtime.values.text import is_utf8

_FIRST = itemgetter(0)
_SMALL = 64
_decode = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).decode
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
        if any(_has(pa.types.is_map, self._schema.field(name).type) for name in own):  # which Arrow does not read
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
        types = {name: self._schema.field(name).type for name in own}
        whole = pa.struct(list(types.items())) if any(map(pa.types.is_nested, types.values())) else None
        values: dict[str, list[Any]] = {name: [] for name in own}
        reasons: dict[int, str] = {}
        for number, line in enumerate(lines):
            try:
                row = _row(line, types, whole)
            except (ValueError, RecursionError) as error:
                text = line.decode("utf-8", errors="replace")
                reasons[number] = f"not a JSON object of this stream ({why(error)}): {text}"
                continue
            for name, column in values.items():
                column.append(row.get(name))
        if reasons:
            dead = np.array(list(reasons), np.int64)
            yield Chunk(
                no_rows(self._schema, wanted),
                dead_lines(self._schema, list(reasons.values()), None if beside is None else beside.take(dead)),
            )
            good = np.setdiff1d(np.arange(len(lines)), dead)
            beside = None if beside is None else beside.take(good)
        raw = {name: _converted(column, types[name]) for name, column in values.items()}
        yield self._chunk(raw, wanted, len(lines) - len(reasons), beside)

    def _chunk(
        self, raw: Mapping[str, pa.Array | Converted], wanted: Wanted, rows: int, beside: Beside | None
    ) -> Chunk:
        return chunk_of(self._schema, wanted, raw, rows, from_json, beside)


def dead_lines(schema: pa.Schema, reasons: list[str], beside: Beside | None) -> pa.RecordBatch:
    """The dead rows of texts that are no rows at all."""
    columns = {} if beside is None else {n: v for n, v in beside.columns.items() if n in schema.names}
    shape = columns or {schema.names[0]: pa.nulls(len(reasons), pa.string())}
    told = pa.array(reasons, pa.string())
    return dead_rows(schema, pa.RecordBatch.from_pydict(shape), told if beside is None else beside.told(told))


def _row(line: bytes, types: Mapping[str, pa.DataType], whole: pa.DataType | None) -> dict[str, Any]:
    """The values of a line as `value_of` gives them, perhaps with more members. `whole` is the type of lines with
    nested values; other lines are decoded at once."""
    text = str(line, "utf-8").removeprefix("\ufeff")
    row = _decode(text) if whole is None else value_of(text, whole)
    if not isinstance(row, dict):
        raise ValueError("not an object")
    if whole is None:
        for name in types:
            value = row.get(name)
            if isinstance(value, bool):
                row[name] = "true" if value else "false"
            elif isinstance(value, list | dict):
                return dict(value_of(text, pa.struct(list(types.items()))))
    return row


def _converted(values: list[Any], type_: pa.DataType) -> Converted:
    def texts(rows: NDArray[np.int64]) -> pa.Array:
        shown = (values[row] for row in rows)
        return pa.array([v if v is None else _shown(v) for v in shown], pa.string())

    array, bad = from_json_values(values, type_)
    return Converted(array, bad, texts)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode()


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
        for field in fields:
            if _has(pa.types.is_decimal, field.type):  # Arrow reads some numbers with more digits than the type has
                table.column(field.name).validate(full=True)
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
    """The type to request from Arrow: Arrow reads dates as numbers and bytes as plain text, and knows no zones, no
    dictionaries and few digits of a second."""
    t = pa.types
    if t.is_struct(type_):
        return pa.struct([pa.field(field.name, _wire_type(field.type)) for field in type_])
    if t.is_list(type_):
        return pa.list_(_wire_type(type_.value_type))
    zoned = t.is_timestamp(type_) and (type_.tz is not None or type_.unit != "us")
    return pa.string() if zoned or t.is_date(type_) or t.is_dictionary(type_) or is_bytes(type_) else type_


def _has(kind: Callable[[pa.DataType], bool], type_: pa.DataType) -> bool:
    """Whether a type is of a kind, or has one inside."""
    inner = [type_.field(i).type for i in range(type_.num_fields)] if pa.types.is_nested(type_) else []
    return kind(type_) or any(_has(kind, some) for some in inner)
