"""Clock times of a zone and moments: AT TIME ZONE.

A zone is a table of transitions, made from Python's zone data for each year in which a time occurs. A clock time that a
transition repeats means the later moment; a clock time that a transition skips is read as if the clock had not been
changed yet. Both are DuckDB's rules: the new offset holds from the clock time at which it begins.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from eddyline.bound import types as t
from eddyline.bound.expr import Expr, Literal
from eddyline.bound.functions import calendar
from eddyline.bound.functions.arrays import AnyArray, Bools, strict
from eddyline.bound.functions.build import constant, count, is_null, make, refuse
from eddyline.bound.functions.table import Function
from eddyline.bound.types import TypeMismatch
from eddyline.cql.names import did_you_mean
from eddyline.cql.places import shown

_FIRST, _LAST = 1800, 2440
"""Years with transitions of their own: before, a zone has one offset; after, its rules repeat every 400 years."""
_CYCLE = 146_097 * calendar.DAY
_STEP = 4 * 86_400
"""The step in seconds in which transitions are searched: no two transitions are that close."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Zone:
    """One time zone."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._info = ZoneInfo(name)
        self._of_year = lru_cache(maxsize=1024)(self._look)
        self._table = lru_cache(maxsize=64)(self._between)

    def local(self, moments: AnyArray) -> AnyArray:
        """The times that a clock of the zone shows, in microseconds since 1970 as if the clock were in UTC."""
        return moments + self._offsets(moments, clock=False)

    def moments(self, clocks: AnyArray) -> AnyArray:
        """The moments at which a clock of the zone shows these times."""
        return clocks - self._offsets(clocks, clock=True)

    def _offsets(self, times: AnyArray, clock: bool) -> AnyArray:
        if not len(times):
            return times
        last = (_LAST - 1970) * 365.2425 * calendar.DAY
        times = np.where(times > last, (times - int(last)) % _CYCLE + int(last) - _CYCLE, times)
        years = np.clip(calendar.year(times), _FIRST, _LAST)
        at, before, after = self._table(int(years.min()) - 1, int(years.max()) + 1)
        begins = at + after if clock else at
        place = np.searchsorted(begins, times, side="right")
        known: AnyArray = np.append(before, after[-1:] if len(after) else self._offset(_second(int(years[0]))))
        return known[place]

    def _between(self, first: int, last: int) -> tuple[AnyArray, AnyArray, AnyArray]:
        """The transitions of years, in microseconds: when, and the offsets before and after."""
        found = [one for year in range(first, last + 1) for one in self._of_year(year)]
        table = np.array(found, np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]

    def _look(self, year: int) -> list[tuple[int, int, int]]:
        found = []
        start, end = _second(year), _second(year + 1)
        for low in range(start, end, _STEP):
            high = min(low + _STEP, end)
            before, after = self._offset(low), self._offset(high)
            if before != after:
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (low, middle) if self._offset(middle) != before else (middle, high)
                found.append((high * calendar.SECOND, before, after))
        return found

    def _offset(self, second: int) -> int:
        offset = (_EPOCH + timedelta(seconds=second)).astimezone(self._info).utcoffset()
        assert offset is not None
        return offset // timedelta(microseconds=1)


def _second(year: int) -> int:
    return int((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())


@cache
def zone(name: str) -> Zone:
    """The zone of a name, in any case; TypeMismatch if there is none."""
    known = {one.lower(): one for one in available_timezones()}
    if name.lower() not in known:
        raise TypeMismatch(f"there is no time zone {shown(name)}{did_you_mean(name, sorted(known.values()))}", name)
    return Zone(known[name.lower()])


def _timezone(args: tuple[Expr, ...], variant: str) -> Expr:
    count("timezone", args, 2)
    name, value = constant("timezone", args[0], "the zone"), args[1]
    if name is None:
        return Literal(None, t.TIMESTAMP if t.is_zoned(value.type) else t.TIMESTAMPTZ)
    if not isinstance(name, str) or not (t.is_moment(value.type) or is_null(value)):
        raise refuse("AT TIME ZONE", args, "a timestamp and the name of a zone, as in ts AT TIME ZONE 'Europe/Berlin'")
    place = zone(name)
    known = t.is_zoned(value.type)
    move = place.local if known else place.moments

    def kernel(times: AnyArray) -> tuple[AnyArray, Bools]:
        near = (times > t.EARLIEST + 2 * calendar.DAY) & (times < t.LATEST - 2 * calendar.DAY)
        return move(np.where(near, times, 0)), ~near

    return make("timezone", [value], t.TIMESTAMP if known else t.TIMESTAMPTZ, strict(kernel, t.TIMESTAMP), place.name)


FUNCTIONS = (
    Function(
        "timezone",
        "Dates and times",
        "x AT TIME ZONE 'zone', timezone('zone', x)",
        "TIMESTAMP of a TIMESTAMPTZ; TIMESTAMPTZ of a TIMESTAMP",
        "What a clock of the zone shows at a moment; the moment at which a clock of the zone shows a time.",
        _timezone,
    ),
)
