"""Windows in the words of other systems, read as the windows of FROM.

| written | means |
| --- | --- |
| `s [TUMBLE 1 MINUTE]` | `s [RANGE 1 MINUTE SLIDE 1 MINUTE]` |
| `s [HOP 1 MINUTE, 10 MINUTES]`, the slide first | `s [RANGE 10 MINUTES SLIDE 1 MINUTE]` |
| `TUMBLE(s, ts, INTERVAL '1' MINUTE)` in FROM | the same |
| `TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))` in FROM | the same |
| `GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)`, with one item in FROM | the window behind that item |

They are rewritten here: later stages see only a RANGE with a SLIDE. A row at the exact end of such a window belongs to
it and a row at its exact start does not (SEMANTICS); in other systems it is the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot.tokenizer_core import Token, TokenType

from eddyline.cql.places import Place, shown
from eddyline.cql.tokens import Cursor, depth_change, is_name, is_word
from eddyline.cql.windows import CALLS, WindowClause, hopping

_FORMS = {
    "TUMBLE": "TUMBLE(s, ts, INTERVAL '1' MINUTE)",
    "HOP": "HOP(s, ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTE), the slide first",
}
_OTHERS = ("SESSION", "CUMULATE", "WINDOW")
_BEHIND = "write the window behind its stream, as in FROM s [TUMBLE 1 MINUTE] or [HOP 1 MINUTE, 10 MINUTES]"


def is_call(cursor: Cursor) -> bool:
    """Whether a TUMBLE or HOP comes next, perhaps in TABLE(...)."""
    ahead = 2 if is_word(cursor.token, "TABLE") and _opens(cursor.peek(1)) else 0
    return is_word(cursor.peek(ahead), *CALLS, *_OTHERS) and _opens(cursor.peek(ahead + 1))


def read_call(cursor: Cursor) -> tuple[Token, WindowClause]:
    """The name of a stream, and the window that TUMBLE or HOP gives it."""
    place = cursor.place()
    wrapped = cursor.match("TABLE")
    if wrapped:
        cursor.take()
    kind = _read_kind(cursor)
    cursor.match("TABLE")
    if not is_name(cursor.token):
        cursor.expected(f"the name of a stream, as in {_FORMS[kind]}")
    stream = cursor.take()
    _read_comma(cursor, kind)
    time = _read_time(cursor, kind)
    if time is not None:
        _read_comma(cursor, kind)
    window = _read_lengths(cursor, kind, time, place)
    for _ in range(1 + wrapped):
        _read_close(cursor, kind)
    return stream, window


def read_group_windows(text: str, tokens: Sequence[Token], items: int) -> tuple[list[Token], WindowClause | None]:
    """The tokens of a query with `window_end()` in place of a TUMBLE or HOP in GROUP BY, and the window of that call;
    `items` is the number of items in FROM."""
    cursor = Cursor(text, tokens)
    while not (cursor.token is None or cursor.token.token_type == TokenType.GROUP_BY):
        cursor.take()
    window: WindowClause | None = None
    kept, depth = list(tokens[: cursor.at]), 0
    while cursor.token is not None and not is_word(cursor.token, "HAVING"):
        if depth or not (is_word(cursor.token, *CALLS, *_OTHERS) and _opens(cursor.peek(1))):
            depth += depth_change(cursor.token)
            kept.append(cursor.take())
            continue
        first, place = cursor.token, cursor.place()
        if items != 1 or window is not None:
            cursor.fail(f"each stream needs a window of its own; {_BEHIND}")
        kind = _read_kind(cursor)
        opened = cursor.tokens[cursor.at - 1]
        time = _read_time(cursor, kind)
        if time is None:
            cursor.expected(f"the time column, as in {kind}(ts, ...)")
        _read_comma(cursor, kind)
        window = _read_lengths(cursor, kind, time, place)
        _read_close(cursor, kind)
        name = Token(TokenType.VAR, "window_end", first.line, first.col, first.start, first.end)
        kept += [name, opened, cursor.tokens[cursor.at - 1]]
    return kept + list(tokens[cursor.at :]), window


def _read_kind(cursor: Cursor) -> str:
    """The word TUMBLE or HOP, and its opening bracket."""
    if is_word(cursor.token, *_OTHERS):
        cursor.fail(f"{shown(cursor.raw())[1:-1].upper()}(...) is not supported; {_BEHIND}")
    kind = cursor.take().text.upper()
    if kind not in CALLS or not cursor.match_type(TokenType.L_PAREN):
        cursor.at -= 1
        cursor.expected("TUMBLE(...) or HOP(...)")
    return kind


def _read_time(cursor: Cursor, kind: str) -> str | None:
    """A time column, also as DESCRIPTOR(column); None where a length of time follows at once."""
    described = cursor.match("DESCRIPTOR")
    if described and not cursor.match_type(TokenType.L_PAREN):
        cursor.expected("'(' and the time column, as in DESCRIPTOR(ts)")
    if not described and (is_word(cursor.token, "INTERVAL") or not is_name(cursor.token)):
        return None
    name = cursor.name("the time column")
    if not described and cursor.match_type(TokenType.DOT):  # alias.column
        name = cursor.name("the time column")
    if described:
        _read_close(cursor, kind)
    return name


def _read_lengths(cursor: Cursor, kind: str, time: str | None, place: Place) -> WindowClause:
    window = hopping(cursor, kind, place)
    return window if time is None else replace(window, time=time)


def _read_comma(cursor: Cursor, kind: str) -> None:
    if not cursor.match_type(TokenType.COMMA):
        cursor.expected(f"',' as in {_FORMS[kind]}")


def _read_close(cursor: Cursor, kind: str) -> None:
    if not cursor.match_type(TokenType.R_PAREN):
        cursor.expected(f"')' as in {_FORMS[kind]}")


def _opens(token: Token | None) -> bool:
    return token is not None and token.token_type == TokenType.L_PAREN
