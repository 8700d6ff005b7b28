"""SQL types as Arrow types: those of column lists and of CAST."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import Token

from eddyline.cql.dialect import parse_type
from eddyline.cql.names import did_you_mean
from eddyline.cql.places import Place, place_at, shown, start_of, wrong
from eddyline.errors import ScriptError

_D = exp.DType
_SIMPLE: dict[exp.DType, pa.DataType] = {
    _D.BOOLEAN: pa.bool_(),
    _D.TINYINT: pa.int8(),
    _D.SMALLINT: pa.int16(),
    _D.INT: pa.int32(),
    _D.BIGINT: pa.int64(),
    _D.UTINYINT: pa.uint8(),
    _D.USMALLINT: pa.uint16(),
    _D.UINT: pa.uint32(),
    _D.UBIGINT: pa.uint64(),
    _D.FLOAT: pa.float32(),
    _D.DOUBLE: pa.float64(),
    _D.TEXT: pa.string(),
    _D.VARCHAR: pa.string(),
    _D.CHAR: pa.string(),
    _D.VARBINARY: pa.binary(),
    _D.BINARY: pa.binary(),
    _D.BLOB: pa.binary(),
    _D.DATE: pa.date32(),
    _D.TIME: pa.time64("us"),
    _D.TIMESTAMP: pa.timestamp("us"),
    _D.TIMESTAMPNTZ: pa.timestamp("us"),
    _D.TIMESTAMP_S: pa.timestamp("s"),
    _D.TIMESTAMP_MS: pa.timestamp("ms"),
    _D.TIMESTAMP_NS: pa.timestamp("ns"),
    _D.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    _D.INTERVAL: pa.duration("us"),
}
_KNOWN = (
    "VARCHAR", "BIGINT", "INTEGER", "DOUBLE", "DECIMAL(18, 3)", "TIMESTAMP", "DATE", "BOOLEAN", "TIMESTAMPTZ", "TIME",
    "FLOAT", "SMALLINT", "TINYINT", "BLOB", "INTERVAL", "UBIGINT", "UINTEGER", "USMALLINT", "UTINYINT",
)  # fmt: skip
"""The names of all types, the most common first: a message lists only a few."""


_DEEPEST = 20


def read_type(text: str, tokens: Sequence[Token]) -> pa.DataType:
    """The type that these tokens of the script name."""
    try:
        node = parse_type(text, tokens)
    except ScriptError as error:
        raise _no_type(text, place_at(text, tokens[0].start), text[tokens[0].start : tokens[-1].end + 1]) from error
    return arrow_type(text, node, tokens[0].start)


def arrow_type(text: str, node: exp.Expr, offset: int, depth: int = 0) -> pa.DataType:
    """The Arrow type of a type in the syntax tree; `offset` is the place for errors if the node has none."""
    kind = node.this if isinstance(node, exp.DataType) else None
    if isinstance(kind, exp.Interval) or (isinstance(node, exp.Interval) and node.this is None):
        kind = _D.INTERVAL
    if kind in _SIMPLE and not node.args.get("nested") and not node.expressions:
        return _SIMPLE[kind]
    if depth > _DEEPEST:
        raise wrong(
            text, place_at(text, offset), f"this type is nested more than {_DEEPEST} levels deep; use a simpler one"
        )
    parts = node.expressions
    if kind == _D.DECIMAL:
        digits = [int(p.name) if p.name.isdecimal() and len(p.name) < 4 else 0 for p in parts] or [18, 3]
        precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
        if len(digits) <= 2 and 1 <= precision <= 38 and 0 <= scale <= precision:
            return pa.decimal128(precision, scale)
        raise wrong(
            text,
            _place(text, node, offset),
            "DECIMAL has 1 to 38 digits and not more of them behind the point; write it as in DECIMAL(18, 3)",
        )
    if kind in (_D.ARRAY, _D.LIST) and len(parts) == 1 and isinstance(parts[0], exp.DataType):
        return pa.list_(arrow_type(text, parts[0], offset, depth + 1))
    if kind == _D.MAP and len(parts) == 2 and all(isinstance(p, exp.DataType) for p in parts):
        return pa.map_(arrow_type(text, parts[0], offset, depth + 1), arrow_type(text, parts[1], offset, depth + 1))
    if kind == _D.STRUCT and parts and all(isinstance(p, exp.ColumnDef) and p.args.get("kind") for p in parts):
        return pa.struct([(p.name, arrow_type(text, p.args["kind"], offset, depth + 1)) for p in parts])
    if kind in (_D.INT128, _D.UINT128):
        raise wrong(text, _place(text, node, offset), "there are no integers of 128 bits; write DECIMAL(38, 0)")
    if kind in (_D.TIMESTAMP, _D.TIMESTAMPNTZ, _D.TIMESTAMPTZ, _D.TIME):
        name = {_D.TIMESTAMPNTZ: "TIMESTAMP"}.get(kind, kind.value)
        message = f"{name} takes no number of digits, it has microseconds; write {name}"
        raise wrong(text, _place(text, node, offset), message)
    raise _no_type(text, _place(text, node, offset), str(node.args.get("kind") or getattr(kind, "value", "?")))


def _place(text: str, node: exp.Expr, offset: int) -> Place:
    start = start_of(node)
    return place_at(text, offset if start is None else max(start, offset))


def _no_type(text: str, place: Place, written: str) -> ScriptError:
    return wrong(text, place, f"there is no type {shown(written)}{did_you_mean(written, _KNOWN)}")
