"""Strings read as values, as DuckDB's CAST reads them.

Arrow's parsers read the plain spelling of values, a whole column at once; other spellings (spaces, exponents,
underscores, short dates, zones) are read in Python, one distinct string at a time.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import types as t
from eddyline.bound.expr import Kernel, Partial, Value
from eddyline.bound.functions.distinct import NotComputable, by_distinct

SPACE = " \t\n\v\f\r"
_DIGITS = r"\d+(?:_\d+)*"
_NUMBER = re.compile(rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?", re.ASCII)
_SPECIAL = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE | re.ASCII)
_DATE = r"(?P<y>-?\d+)(?P<sep>[-/\\ ])(?P<m>\d{1,2})(?P=sep)(?P<d>\d{1,2})(?P<bc>\s*\([bB][cC]\))?"
_TIME = r"(?P<H>\d{1,2}):(?:(?P<M>\d{1,2})(?::(?:(?P<S>\d{1,2})(?:\.(?P<f>\d*))?)?)?)?"
_ZONE = r"(?:\s*(?P<zone>Z|UTC|[+-]\d{2}(?::?\d{2}(?::\d{2})?)?))?"
_DAY_ONLY = re.compile(rf"\s*{_DATE}\s*", re.ASCII)
_MOMENT = re.compile(rf"\s*{_DATE}(?:(?:T|\s+){_TIME}{_ZONE}\s*)?", re.ASCII)
_CLOCK = re.compile(rf"\s*{_TIME}\s*", re.ASCII)
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
_EPOCH = date(1970, 1, 1).toordinal()
_DAYS_OF_400_YEARS = 146_097
_DAY = 86_400_000_000
_TRUE, _FALSE = frozenset({"true", "t", "1", "yes", "y"}), frozenset({"false", "f", "0", "no", "n"})

_PLAIN = {
    "integer": r"^-?[0-9]{1,18}$",
    "float": r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$",
    "date": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "timestamp": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$",
}
"""The spellings that Arrow either reads as DuckDB does or does not read."""


def reader(target: pa.DataType) -> Kernel | None:
    """The kernel that reads strings as `target`; None when there is none."""
    if t.is_integer(target):
        low, high = t.int_bounds(target)
        return _kernel(target, "integer", lambda s: _integer(s, low, high))
    if target in t.FLOATS:
        return _kernel(target, "float", _float)
    if pa.types.is_decimal128(target):
        return _kernel(target, "", lambda s: _decimal(s, target))
    if target == t.BOOL:
        return _kernel(target, "", _boolean)
    if target == t.DATE:
        return _kernel(target, "date", _date)
    if pa.types.is_timestamp(target):
        return _kernel(t.TIMESTAMP, "timestamp", lambda s: _timestamp(s, t.is_zoned(target)))
    if target == t.TIME:
        return _kernel(target, "", _clock)
    return None


def _kernel(target: pa.DataType, plain: str, slow: Callable[[str], object]) -> Kernel:
    def kernel(args: Sequence[Value], rows: int) -> pa.Array | Partial:
        text = args[0]
        if plain:
            easy = pc.match_substring_regex(text, _PLAIN[plain])
            if pc.all(easy, min_count=0).as_py():
                try:
                    return text.cast(target)
                except pa.ArrowInvalid:
                    pass
        return by_distinct(text, target, slow)

    return kernel


def _integer(text: str, low: int, high: int) -> int:
    text = text.strip(SPACE)
    if found := re.fullmatch(r"0([xX][0-9a-fA-F]+|[bB][01]+)", text, re.ASCII):
        value = int(found[0], 0)
    else:
        number = _number(text)
        if low == 0 and text.startswith("-"):
            if number:
                raise NotComputable
            value = 0
        else:
            value = int(number.to_integral_value(context=_EXACT))
    if not low <= value <= high:
        raise NotComputable
    return value


def _number(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise NotComputable
    number = Decimal(text.replace("_", ""))
    if number and not -400 < number.adjusted() < 400:
        if number.adjusted() > 0:
            raise NotComputable
        return Decimal(0)
    return number


def _float(text: str) -> float:
    text = text.strip(SPACE)
    if _NUMBER.fullmatch(text) or _SPECIAL.fullmatch(text):
        return float(text)
    raise NotComputable


def _decimal(text: str, target: pa.DataType) -> Decimal:
    number = _number(text.strip(SPACE))
    try:
        number = number.quantize(Decimal(1).scaleb(-target.scale), context=_EXACT)
    except InvalidOperation as error:
        raise NotComputable from error
    if abs(number) >= Decimal(10) ** (target.precision - target.scale):
        raise NotComputable
    return number


def _boolean(text: str) -> bool:
    low = text.lower()
    if low in _TRUE or low in _FALSE:
        return low in _TRUE
    raise NotComputable


def _day(found: re.Match[str]) -> int:
    """Days since 1970; years may have more digits than Python's dates take."""
    year, month, day = int(found["y"]), int(found["m"]), int(found["d"])
    year = 1 - year if found["bc"] else year
    if len(found["y"]) > 7 or not 1 <= month <= 12 or not 1 <= day <= monthrange(2000 + year % 400, month)[1]:
        raise NotComputable
    return date(2000 + year % 400, month, day).toordinal() - _EPOCH + (year // 400 - 5) * _DAYS_OF_400_YEARS


def _time(found: re.Match[str]) -> int:
    """Microseconds since midnight."""
    hour, minute, second = int(found["H"]), int(found["M"] or 0), int(found["S"] or 0)
    micro = int((found["f"] or "")[:6].ljust(6, "0"))
    if minute > 59 or second > 59 or hour > 24 or (hour == 24 and (minute or second or micro)):
        raise NotComputable
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + micro


def _date(text: str) -> int:
    found = _DAY_ONLY.fullmatch(text) or _MOMENT.fullmatch(text)
    if not found:
        raise NotComputable
    if found.re is _MOMENT:
        _time(found)
    days = _day(found)
    if not -(2**31) < days < 2**31 - 1:
        raise NotComputable
    return days


def _timestamp(text: str, zoned: bool) -> int:
    found = _MOMENT.fullmatch(text)
    if not found:
        raise NotComputable
    moment = _day(found) * _DAY
    if found["H"] is not None:
        moment += _time(found) - (_offset(found["zone"]) if zoned else 0)
    if not t.EARLIEST <= moment <= t.LATEST:
        raise NotComputable
    return moment


def _offset(zone: str | None) -> int:
    """Microseconds that a zone is ahead of UTC."""
    if zone is None or zone in ("Z", "UTC"):
        return 0
    seconds = sum(int(part) * unit for part, unit in zip(re.findall(r"\d\d", zone), (3600, 60, 1), strict=False))
    return (-seconds if zone[0] == "-" else seconds) * 1_000_000


def _clock(text: str) -> int:
    found = _CLOCK.fullmatch(text)
    if not found:
        return _timestamp(text, False) % _DAY
    time = _time(found)
    if time >= _DAY:
        raise NotComputable
    return time
