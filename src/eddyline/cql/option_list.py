"""The grammar of OPTIONS: keys and values in brackets."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot.tokenizer_core import TokenType

from eddyline.cql.places import Place, shown
from eddyline.cql.tokens import Cursor, is_name, is_string


def read_options(
    cursor: Cursor,
    places: dict[str, Place],
    spelled: dict[str, str],
    place_of: Callable[[str], str] = "option {}".format,
) -> dict[str, str]:
    """The values of the options behind the word OPTIONS by their lower-case keys, none if there is no such word. Fills
    `places` and `spelled` with the place and spelling of each; `place_of` names the place of a key."""
    form = "OPTIONS (path 'data', header true)"
    if not cursor.match("OPTIONS"):
        if cursor.token is not None and cursor.token.token_type is TokenType.L_PAREN:
            cursor.expected(f"OPTIONS before the options, as in {form}")
        return {}
    if not cursor.match_type(TokenType.L_PAREN):
        cursor.expected(f"'(' as in {form}")
    options: dict[str, str] = {}
    if cursor.match_type(TokenType.R_PAREN):
        return options
    while True:
        at, place = cursor.at, cursor.place()
        written = _read_key(cursor, form)
        key = written.lower()
        if key in options:
            cursor.at = at
            cursor.fail(f"option {shown(written)} is given twice; leave one out")
        places[place_of(key)], spelled[key] = place, written
        cursor.match_type(TokenType.EQ)
        options[key] = _read_value(cursor, key)
        if cursor.match_type(TokenType.R_PAREN):
            return options
        if not cursor.match_type(TokenType.COMMA):
            cursor.expected(
                "',' or ')' after the value of an option (a value that is not one word or number goes in quotes)"
            )


def _read_key(cursor: Cursor, form: str) -> str:
    parts: list[str] = []
    while True:
        if not (is_name(cursor.token) or is_string(cursor.token)):
            cursor.expected(f"the name of an option, as in {form}")
        parts.append(cursor.take().text)
        if not cursor.match_type(TokenType.DOT):
            return ".".join(parts)


def _read_value(cursor: Cursor, key: str) -> str:
    negative = cursor.match_type(TokenType.DASH)
    token = cursor.token
    if token is not None and (
        token.token_type == TokenType.NUMBER or (not negative and (is_name(token) or is_string(token)))
    ):
        return ("-" if negative else "") + cursor.take().text
    cursor.expected(f"the value of option {shown(key)}: a string in quotes, a number or a word")
