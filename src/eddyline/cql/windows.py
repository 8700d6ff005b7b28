"""Windows: `[RANGE 30 MINUTES]`, `[ROWS 1000]`, `[UNBOUNDED]`, each optionally with `SLIDE 1 MINUTE`; and windows with
names of other systems, `[TUMBLE size]`, `[HOP slide, size]` and `[CUMULATE step, size]`, each optionally with
`OFFSET 15 MINUTES`, which keep their owners' meaning: start <= ts < end."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot.tokenizer_core import TokenType

from eddyline.cql.durations import read_duration
from eddyline.cql.places import Place
from eddyline.cql.tokens import Cursor, is_name, is_word
from eddyline.cql.units import LONGEST, unit_of

_MOST_ROWS = 10**12
CALLS = ("TUMBLE", "HOP", "CUMULATE")
"""Windows with names of other systems."""
LATER = {
    "SESSION": "sessions are not supported yet; write the window behind its stream, as in FROM s [TUMBLE 1 MINUTE]",
    "NOW": "[NOW] is not supported yet; write a second script over the sink of this one",
}
SPARK = "window(ts, '10 minutes', '1 minute')"


@dataclass(frozen=True)
class WindowClause:
    """One window as written; `size` is in microseconds or rows, `slide` in microseconds. The slide of a TUMBLE is its
    size, that of a CUMULATE its step."""

    kind: str
    size: int
    slide: int | None
    place: Place
    time: str | None = None
    """The time column that the window names, if it names one: it must be the stream's."""
    offset: int = 0
    """How long after 1970 a window with a borrowed name begins."""

    @property
    def is_borrowed(self) -> bool:
        """Whether it has a name of another system, and so that system's meaning."""
        return self.kind in CALLS


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
        window = read_lengths(cursor, cursor.take().text.upper(), place)
        if cursor.match("OFFSET"):
            window = replace(window, offset=read_offset(cursor))
        if not cursor.match_type(TokenType.R_BRACKET):
            cursor.expected("OFFSET or ']' to end the window")
        return window
    elif is_word(cursor.token, *LATER):
        cursor.fail(LATER[cursor.raw().upper()])
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


def read_lengths(cursor: Cursor, kind: str, place: Place) -> WindowClause:
    """The length of a TUMBLE; the slide or step, and the length, of a HOP or CUMULATE."""
    form, step = f"[{kind} 1 MINUTE]", "step" if kind == "CUMULATE" else "slide"
    if kind == "TUMBLE":
        size = slide = _read_length(cursor, "a TUMBLE", form)
    else:
        form = f"[{kind} 1 MINUTE, 10 MINUTES]"
        slide = _read_length(cursor, f"the {step} of a {kind}", form)
        if not cursor.match_type(TokenType.COMMA):
            cursor.expected(f"',' and the length, as in {form}, the {step} first")
        at = cursor.at
        size = _read_length(cursor, f"the length of a {kind}", form)
        if slide > size or (kind == "CUMULATE" and size % slide):
            cursor.at = at
            must = "divides its length" if kind == "CUMULATE" else "is at most its length"
            cursor.fail(f"the {step} of a {kind} comes first and {must}; write {form}")
    return WindowClause(kind, size, slide, place)


def read_spark_lengths(cursor: Cursor, place: Place) -> WindowClause:
    """The arguments of Spark's window() behind its column: the length, then perhaps the slide, then the offset."""
    size = slide = _read_length(cursor, "the length of a window", SPARK)
    offset = 0
    if cursor.match_type(TokenType.COMMA):
        at = cursor.at
        slide = _read_length(cursor, "the slide of a window", SPARK)
        if slide > size:
            cursor.at = at
            cursor.fail(f"the length of a window comes first, and its slide is at most its length; write {SPARK}")
        offset = read_offset(cursor) if cursor.match_type(TokenType.COMMA) else 0
    return WindowClause("TUMBLE" if slide == size else "HOP", size, slide, place, offset=offset)


def read_offset(cursor: Cursor) -> int:
    """How long after 1970 a window begins; it may be negative."""
    return read_duration(cursor, "an offset", "INTERVAL '15' MINUTE", least=-LONGEST)


def _read_length(cursor: Cursor, what: str, form: str) -> int:
    at = cursor.at
    length = read_duration(cursor, what, form)
    if not length:
        cursor.at = at
        cursor.fail(f"{what} cannot be 0; write it as in 1 MINUTE")
    return length


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
