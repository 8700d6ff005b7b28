"""Arithmetic with dates, timestamps and intervals.

An interval is a number of microseconds. Months have no fixed length: an interval with months exists only as a constant
that is added to or taken from a time, and there it moves the calendar month, to its last day if the day does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound import types as t
from eddyline.bound.expr import Expr, Literal
from eddyline.bound.functions import calendar
from eddyline.bound.functions.arrays import AnyArray, Bools, strict
from eddyline.bound.functions.build import coerce, make, refuse
from eddyline.bound.functions.casts import DAY

_TAKES = {
    "+": "a time and an interval, two intervals, or a date and days",
    "-": "a time and an interval, two times, two intervals, or a date and days",
}
_DATE_MAX = 2_147_483_646
"""The last day DuckDB has; one more is its infinity, and its opposite is minus infinity."""


def arithmetic(name: str, args: Sequence[Expr]) -> Expr:
    """+ or - where at least one argument is a time or an interval."""
    left, right = (t.logical(a.type) for a in args)
    if t.NULL in (left, right):
        return Literal(None, left if right == t.NULL else right)
    if name == "+" and _is_time(right) and not _is_time(left):
        return arithmetic("+", (args[1], args[0]))  # the moment is the first argument
    if name not in _TAKES:
        raise refuse(name, args, "two numbers")
    minus = name == "-"
    if minus and left == t.DATE == right:
        return make(name, args, t.INT64, strict(lambda a, b: a.astype(np.int64) - b, t.INT64))
    if minus and t.is_zoned(left) and t.is_zoned(right):
        return make(name, args, t.INTERVAL, strict(subtract, t.INTERVAL))
    if minus and _is_time(left) and _is_time(right):
        return make(name, [coerce(a, t.TIMESTAMP) for a in args], t.INTERVAL, strict(subtract, t.INTERVAL))
    if left == t.DATE and t.is_integer(right) and right.bit_width <= 32 and right != t.UINT32:
        return make(name, [args[0], coerce(args[1], t.INT32)], t.DATE, strict(_days(minus), t.DATE))
    if right == t.INTERVAL and (left == t.INTERVAL or _is_time(left)):
        type = t.TIMESTAMP if left == t.DATE else left
        move = subtract if minus else _add
        kernel = strict(_within(move) if _is_moment(type) else move, type)
        return make(name, [coerce(args[0], type), args[1]], type, kernel)
    if right == t.MONTHS and _is_time(left) and isinstance(args[1], Literal):
        type = t.TIMESTAMP if left == t.DATE else left
        return make(name, [coerce(args[0], type)], type, strict(_shift(args[1].value, minus), type), f"{args[1].value}")
    raise refuse(name, args, _TAKES[name])


def _is_moment(type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type))


def _is_time(type: pa.DataType) -> bool:
    return type == t.DATE or _is_moment(type)


def _add(a: AnyArray, b: AnyArray) -> tuple[AnyArray, Bools]:
    result = a + b
    return result, ((a ^ result) & (b ^ result)) < 0


def subtract(a: AnyArray, b: AnyArray) -> tuple[AnyArray, Bools]:
    """a - b, and where that does not fit."""
    result = a - b
    return result, ((a ^ b) & (a ^ result)) < 0


def _within(
    move: Callable[[AnyArray, AnyArray], tuple[AnyArray, Bools]],
) -> Callable[[AnyArray, AnyArray], tuple[AnyArray, Bools]]:
    def moved(moments: AnyArray, by: AnyArray) -> tuple[AnyArray, Bools]:
        result, bad = move(moments, by)
        return result, bad | calendar.outside(result)

    return moved


def _days(minus: bool) -> Callable[[AnyArray, AnyArray], tuple[AnyArray, Bools]]:
    def move(days: AnyArray, by: AnyArray) -> tuple[AnyArray, Bools]:
        moved = days.astype(np.int64) - by if minus else days.astype(np.int64) + by
        return moved, (moved > _DATE_MAX) | (moved < -_DATE_MAX - 2) | (moved == -_DATE_MAX - 1)

    return move


def _shift(interval: object, minus: bool) -> Callable[[AnyArray], tuple[AnyArray, Bools]]:
    months, days, nanos = (int(part) for part in cast(Sequence[int], interval))
    micros = days * DAY + nanos // 1000
    if minus:
        months, micros = -months, -micros

    def move(values: AnyArray) -> tuple[AnyArray, Bools]:
        rest = values % DAY + micros % DAY
        days = _add_months(values, months) + micros // DAY + rest // DAY
        result, bad = _add(days * DAY, rest % DAY)
        return result, bad | calendar.outside(result) | (abs(days) > t.LATEST // DAY)

    return move


def _add_months(values: NDArray[np.int64], months: int) -> NDArray[np.int64]:
    """The days of timestamps `months` calendar months later; the last day of the month if the month is too short."""
    moved = calendar.months(values) + months
    first = calendar.days_of_months(moved)
    length = calendar.days_of_months(moved + 1) - first
    result: NDArray[np.int64] = first + np.minimum(calendar.day(values), length) - 1
    return result
