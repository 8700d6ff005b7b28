"""How large a script may be. Larger ones are refused in a sentence, before they take long to plan.

The limits are far above scripts that people and generators write. They keep a wrong or hostile script from taking all
memory, or from nesting deeper than recursive code can follow. docs/settings.md has them as a table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock


@dataclass(frozen=True)
class Limit:
    """The most of something that a part of a script may have."""

    part: str
    most: int
    unit: str
    advice: str

    @property
    def sentence(self) -> str:
        """The message about a part that has more.

        >>> Limit("a name", 1_000, "characters", "write a shorter one").sentence
        'a name has at most 1,000 characters; write a shorter one'
        """
        return f"{self.part} has at most {self.most:,} {self.unit}; {self.advice}"


_LONG_LISTS = "put long lists of values into a table"
CHARACTERS = Limit("a script", 10_000_000, "characters", _LONG_LISTS)
TOKENS = Limit("a script", 500_000, "words, values and signs", _LONG_LISTS)
TEXT = Limit("a text in quotes", 1_000_000, "characters", "put long texts into a table")
NAME = Limit("a name", 1_000, "characters", "write a shorter one")
DEPTH = Limit("an expression", 200, "levels, one in the other", "break it into smaller expressions")
PARTS = Limit(
    "a query",
    500_000,
    "columns, values and operators in its expressions",
    "a name given with AS counts as the expression that it stands for, so use such names less often",
)
ITEMS = Limit("FROM", 32, "streams and tables", "join some of them in a script of its own")
COLUMNS = Limit("a stream, table or SELECT", 20_000, "columns", "leave some out, or put them into a list or struct")
LIMITS = (CHARACTERS, TOKENS, TEXT, NAME, DEPTH, PARTS, ITEMS, COLUMNS)

_FRAMES = 40
"""The most Python frames that parsing or binding takes for a level of an expression."""
_LOCK = Lock()
_inside = 0
_before = 0


@contextmanager
def deep_enough() -> Iterator[None]:
    """Expressions of the greatest depth are parsed and bound without a RecursionError, wherever the caller is. The
    limit of recursion belongs to the process: it is put back when the last thread leaves."""
    global _inside, _before
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    with _LOCK:
        if not _inside:
            _before = sys.getrecursionlimit()
        _inside += 1
        sys.setrecursionlimit(max(sys.getrecursionlimit(), depth + _FRAMES * DEPTH.most))
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if not _inside:
                sys.setrecursionlimit(_before)
