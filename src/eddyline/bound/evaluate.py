"""Evaluating expressions over columns: whole arrays at once, never a traceback for a row.

Every node is one kernel call. Rows that a kernel cannot compute are NULL at that node and counted, so the order in
which predicates are applied never matters. A kernel that raises is run again on parts of its rows until each failing
row is alone; kernels for which many rows may fail find these rows themselves. A row fails only after it failed alone,
so its value never depends on its neighbours: at worst a kernel is called a little more than once per row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound import types as t
from eddyline.bound.expr import Call, Expr, Literal, Partial, SourceColumn, Value
from eddyline.bound.functions.arrays import truth
from eddyline.cql.places import shown
from eddyline.errors import InternalError, JobError

FAILURES = (ValueError, ArithmeticError, MemoryError, pa.ArrowCapacityError)
"""The errors that a kernel raises when a row cannot be computed, or when its rows together are too large."""
_PARTS = 16
_ROOM = 2**31 - 1
"""The most bytes that the strings of one array may have."""


class ErrorCount:
    """How many values could not be computed (`expression_errors`)."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        """The message of a user function's first failure, or the first cast of a column that failed."""


def evaluate(expr: Expr, env: Mapping[Expr, pa.Array], rows: int, errors: ErrorCount) -> pa.Array:
    """The values of an expression for `rows` rows; `env` holds those of columns and any others already known."""
    value = _value(expr, env, rows, errors)
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value


def mask(expr: Expr, env: Mapping[Expr, pa.Array], rows: int, errors: ErrorCount) -> NDArray[np.bool_]:
    """Where a predicate is true; NULL is not."""
    value = _value(expr, env, rows, errors)
    if isinstance(value, pa.Scalar):
        return np.full(rows, value.as_py() is True)
    if value.type == t.NULL:
        return np.zeros(rows, bool)
    return truth(value)


def _value(expr: Expr, env: Mapping[Expr, pa.Array], rows: int, errors: ErrorCount) -> Value:
    found = env.get(expr)
    if found is not None:
        return found
    if isinstance(expr, Literal):
        return _scalar(expr)
    if not isinstance(expr, Call):
        raise InternalError(f"no values for {expr}")
    raw = [_value(a, env, rows, errors) for a in expr.args]
    shortcut = _by_dictionary(expr, raw, rows)
    if shortcut is not None:
        return shortcut
    args = [_decoded(value) for value in raw]
    constant = all(isinstance(a, pa.Scalar) for a in args)
    if constant:  # once, for all rows
        args, length = [pa.repeat(a, 1) for a in args], 1
    else:
        length = rows
    values, failed = _run(expr, args, length, errors)
    errors.count += failed * rows if constant else failed
    if failed and not errors.first:
        errors.first = _first_cast(expr, args, values)
    values = _typed(values, expr.type)
    return values[0] if constant else values


def _first_cast(call: Call, args: Sequence[Value], values: Value) -> str:
    """The first text of a column that could not be cast; "" for other calls."""
    if call.name != "cast" or not isinstance(column := call.args[0], SourceColumn):
        return ""
    arg = args[0]
    if not pa.types.is_string(arg.type):
        return ""
    row = pc.index(pc.and_(arg.is_valid(), values.is_null()), True).as_py()
    return "" if row < 0 else f"CAST({column.name} AS {call.variant}) of {shown(str(arg[row].as_py()))}"


def _decoded(value: Value) -> Value:
    return t.decode(pa.repeat(value, 1))[0] if isinstance(value, pa.Scalar) else t.decode(value)


