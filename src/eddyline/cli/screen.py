"""A block of lines at the bottom of a terminal that is redrawn in place.

The cursor rests at the start of the line below the block, so moving up by its height and clearing to the end of the
screen erases it, whatever is above. That holds as long as nothing else writes to the terminal while the block stands:
what does write goes through `above`, which erases the block first; and when the terminal changes its size, lines may
have been wrapped, so the screen is cleared and drawn anew. A block is never higher than the screen. The cursor is
hidden from `open` to `close`.
"""

from __future__ import annotations

import io
import os
import sys
import unicodedata
from collections.abc import Callable, Sequence
from typing import TextIO, cast

from eddyline.cli.streams import note

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_CLEAR_BELOW, _CLEAR_ALL = "\x1b[J", "\x1b[2J\x1b[H"
STYLES = {"": "", "title": "\x1b[1m", "new": "\x1b[33m", "quiet": "\x1b[2m"}
_PLAIN = "\x1b[0m"
Line = tuple[str, str]
"""A text and the name of its style."""


class Screen:
    """The terminal on standard error."""

    def __init__(self, color: bool | None = None) -> None:
        self._color = not os.environ.get("NO_COLOR") if color is None else color
        self._height = 0
        self._drawn_at = (0, 0)
        self._open = False

    @staticmethod
    def usable() -> bool:
        """Whether standard error is a terminal that can move its cursor."""
        return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def open(self) -> None:
        """Hides the cursor."""
        self._open = True
        note(_HIDE, end="")

    def draw(self, lines: Sequence[Line]) -> None:
        """Shows a block in place of the last one."""
        columns, rows = size = terminal_size()
        moved = self._height > 0 and size != self._drawn_at
        start = _CLEAR_ALL if moved else self._erased()
        shown = [self._styled(clipped(text, columns - 1), style) for text, style in lines[: rows - 1]]
        self._height, self._drawn_at = len(shown), size
        note(start + "".join(f"{line}\n" for line in shown), end="")

    def erase(self) -> None:
        """Takes the block away."""
        if self._height:
            note(self._erased(), end="")
            self._height = 0

    def leave(self) -> None:
        """Lets the block stand as it is: the next one is drawn below."""
        self._height = 0

    def close(self) -> None:
        """Shows the cursor again."""
        if self._open:
            self._open = False
            note((_PLAIN if self._color else "") + _SHOW, end="")

    def above(self, out: TextIO) -> TextIO:
        """Writes to `out`, which may be the same terminal, above the block."""
        return above(self.erase, out)

    def _erased(self) -> str:
        return (f"\x1b[{self._height}A" if self._height else "") + "\r" + _CLEAR_BELOW

    def _styled(self, text: str, style: str) -> str:
        return f"{STYLES[style]}{text}{_PLAIN}" if self._color and style else text


def above(erase: Callable[[], None], out: TextIO) -> TextIO:
    """Writes to `out`; if that is a terminal, takes away first what is drawn there."""
    return cast(TextIO, _Above(erase, out)) if out.isatty() else out


class _Above(io.TextIOBase):
    """What PrintSink needs of a text stream."""

    def __init__(self, erase: Callable[[], None], out: TextIO) -> None:
        self._erase, self._out = erase, out

    def write(self, text: str) -> int:
        self._erase()
        return self._out.write(text)

    def flush(self) -> None:
        self._out.flush()


def terminal_size() -> tuple[int, int]:
    """Columns and lines of the terminal on standard error, as they are now."""
    try:
        columns, lines = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        columns, lines = 0, 0
    return columns or 80, lines or 24


def clipped(text: str, columns: int) -> str:
    """As much of a text as fits, without characters that would move the cursor.

    >>> clipped("abcdef", 4), clipped("abcd", 4), clipped("a\\x1bb", 4)
    ('abc…', 'abcd', 'a?b')
    """
    plain = "".join(c if c.isprintable() else "?" for c in text)
    if width(plain) <= columns:
        return plain
    end, used = 0, 0
    while end < len(plain) and used + width(plain[end]) <= columns - 1:
        used += width(plain[end])
        end += 1
    return plain[:end] + "…" if columns > 0 else ""


def width(text: str) -> int:
    """The columns that a text takes.

    >>> width("abc"), width("日本")
    (3, 4)
    """
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
