"""Windows: `[RANGE 30 MINUTES]`, `[ROWS 1000]`, `[UNBOUNDED]`, each optionally with `SLIDE 1 MINUTE`. `[TUMBLE 1
MINUTE]` and `[HOP 1 MINUTE, 10 MINUTES]` are short for a RANGE with a SLIDE."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from eddyline.cql.durations import read_duration
from eddyline.cql.places import Place
from eddyline.cql.tokens import Cursor, is_name, is_word
from eddyline.cql.units import unit_of

_MOST_ROWS = 10**12
CALLS = ("TUMBLE", "HOP")


@dataclass(frozen=True)
class WindowClause:
    """One window as written in FROM; `size` is in microseconds or rows, `slide` in microseconds."""

    kind: str
    size: int
    slide: int | None
    place: Place
    time: str | None = None
    """The time column that the window names, if it names one: it must be the stream's."""


def read_window(cursor: Cursor) -> WindowClause:
    """Read a window from its opening bracket to its closing one."""
    place = cursor.place()
    cursor.take()
    size = 0
    if cursor.match("RANGE"):
        kind = "RANGE"
        if cursor.match("UNBOUNDED"):
            kind = "UNBOUNDED"
        else:
            size = read_duration(cursor, "a RANGE", "[RANGE 30 MINUTES]")
    elif cursor.match("ROWS"):
        kind, size = "ROWS", _read_rows(cursor)
    elif cursor.match("UNBOUNDED"):
        kind = "UNBOUNDED"
    elif is_word(cursor.token, *CALLS):
        window = hopping(cursor, cursor.take().text.upper(), place)
        if not cursor.match_type(TokenType.R_BRACKET):
            cursor.expected("']' to end the window")
        return window
    else:
        cursor.expected("a window such as [RANGE 30 MINUTES], [ROWS 1000] or [UNBOUNDED]")
    slide = None
    if cursor.match("SLIDE"):
        at = cursor.at
        slide = read_duration(cursor, "a SLIDE", "SLIDE 1 MINUTE")
        if slide == 0:
            cursor.at = at
            cursor.fail("a SLIDE cannot be 0; write how often the aggregate is wanted, as in SLIDE 1 MINUTE")
    if not cursor.match_type(TokenType.R_BRACKET):
        cursor.expected("SLIDE or ']' to end the window" if slide is None else "']' to end the window")
    return WindowClause(kind, size, slide, place)


def hopping(cursor: Cursor, kind: str, place: Place) -> WindowClause:
    """The lengths of a TUMBLE, or the slide and the length of a HOP."""
    lengths: list[int] = []
    for what in ("a TUMBLE",) if kind == "TUMBLE" else ("the slide of a HOP", "the length of a HOP"):
        if lengths and not cursor.match_type(TokenType.COMMA):
            cursor.expected("',' and the length, as in [HOP 1 MINUTE, 10 MINUTES], the slide first")
        at = cursor.at
        lengths.append(
            read_duration(cursor, what, f"[{kind} {'1 MINUTE' if kind == 'TUMBLE' else '1 MINUTE, 10 MINUTES'}]")
        )
        if not lengths[-1]:
            cursor.at = at
            cursor.fail(f"{what} cannot be 0; write it as in 1 MINUTE")
    slide, size = lengths[0], lengths[-1]
    if slide > size:
        cursor.at = at
        cursor.fail("the slide of a HOP comes first and is at most its length; write [HOP 1 MINUTE, 10 MINUTES]")
    return WindowClause("RANGE", size, slide, place)


def _read_rows(cursor: Cursor) -> int:
    token = cursor.token
    if token is None or token.token_type != TokenType.NUMBER:
        cursor.expected("a number of rows as in [ROWS 1000]")
    if not token.text.isdecimal() or len(token.text) > 15 or not 1 <= int(token.text) <= _MOST_ROWS:
        cursor.fail("a ROWS window holds a whole number of rows, at least 1; write it as in [ROWS 1000]")
    cursor.take()
    if is_name(cursor.token) and cursor.token and unit_of(cursor.token.text):
        cursor.fail("ROWS counts rows; for a length of time write [RANGE 30 MINUTES]")
    return int(token.text)
