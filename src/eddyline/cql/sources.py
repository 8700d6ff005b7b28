"""The FROM clause: which streams, under which alias, with which window, joined how.

sqlglot has no windows, so FROM is read here token by token and the windows are removed; sqlglot parses the rest. Only a
bracket that follows a stream or its alias is a window; brackets in conditions index lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from eddyline.cql.limits import ITEMS
from eddyline.cql.places import NOT_YET, Place, place_at, shown, wrong
from eddyline.cql.tokens import Cursor, depth_change, is_name, is_string, is_word
from eddyline.cql.window_calls import is_call, read_call
from eddyline.cql.windows import WindowClause, read_window

_ENDS = {
    TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET,
    TokenType.FETCH, TokenType.QUALIFY, TokenType.WINDOW, TokenType.TABLE_SAMPLE,
}  # fmt: skip
SUBQUERY = (
    "subqueries are not supported; let the inner query be a script of its own, whose sink this one reads as a stream"
)
SUBQUERY_IN_CONDITION = f"a subquery outside FROM {NOT_YET}"
_OUTER = f"an outer join {NOT_YET}: an inner join drops rows without a partner"
_JOINS = {
    "LEFT": _OUTER,
    "RIGHT": _OUTER,
    "FULL": _OUTER,
    "OUTER": _OUTER,
    "SEMI": f"a semi join {NOT_YET}: JOIN ... ON gives a row for each match",
    "ANTI": f"an anti join {NOT_YET}",
    "NATURAL": "natural joins are not supported; write an equality for each common column, as in JOIN b ON a.id = b.id",
    "ASOF": f"an ASOF join {NOT_YET}",
    "POSITIONAL": "positional joins are not supported: streams have no order",
    "LATERAL": f"LATERAL {NOT_YET}",
}
_JOIN_WORDS = (*_JOINS, "JOIN", "INNER", "CROSS", "ON", "USING")


@dataclass(frozen=True)
class FromItem:
    """One item of FROM, as written."""

    stream: str
    alias: str
    window: WindowClause | None
    place: Place


def read_sources(text: str, tokens: list[Token]) -> tuple[tuple[FromItem, ...], list[Token]]:
    """The items of FROM of a SELECT statement, and its tokens without the windows."""
    cursor = Cursor(text, tokens)
    start = find_from(tokens)
    if start is None:
        message = "the query has no FROM; write SELECT ... FROM a stream"
        raise wrong(text, place_at(text, tokens[-1].end + 1), message)
    cursor.at = start + 1
    kept = tokens[: cursor.at]
    items = [_read_item(cursor, kept)]
    while _skip_to_next(cursor, kept):
        join = _read_join(cursor)
        kept.append(cursor.take())
        if len(items) == ITEMS.most:
            cursor.fail(ITEMS.sentence)
        items.append(_read_item(cursor, kept))
        _check_condition(cursor, join)
    return tuple(items), kept + tokens[cursor.at :]


def find_from(tokens: Sequence[Token]) -> int | None:
    """The index of the SELECT's FROM, ignoring the FROM of EXTRACT(... FROM) and of IS DISTINCT FROM; None without
    one."""
    depth = 0
    for index, token in enumerate(tokens):
        compared = index > 1 and is_word(tokens[index - 1], "DISTINCT") and is_word(tokens[index - 2], "IS", "NOT")
        if depth == 0 and token.token_type == TokenType.FROM and not compared:
            return index
        depth += depth_change(token)
    return None


def _skip_to_next(cursor: Cursor, kept: list[Token]) -> bool:
    """Skip conditions up to the comma or JOIN before the next item; False if FROM ends."""
    depth = 0
    while cursor.token is not None and not (depth == 0 and cursor.token.token_type in _ENDS):
        if depth == 0 and (cursor.token.token_type == TokenType.COMMA or is_word(cursor.token, "JOIN")):
            return True
        depth += depth_change(cursor.token)
        kept.append(cursor.take())
    return False


def _read_join(cursor: Cursor) -> str:
    """How the next item is joined, from the words before its JOIN: `,`, `JOIN` or `CROSS`."""
    if not is_word(cursor.token, "JOIN"):
        return ","
    at = cursor.at
    while is_word(cursor.peek(-1), *_JOINS, "INNER", "CROSS"):
        cursor.at -= 1
    words = [token.text.upper() for token in cursor.tokens[cursor.at : at]]
    refused = [_JOINS[word] for word in words if word in _JOINS]
    if refused:
        cursor.fail(refused[0])
    cursor.at = at
    return "CROSS" if "CROSS" in words else "JOIN"


def _check_condition(cursor: Cursor, join: str) -> None:
    if is_word(cursor.token, "USING") and not is_word(cursor.peek(1), "SAMPLE"):
        cursor.fail("USING is not supported in joins; write the equality, as in JOIN b ON a.id = b.id")
    if join == "JOIN" and not is_word(cursor.token, "ON"):
        cursor.expected("ON and a condition after JOIN (for all pairs write CROSS JOIN)")
    if join != "JOIN" and is_word(cursor.token, "ON"):
        cursor.fail("ON belongs to JOIN; write JOIN ... ON, or put the condition in WHERE")


def _read_item(cursor: Cursor, kept: list[Token]) -> FromItem:
    place = cursor.place()
    window = None
    if is_call(cursor):
        name, window = read_call(cursor)
    else:
        _check_item(cursor)
        name = cursor.take()
    kept.append(name)
    stream = alias = name.text
    window = _read_window(cursor, window)
    said_as = cursor.match("AS")
    if said_as:
        kept.append(cursor.tokens[cursor.at - 1])
    named = is_name(cursor.token) and not (cursor.token and cursor.token.token_type in _ENDS)
    if said_as and not named:
        cursor.expected("an alias after AS")
    if named and (said_as or not is_word(cursor.token, *_JOIN_WORDS)):
        kept.append(cursor.take())
        alias = kept[-1].text
    return FromItem(stream, alias, _read_window(cursor, window), place)


def _check_item(cursor: Cursor) -> None:
    token, after = cursor.token, cursor.peek(1)
    if is_string(token):
        cursor.fail(
            "FROM reads streams, not files; declare one with CREATE STREAM s "
            "USING parquet OPTIONS (path '...') TIMESTAMP BY ts"
        )
    if token is not None and token.token_type == TokenType.L_PAREN:
        if after is not None and after.token_type in (TokenType.SELECT, TokenType.WITH):
            cursor.fail(SUBQUERY)
        cursor.fail(
            "brackets in FROM are not supported; write the streams one after another, with commas or JOIN ... ON"
        )
    if is_word(token, "LATERAL"):
        cursor.fail(_JOINS["LATERAL"])
    if token is None or token.token_type in _ENDS or not is_name(token) or is_word(token, *_JOIN_WORDS):
        cursor.expected("the name of a stream or table")
    if after is not None and after.token_type == TokenType.L_PAREN:
        cursor.fail(
            f"{shown(token.text)} is called like a function; FROM takes streams "
            "and tables, declared with CREATE STREAM or TABLE"
        )
    if after is not None and after.token_type == TokenType.DOT:
        cursor.fail("streams and tables have simple names; write the name that CREATE gave, in quotes if it has a dot")


def _read_window(cursor: Cursor, before: WindowClause | None) -> WindowClause | None:
    if cursor.token is None or cursor.token.token_type != TokenType.L_BRACKET:
        return before
    if before is not None:
        cursor.fail("this stream has a window already; leave one of the two out")
    return read_window(cursor)
