"""Lengths of time in microseconds: `30 MINUTES`, `1 HOUR 30 MINUTES`, `INTERVAL '30' MINUTE`, `'30 minutes'`."""

from __future__ import annotations

import re
from decimal import Decimal

from sqlglot.tokenizer_core import Token, TokenType

from eddyline.cql.names import did_you_mean
from eddyline.cql.places import shown
from eddyline.cql.tokens import Cursor, is_name, is_string, is_word

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
    """The singular, long name of a unit of time, None if it is none.

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
    """So many units in microseconds (months for units without a fixed length); None if that is no whole number."""
    if len(number) > _LONGEST_NUMBER:
        return None
    exact = Decimal(number) * UNITS.get(unit, MONTHS.get(unit, 0))
    return int(exact) if exact == exact.to_integral_value() else None


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


def read_duration(cursor: Cursor, what: str, example: str) -> int:
    """Read a length of time, at least 0, in microseconds."""
    start = cursor.at
    cursor.match("INTERVAL")
    total, parts = 0, 0
    while is_string(cursor.token) or _is_number(cursor.token):
        for number, unit in _read_part(cursor, what, example):
            value = amount(number, unit)
            if value is None:
                cursor.at = start
                cursor.fail(f"{what} must be a whole number of microseconds; write it as in {example}")
            total, parts = total + value, parts + 1
    if not parts:
        if is_word(cursor.token, "-") or (cursor.token and cursor.token.token_type == TokenType.DASH):
            cursor.fail(f"{what} cannot be negative; write it as in {example}")
        cursor.expected(f"a length of time as in {example}")
    if not 0 <= total <= LONGEST:
        cursor.at = start
        cursor.fail(f"{what} must be between 0 and 10000 years; for no bound write [UNBOUNDED]")
    return total


def _is_number(token: Token | None) -> bool:
    return token is not None and token.token_type == TokenType.NUMBER


def _read_part(cursor: Cursor, what: str, example: str) -> list[tuple[str, str]]:
    if is_string(cursor.token) and (parts := parts_of(cursor.tokens[cursor.at].text)):
        for _, unit in parts:
            _check_fixed(cursor, what, unit)
        cursor.take()
        return parts
    number = cursor.tokens[cursor.at].text
    if not re.fullmatch(r"[-+]?[\d_]+(\.\d*)?", number):
        cursor.fail(f"{shown(number)} is no length of time; write it as in {example}")
    cursor.take()
    if not is_name(cursor.token):
        cursor.expected(f"a unit of time after {shown(number)}, as in {example}")
    word = cursor.tokens[cursor.at].text
    named = unit_of(word)
    if named is None:
        cursor.fail(f"{shown(word)} is no unit of time{did_you_mean(word, [f'{u}S' for u in UNITS])}")
    _check_fixed(cursor, what, named)
    cursor.take()
    return [(number, named)]


def _check_fixed(cursor: Cursor, what: str, unit: str) -> None:
    if unit in MONTHS:
        cursor.fail(f"{what} cannot be in {unit}S, which differ in length; write days, as in 30 DAYS")
