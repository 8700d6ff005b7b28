"""Units of time, and lengths of time in text: `30 minutes`, `1 hour 30 minutes`."""

from __future__ import annotations

import re
from decimal import Decimal

UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 7 * 86_400_000_000,
}
MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12, "DECADE": 120, "CENTURY": 1200, "MILLENNIUM": 12000}
"""Units without a fixed length, in months."""
_ABBREVIATIONS = {
    "US": "MICROSECOND", "USEC": "MICROSECOND", "MS": "MILLISECOND", "MSEC": "MILLISECOND", "S": "SECOND",
    "SEC": "SECOND", "M": "MINUTE", "MIN": "MINUTE", "H": "HOUR", "HR": "HOUR", "D": "DAY", "W": "WEEK", "MON": "MONTH",
    "Y": "YEAR", "YR": "YEAR", "CENTURIE": "CENTURY", "MILLENNIA": "MILLENNIUM",
}  # fmt: skip
LONGEST = 10_000 * 366 * UNITS["DAY"]
"""Ten thousand years: sums of an event time and a few of these stay within 64 bits."""
_PART = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+))\s*([a-z]+)\s*", re.IGNORECASE)
_LONGEST_NUMBER = 25


def unit_of(word: str) -> str | None:
    """The long singular name of a unit of time, None if the word is not a unit.

    >>> unit_of("minutes"), unit_of("ms"), unit_of("fortnight")
    ('MINUTE', 'MILLISECOND', None)
    """
    upper = word.upper()
    for name in (upper, upper.removesuffix("S")):
        name = _ABBREVIATIONS.get(name, name)
        if name in UNITS or name in MONTHS:
            return name
    return None


def amount(number: str, unit: str) -> int | None:
    """A number of units in microseconds (in months for units without a fixed length); None if that is not a whole
    number."""
    if len(number) > _LONGEST_NUMBER:
        return None
    exact = Decimal(number) * UNITS.get(unit, MONTHS.get(unit, 0))
    return int(exact) if exact == exact.to_integral_value() else None


def duration_text(micros: int) -> str:
    """Format a length of time in the largest unit that divides it.

    >>> duration_text(120_000_000), duration_text(3_600_000_000), duration_text(5_400_000_000), duration_text(0)
    ('2 minutes', '1 hour', '90 minutes', '0 seconds')
    """
    units = [unit for unit in UNITS if unit != "WEEK" and micros % UNITS[unit] == 0] if micros else ["SECOND"]
    count = micros // UNITS[units[-1]]
    return f"{count} {units[-1].lower()}{'' if abs(count) == 1 else 's'}"


def parts_of(text: str) -> list[tuple[str, str]] | None:
    """The numbers and units of a text such as `1 hour 30 minutes`; None if it is no such text."""
    parts, at = [], 0
    while at < len(text):
        found = _PART.match(text, at)
        unit = unit_of(found[2]) if found else None
        if found is None or unit is None:
            return None
        parts.append((found[1], unit))
        at = found.end()
    return parts or None
