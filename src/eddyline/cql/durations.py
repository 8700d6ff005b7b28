"""Lengths of time in scripts, in microseconds: `30 MINUTES`, `1 HOUR 30 MINUTES`, `INTERVAL '30' MINUTE`."""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import Token, TokenType

from eddyline.cql.names import did_you_mean
from eddyline.cql.places import shown
from eddyline.cql.tokens import Cursor, is_name, is_string, is_word
from eddyline.cql.units import LONGEST, MONTHS, UNITS, amount, parts_of, unit_of


def read_duration(cursor: Cursor, what: str, example: str, least: int = 0) -> int:
    """Read a length of time, at least `least`, in microseconds."""
    start = cursor.at
    cursor.match("INTERVAL")
    sign = -1 if least < 0 and cursor.match_type(TokenType.DASH) else 1
    total, parts = 0, 0
    while is_string(cursor.token) or _is_number(cursor.token):
        for number, unit in _read_part(cursor, what, example):
            value = amount(number, unit)
            if value is None:
                cursor.at = start
                cursor.fail(f"{what} must be a whole number of microseconds; write it as in {example}")
            total, parts = total + sign * value, parts + 1
    if not parts:
        if is_word(cursor.token, "-") or (cursor.token and cursor.token.token_type == TokenType.DASH):
            cursor.fail(f"{what} cannot be negative; write it as in {example}")
        cursor.expected(f"a length of time as in {example}")
    if not least <= total <= LONGEST:
        cursor.at = start
        between = f"{'-10000' if least else '0'} and 10000 years"
        cursor.fail(f"{what} must be between {between}; for no bound write [UNBOUNDED]")
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
