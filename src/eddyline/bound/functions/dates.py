"""Functions of dates and timestamps; timestamps with a zone are taken in UTC."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import types as t
from eddyline.bound.expr import Expr, Literal, Value
from eddyline.bound.functions import calendar
from eddyline.bound.functions.arrays import AnyArray, Bools, from_numpy, nulls_of, strict, to_numpy
from eddyline.bound.functions.build import coerce, constant, count, is_null, make, refuse
from eddyline.bound.functions.names import DAYS, MONTHS
from eddyline.bound.functions.table import Function, Resolve
from eddyline.bound.functions.times import subtract
from eddyline.bound.types import TypeMismatch

_SPELLINGS = {
    "millisecond": ("milliseconds", "ms", "msec", "msecs"),
    "microsecond": ("microseconds", "us", "usec", "usecs"),
    "second": ("seconds", "sec", "secs", "s"),
    "minute": ("minutes", "min", "mins"),
    "hour": ("hours", "hr", "hrs", "h"),
    "day": ("days", "dayofmonth", "d"),
    "week": ("weeks", "weekofyear", "w"),
    "month": ("months", "mon", "mons"),
    "quarter": ("quarters",),
    "year": ("years", "yr", "yrs", "y"),
    "dow": ("dayofweek", "weekday"),
    "doy": ("dayofyear",),
    "isodow": (),
    "isoyear": (),
    "epoch": (),
}
_UNITS = {spelling: unit for unit, others in _SPELLINGS.items() for spelling in (unit, *others)}
_TRUNCATE = (*calendar.FIXED, "week", "month", "quarter", "year")
_CROSS = (*calendar.FIXED, "month", "quarter", "year")


def _unit(name: str, args: Sequence[Expr], variant: str, known: Sequence[str]) -> tuple[str, list[Expr]]:
    """The unit, from the variant or the first argument, and the other arguments."""
    rest = list(args)
    if not variant:
        if not rest:
            raise TypeMismatch(f"{name} needs a unit")
        variant = str(constant(name, rest.pop(0), "the unit"))
    unit = _UNITS.get(variant.lower(), "")
    if unit not in known:
        raise TypeMismatch(f"{name} has no unit {variant}: it has {', '.join(known)}")
    return unit, rest


def moment(name: str, arg: Expr) -> Expr:
    """The argument as a timestamp."""
    type = t.logical(arg.type)
    if type != t.DATE and not pa.types.is_timestamp(type) and not is_null(arg):
        raise refuse(name, [arg], "a date or a timestamp")
    return coerce(arg, type if pa.types.is_timestamp(type) else t.TIMESTAMP)


def _date_trunc(args: tuple[Expr, ...], variant: str) -> Expr:
    unit, rest = _unit("date_trunc", args, variant, _TRUNCATE)
    count("date_trunc", rest, 1)
    value = moment("date_trunc", rest[0])
    start = calendar.start(unit)
    return make("date_trunc", [value], t.logical(value.type), strict(lambda m: _begun(start(m), m), t.TIMESTAMP), unit)


def _begun(starts: AnyArray, moments: AnyArray) -> tuple[AnyArray, Bools]:
    """The starts of the units that moments are in, and which of them lie before the first timestamp."""
    return starts, (starts > moments) | calendar.outside(starts)


def _extract(args: tuple[Expr, ...], variant: str) -> Expr:
    unit, rest = _unit("extract", args, variant, tuple(calendar.PARTS))
    count("extract", rest, 1)
    type = t.DOUBLE if unit == "epoch" else t.INT64
    interval = unit == "epoch" and t.logical(rest[0].type) == t.INTERVAL
    value = rest[0] if interval else moment("extract", rest[0])
    return make("extract", [value], type, strict(calendar.PARTS[unit], type), unit)


def _epoch(args: tuple[Expr, ...], variant: str) -> Expr:
    count("epoch", args, 1)
    return _extract(args, "epoch")


def _date_diff(args: tuple[Expr, ...], variant: str) -> Expr:
    unit, rest = _unit("date_diff", args, variant, _CROSS)
    count("date_diff", rest, 2)
    moments = [moment("date_diff", a) for a in rest]
    kernel = strict(subtract if unit == "microsecond" else calendar.crossed(unit), t.INT64)
    return make("date_diff", moments[::-1] if unit == "microsecond" else moments, t.INT64, kernel, unit)


def _from_moment(
    name: str, function: Callable[[AnyArray], AnyArray | tuple[AnyArray, Bools]], gives: pa.DataType
) -> Resolve:
    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 1)
        return make(name, [moment(name, args[0])], gives, strict(function, gives))

    return resolve


def _named(name: str, index: Callable[[AnyArray], AnyArray], words: Sequence[str]) -> Resolve:
    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        return pa.array(words).take(from_numpy(index(to_numpy(args[0])), t.INT64, nulls_of(args)))

    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 1)
        return make(name, [moment(name, args[0])], t.STRING, kernel)

    return resolve


_BUCKET_ORIGIN = 946_857_600 * calendar.SECOND
"""2000-01-03, a Monday: where DuckDB starts to count buckets."""


def _time_bucket(args: tuple[Expr, ...], variant: str) -> Expr:
    count("time_bucket", args, 2)
    width = args[0].value if isinstance(args[0], Literal) and args[0].type == t.INTERVAL else None
    if not isinstance(width, int) or width <= 0 or t.logical(args[1].type) == t.DATE:
        raise refuse("time_bucket", args, "a constant interval above zero without months, and a timestamp")
    value = moment("time_bucket", args[1])

    origin = _BUCKET_ORIGIN % width

    def bucket(moments: AnyArray) -> tuple[AnyArray, Bools]:
        since, before = subtract(moments, np.array([origin]))
        starts, bad = _begun(moments - since % width, moments)
        return starts, bad | before

    return make("time_bucket", [value], t.logical(value.type), strict(bucket, t.TIMESTAMP), f"{width}")


def _number(index: Callable[[AnyArray], AnyArray], width: int) -> Callable[[pa.Array], pa.Array]:
    def write(moments: pa.Array) -> pa.Array:
        return pc.utf8_lpad(pa.array(index(to_numpy(moments))).cast(t.STRING), width, "0")

    return write


def _word(index: Callable[[AnyArray], AnyArray], words: Sequence[str]) -> Callable[[pa.Array], pa.Array]:
    # No array is made at import: Arrow imports pandas, if it is installed, when it makes its first array.
    return lambda moments: pa.array(words).take(pa.array(index(to_numpy(moments))))


def _year(moments: pa.Array) -> pa.Array:
    years = pa.array(calendar.year(to_numpy(moments)))
    text = years.cast(t.STRING)
    return pc.if_else(pc.less(years, 0), text, pc.utf8_lpad(text, 4, "0"))


_PARTS = calendar.PARTS
_CODES = {
    "Y": _year,
    "y": _number(lambda m: abs(calendar.year(m)) % 100, 2),
    "m": _number(_PARTS["month"], 2),
    "d": _number(_PARTS["day"], 2),
    "j": _number(_PARTS["doy"], 3),
    "H": _number(_PARTS["hour"], 2),
    "I": _number(lambda m: (_PARTS["hour"](m) + 11) % 12 + 1, 2),
    "M": _number(_PARTS["minute"], 2),
    "S": _number(_PARTS["second"], 2),
    "f": _number(lambda m: m % calendar.SECOND, 6),
    "w": _number(_PARTS["dow"], 1),
    "u": _number(_PARTS["isodow"], 1),
    "p": _word(lambda m: _PARTS["hour"](m) // 12, ("AM", "PM")),
    "a": _word(calendar.weekday, [d[:3] for d in DAYS]),
    "A": _word(calendar.weekday, DAYS),
    "b": _word(lambda m: calendar.month(m) - 1, [m[:3] for m in MONTHS]),
    "B": _word(lambda m: calendar.month(m) - 1, MONTHS),
}


def _strftime(args: tuple[Expr, ...], variant: str) -> Expr:
    count("strftime", args, 2)
    if isinstance(args[0], Literal) and isinstance(args[0].value, str):
        args = (args[1], args[0])
    form = constant("strftime", args[1], "the format")
    if form is None:
        return Literal(None, t.STRING)
    if not form:
        raise TypeMismatch("the format of strftime must not be empty")
    pieces = _pieces(str(form))

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        moments = args[0]
        written = [p if isinstance(p, pa.Scalar) else p(moments) for p in pieces]
        text = pc.binary_join_element_wise(*written, "")
        if isinstance(text, pa.Scalar):
            text = pa.repeat(text, rows)
        return pc.if_else(moments.is_valid(), text, pa.scalar(None, t.STRING)) if moments.null_count else text

    return make("strftime", [moment("strftime", args[0])], t.STRING, kernel, str(form))


def _pieces(form: str) -> list[pa.Scalar | Callable[[pa.Array], pa.Array]]:
    pieces: list[pa.Scalar | Callable[[pa.Array], pa.Array]] = []
    rest = form
    while rest:
        plain, percent, rest = rest.partition("%")
        if plain:
            pieces.append(pa.scalar(plain))
        if percent:
            code, rest = rest[:1], rest[1:]
            if (code != "%" and code not in _CODES) or not code:
                raise TypeMismatch(f"strftime has no code %{code}: it has {' '.join('%' + c for c in _CODES)} %%")
            pieces.append(pa.scalar("%") if code == "%" else _CODES[code])
    return pieces


def _entry(
    name: str, takes: str, gives: str, doc: str, resolve: Resolve, aliases: dict[str, str] | None = None
) -> Function:
    return Function(name, "Dates and times", takes, gives, doc, resolve, aliases or {})


_PART_NAMES = {
    **{u: u for u in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")},
    **{u: u for u in ("millisecond", "microsecond", "isodow", "isoyear")},
    "dayofweek": "dow",
    "weekday": "dow",
    "dayofyear": "doy",
    "dayofmonth": "day",
    "weekofyear": "week",
    "date_part": "",
    "datepart": "",
}

FUNCTIONS = (
    _entry(
        "date_trunc",
        "date_trunc('unit', x)",
        "TIMESTAMP",
        f"The start of the unit: {', '.join(_TRUNCATE)}.",
        _date_trunc,
        {"datetrunc": ""},
    ),
    _entry(
        "extract",
        "extract(unit FROM x), date_part('unit', x), year(x), ...",
        "BIGINT; epoch: DOUBLE",
        f"A part: {', '.join(calendar.PARTS)}. Weeks are ISO weeks, dow counts from Sunday = 0.",
        _extract,
        _PART_NAMES,
    ),
    _entry(
        "date_diff",
        "date_diff('unit', x, y)",
        "BIGINT",
        f"How many starts of a unit lie between x and y: {', '.join(_CROSS)}.",
        _date_diff,
        {"datediff": ""},
    ),
    _entry(
        "time_bucket",
        "time_bucket(INTERVAL 'n' UNIT, x)",
        "the type of x",
        "The start of the bucket of constant width, counted from 2000-01-03.",
        _time_bucket,
    ),
    _entry("epoch", "epoch(x)", "DOUBLE", "Seconds since 1970, or of an interval.", _epoch),
    _entry(
        "epoch_us", "epoch_us(x)", "BIGINT", "Microseconds since 1970.", _from_moment("epoch_us", np.asarray, t.INT64)
    ),
    _entry(
        "last_day",
        "last_day(x)",
        "DATE",
        "The last day of the month.",
        _from_moment("last_day", calendar.last_day, t.DATE),
    ),
    _entry("dayname", "dayname(x)", "VARCHAR", "Monday to Sunday.", _named("dayname", calendar.weekday, DAYS)),
    _entry(
        "monthname",
        "monthname(x)",
        "VARCHAR",
        "January to December.",
        _named("monthname", lambda m: calendar.month(m) - 1, MONTHS),
    ),
    _entry(
        "strftime",
        "strftime(x, 'format')",
        "VARCHAR",
        f"Written by a constant format: {' '.join('%' + c for c in _CODES)} %%.",
        _strftime,
    ),
)
