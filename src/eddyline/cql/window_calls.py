"""Windows in the words of other systems, read as the windows of FROM.

| written | means |
| --- | --- |
| `TUMBLE(s, ts, INTERVAL '1' MINUTE)` in FROM | `s [TUMBLE 1 MINUTE]` |
| `TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))` in FROM | the same |
| `GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)`, with one item in FROM | the same |
| `GROUP BY window(ts, '1 minute')`, with one item in FROM (Spark) | the same |
| HOP and CUMULATE in place of TUMBLE, the slide or step first | `s [HOP 1 MINUTE, 10 MINUTES]`, `s [CUMULATE ...]` |
| `window(ts, '10 minutes', '1 minute')`, the length first (Spark) | `s [HOP 1 MINUTE, 10 MINUTES]` |

Each takes an offset as its last argument, as in the system that it comes from; behind a stream it is `OFFSET`.
They are rewritten here: later stages see only windows behind streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot.tokenizer_core import Token, TokenType

from eddyline.cql.places import NOT_YET, Place, shown
from eddyline.cql.tokens import Cursor, depth_change, is_name, is_word
from eddyline.cql.windows import CALLS, SPARK, WindowClause, read_lengths, read_offset, read_spark_lengths

_FORMS = {
    "TUMBLE": "TUMBLE(s, ts, INTERVAL '1' MINUTE)",
    "HOP": "HOP(s, ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTE), the slide first",
    "CUMULATE": "CUMULATE(s, ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTE), the step first",
    "WINDOW": SPARK,
}
_BEHIND = "write the window behind its stream, as in FROM s [TUMBLE 1 MINUTE] or [HOP 1 MINUTE, 10 MINUTES]"
_REFUSED = {
    "SESSION": f"SESSION(...) {NOT_YET}",
    "WINDOW": f"WINDOW(...) stands in GROUP BY, as in Spark; here {_BEHIND}",
}


def is_call(cursor: Cursor) -> bool:
    """Whether a TUMBLE, HOP or CUMULATE comes next, perhaps in TABLE(...)."""
    ahead = 2 if is_word(cursor.token, "TABLE") and _opens(cursor.peek(1)) else 0
    return is_word(cursor.peek(ahead), *CALLS, *_REFUSED) and _opens(cursor.peek(ahead + 1))


def read_call(cursor: Cursor) -> tuple[Token, WindowClause]:
    """The name of a stream, and the window that the call gives it."""
    place = cursor.place()
    wrapped = cursor.match("TABLE")
    if wrapped:
        cursor.take()
    kind = _read_kind(cursor, CALLS)
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
    """The tokens of a query with `window_end()` in place of a window in GROUP BY, and the window of that call; `items`
    is the number of items in FROM."""
    cursor = Cursor(text, tokens)
    while not (cursor.token is None or cursor.token.token_type == TokenType.GROUP_BY):
        cursor.take()
    window: WindowClause | None = None
    kept, depth = list(tokens[: cursor.at]), 0
    while cursor.token is not None and not is_word(cursor.token, "HAVING"):
        if depth or not (is_word(cursor.token, *CALLS, *_REFUSED) and _opens(cursor.peek(1))):
            depth += depth_change(cursor.token)
            kept.append(cursor.take())
            continue
        first, place = cursor.token, cursor.place()
        if items != 1 or window is not None:
            cursor.fail(f"each stream needs a window of its own; {_BEHIND}")
        kind = _read_kind(cursor, (*CALLS, "WINDOW"))
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


def _read_kind(cursor: Cursor, known: Sequence[str]) -> str:
    """The name of a window, and its opening bracket."""
    kind = cursor.raw().upper()
    if kind not in known:
        cursor.fail(_REFUSED.get(kind, f"expected TUMBLE(...) or HOP(...), but found {shown(cursor.raw())}"))
    cursor.take()
    if not cursor.match_type(TokenType.L_PAREN):
        cursor.expected(f"'(' as in {_FORMS[kind]}")
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
    """The lengths and, behind them, the offset if there is one."""
    if kind == "WINDOW":
        return replace(read_spark_lengths(cursor, place), time=time)
    window = read_lengths(cursor, kind, place)
    offset = read_offset(cursor) if cursor.match_type(TokenType.COMMA) else 0
    return replace(window, time=time, offset=offset)


def _read_comma(cursor: Cursor, kind: str) -> None:
    if not cursor.match_type(TokenType.COMMA):
        cursor.expected(f"',' as in {_FORMS[kind]}")


def _read_close(cursor: Cursor, kind: str) -> None:
    if not cursor.match_type(TokenType.R_PAREN):
        cursor.expected(f"')' as in {_FORMS[kind]}")


def _opens(token: Token | None) -> bool:
    return token is not None and token.token_type == TokenType.L_PAREN