def _by_dictionary(expr: Call, args: Sequence[Value], rows: int) -> pa.Array | None:
    """A call of one dictionary array: computed for the dictionary's values and for NULL, then looked up; None for other
    calls.

    Also None if a value cannot be computed: failing rows must be counted one by one, as other calls do.
    """
    arrays = [a for a in args if not isinstance(a, pa.Scalar)]
    if len(arrays) != 1 or not pa.types.is_dictionary(arrays[0].type) or 2 * len(arrays[0].dictionary) > rows:
        return None
    known, codes = arrays[0].dictionary, arrays[0].indices
    values = t.decode(pa.concat_arrays([known, pa.nulls(1, known.type)]))
    try:
        result = expr.kernel([_decoded(a) if isinstance(a, pa.Scalar) else values for a in args], len(values))
    except FAILURES:
        return None
    if isinstance(result, Partial):
        return None
    if codes.null_count:  # as 64-bit integers: the codes' own type may not hold one more
        codes = codes.cast(pa.int64()).fill_null(len(known))
    return _typed(result, expr.type).take(codes)


@lru_cache(maxsize=4096)
def _scalar(literal: Literal) -> pa.Scalar:
    return pa.scalar(literal.value, literal.type)


def _typed(values: pa.Array, type: pa.DataType) -> pa.Array:
    """The same values under the type of the expression; kernels do not see time zones."""
    if values.type == type:
        return values
    if pa.types.is_timestamp(type) and values.type == t.TIMESTAMP:
        return values.view(type)
    if values.type == t.NULL:
        return pa.nulls(len(values), type)
    if _is_alike(values.type, type):
        return values.cast(type)
    raise InternalError(f"a kernel gave {values.type} for {type}")


def _is_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether only the widths of offsets inside nested types differ."""
    if t.is_list(one) and t.is_list(other):
        return _is_alike(one.value_type, other.value_type)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return one.names == other.names and all(_is_alike(a.type, b.type) for a, b in zip(one, other, strict=True))
    return bool(t.logical(one) == t.logical(other))


def _run(call: Call, args: Sequence[Value], rows: int, errors: ErrorCount) -> tuple[pa.Array, int]:
    """The values of a call, and how many of them could not be computed."""
    whole = _attempt(call, args, rows, errors)
    if whole is not None:
        return (whole.values, whole.failed) if isinstance(whole, Partial) else (whole, 0)
    pieces: list[pa.Array] = []
    failed = lost = size = 0
    for result in _pieces(call, args, rows, errors):
        if result is None:
            lost += 1
            continue
        if lost:
            pieces.append(pa.nulls(lost, t.physical(call.type)))
            failed, lost = failed + lost, 0
        pieces.append(result.values if isinstance(result, Partial) else result)
        failed += result.failed if isinstance(result, Partial) else 0
        size += pieces[-1].nbytes
        if size > _ROOM and len(pieces) > 1:
            raise JobError(f"the values of {call.name} for {rows} rows take more than 2 GB: make them shorter")
    if lost or not pieces:
        pieces.append(pa.nulls(lost, t.physical(call.type)))
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces), failed + lost


def _attempt(call: Call, args: Sequence[Value], rows: int, errors: ErrorCount) -> pa.Array | Partial | None:
    """The result of a call, None if some row cannot be computed."""
    try:
        return call.kernel(args, rows)
    except FAILURES as error:
        if call.expensive and not errors.first:
            errors.first = str(error)
        return None


def _pieces(call: Call, args: Sequence[Value], rows: int, errors: ErrorCount) -> Iterator[pa.Array | Partial | None]:
    """The results of a call that failed, for one part of the rows after the other; None for a row that cannot be
    computed."""
    if rows <= 1:
        yield None if rows else pa.nulls(0, t.physical(call.type))
        return
    size = 1
    while size * _PARTS < rows:
        size *= _PARTS
    for start in range(0, rows, size):
        length = min(size, rows - start)
        part = _part(args, start, length)
        result = _attempt(call, part, length, errors)
        if result is not None:
            yield result
        else:
            yield from _pieces(call, part, length, errors)


def _part(args: Sequence[Value], start: int, length: int) -> list[Value]:
    return [a if isinstance(a, pa.Scalar) else a.slice(start, length) for a in args]
