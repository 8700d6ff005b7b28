"""Times from and to numbers since 1970."""

from __future__ import annotations

import numpy as np

from eddyline.bound import types as t
from eddyline.bound.expr import Expr
from eddyline.bound.functions import decimals
from eddyline.bound.functions.arrays import AnyArray, Bools, strict
from eddyline.bound.functions.build import coerce, count, is_null, make, refuse
from eddyline.bound.functions.dates import moment
from eddyline.bound.functions.table import Function, Resolve


def _since(name: str, unit: int, what: str) -> Resolve:
    """A function from the number of units since 1970 to a time; `unit` is in microseconds."""

    def move(units: AnyArray) -> tuple[AnyArray, Bools]:
        fits = (units >= -(-t.EARLIEST // unit)) & (units <= t.LATEST // unit)
        return np.where(fits, units, 0) * unit, ~fits

    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 1)
        if not _is_whole(args[0]) and not is_null(args[0]):
            raise refuse(name, args, f"{what} since 1970 (BIGINT)")
        return make(name, [coerce(args[0], t.INT64)], t.TIMESTAMP, strict(move, t.TIMESTAMP))

    return resolve


def _is_time(arg: Expr) -> bool:
    type = t.logical(arg.type)
    return type == t.DATE or t.is_moment(type)


def _is_whole(arg: Expr) -> bool:
    type = t.logical(arg.type)
    return t.is_integer(type) and type != t.UINT64


_to_time = _since("epoch_ms", 1000, "a date, a timestamp, or milliseconds")


def _epoch_ms(args: tuple[Expr, ...], variant: str) -> Expr:
    """epoch_ms: from a time to milliseconds, or from milliseconds to a time."""
    if len(args) != 1 or _is_whole(args[0]) or not _is_time(args[0]):
        return _to_time(args, variant)
    kernel = strict(lambda m: (decimals.rescale(m, -3, 19), m > 2**63 - 501), t.INT64)
    return make("epoch_ms", [moment("epoch_ms", args[0])], t.INT64, kernel)


def _to_timestamp(args: tuple[Expr, ...], variant: str) -> Expr:
    count("to_timestamp", args, 1)
    if not t.is_number(t.logical(args[0].type)) and not is_null(args[0]):
        raise refuse("to_timestamp", args, "seconds since 1970 (DOUBLE)")

    def move(seconds: AnyArray) -> tuple[AnyArray, Bools]:
        micros = np.rint(seconds * 1e6)
        fits = (micros >= t.EARLIEST) & (micros < 2.0**63)
        return np.where(fits, micros, 0).astype(np.int64), ~fits

    return make("to_timestamp", [coerce(args[0], t.DOUBLE)], t.TIMESTAMPTZ, strict(move, t.TIMESTAMP))


def _entry(name: str, takes: str, gives: str, doc: str, resolve: Resolve) -> Function:
    return Function(name, "Dates and times", takes, gives, doc, resolve)


FUNCTIONS = (
    _entry(
        "epoch_ms",
        "epoch_ms(x), epoch_ms(ms)",
        "BIGINT; of a BIGINT: TIMESTAMP",
        "Milliseconds since 1970, rounded; the moment `ms` milliseconds after 1970.",
        _epoch_ms,
    ),
    _entry(
        "make_timestamp",
        "make_timestamp(us)",
        "TIMESTAMP",
        "The moment `us` microseconds after 1970.",
        _since("make_timestamp", 1, "microseconds"),
    ),
    _entry(
        "make_timestamp_ms",
        "make_timestamp_ms(ms)",
        "TIMESTAMP",
        "The moment `ms` milliseconds after 1970.",
        _since("make_timestamp_ms", 1000, "milliseconds"),
    ),
    _entry(
        "to_timestamp",
        "to_timestamp(seconds)",
        "TIMESTAMPTZ",
        "The moment `seconds` seconds after 1970; they may have a fraction.",
        _to_timestamp,
    ),
)
