"""The parts of a moment and the starts of its units, on arrays of microseconds since 1970 in UTC.

Everything is floor division of integers and NumPy's proleptic Gregorian calendar, so moments before 1970 need no care.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eddyline.bound.types import EARLIEST, LATEST

Moments = NDArray[np.int64]

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
FIXED = {"microsecond": 1, "millisecond": 1000, "second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}
"""Units that are always equally long, in microseconds."""


def outside(moments: Moments) -> NDArray[np.bool_]:
    """Which moments are outside the range of timestamps."""
    return (moments < EARLIEST) | (moments > LATEST)


def days(moments: Moments) -> Moments:
    """Days since 1970-01-01."""
    return moments // DAY


def _lookup(keys: Moments, function: Callable[[Moments], Moments]) -> Moments:
    """A function of days or months, computed once for each distinct key: a batch has few, so this takes a tenth of the
    time."""
    if not len(keys):
        return keys
    first, last = int(keys.min()), int(keys.max())
    if last - first > len(keys):
        return function(keys)
    found: Moments = function(np.arange(first, last + 1))[keys - first]
    return found


def months(moments: Moments) -> Moments:
    """Months since January 1970."""
    return _lookup(days(moments), lambda d: d.astype("M8[D]").astype("M8[M]").astype(np.int64))


def year(moments: Moments) -> Moments:
    """The year; the one before 1 is 0."""
    return months(moments) // 12 + 1970


def month(moments: Moments) -> Moments:
    """1 to 12."""
    return months(moments) % 12 + 1


def day(moments: Moments) -> Moments:
    """The day of the month, from 1."""
    return days(moments) - days_of_months(months(moments)) + 1


def days_of_months(count: Moments) -> Moments:
    """The first day of months counted from January 1970."""
    return _lookup(count, lambda m: m.astype("M8[M]").astype("M8[D]").astype(np.int64))


def day_of_year(moments: Moments) -> Moments:
    """The day of the year, from 1."""
    return days(moments) - days_of_months((year(moments) - 1970) * 12) + 1


def weekday(moments: Moments) -> Moments:
    """0 is Monday."""
    return (days(moments) + 3) % 7


def _thursday(moments: Moments) -> Moments:
    """The Thursday of the ISO week, which decides its year."""
    return (days(moments) - weekday(moments) + 3) * DAY


def iso_year(moments: Moments) -> Moments:
    """The year that the ISO week belongs to."""
    return year(_thursday(moments))


def iso_week(moments: Moments) -> Moments:
    """The number of the ISO week, from 1."""
    return (day_of_year(_thursday(moments)) - 1) // 7 + 1


PARTS: dict[str, Callable[[Moments], NDArray[Any]]] = {
    "year": year,
    "quarter": lambda m: (month(m) + 2) // 3,
    "month": month,
    "week": iso_week,
    "day": day,
    "doy": day_of_year,
    "dow": lambda m: (weekday(m) + 1) % 7,
    "isodow": lambda m: weekday(m) + 1,
    "isoyear": iso_year,
    "hour": lambda m: m % DAY // HOUR,
    "minute": lambda m: m % HOUR // MINUTE,
    "second": lambda m: m % MINUTE // SECOND,
    "millisecond": lambda m: m % MINUTE // 1000,
    "microsecond": lambda m: m % MINUTE,
    "epoch": lambda m: m / 1e6,
}
"""The function of each unit of extract; millisecond and microsecond include the seconds of the minute."""


def start(unit: str) -> Callable[[Moments], Moments]:
    """The function for date_trunc: the start of the unit that a moment is in. A start before the first timestamp
    overflows to a later moment."""
    if unit in FIXED:
        return lambda m: m - m % FIXED[unit]
    if unit == "week":
        return lambda m: (days(m) - weekday(m)) * DAY
    step = {"month": 1, "quarter": 3, "year": 12}[unit]
    return lambda m: days_of_months(months(m) // step * step) * DAY


def crossed(unit: str) -> Callable[[Moments, Moments], Moments]:
    """The function for date_diff: how many starts of the unit lie between two moments."""
    if unit in FIXED:
        return lambda a, b: b // FIXED[unit] - a // FIXED[unit]
    step = {"month": 1, "quarter": 3, "year": 12}[unit]
    return lambda a, b: months(b) // step - months(a) // step


def last_day(moments: Moments) -> Moments:
    """The last day of the month, as days since 1970-01-01."""
    return days_of_months(months(moments) + 1) - 1
