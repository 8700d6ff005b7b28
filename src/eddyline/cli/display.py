"""Lines at the bottom of the terminal on standard error that are redrawn in place, by rich.

Printed rows and these lines never mix: printing through `above` erases the lines first, and the next `show` draws them
again below the rows. Rows reach standard output unchanged. After a signal (`leave`) the lines stay as they are, and
nothing more is drawn.

Importing rich takes longer than running a small job, so it is imported when something is shown.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO, cast

from eddyline.cli.streams import draw

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live


class Display:
    """The lines; nothing is shown before the first `show`."""

    def __init__(self) -> None:
        self._console: Console | None = None
        self._live: Live | None = None
        self._size = (0, 0)
        self._left = self._hinted = False
        """Whether no lines are drawn any more; whether the cursor is behind a hint."""

    @staticmethod
    def usable() -> bool:
        """Whether standard error is a terminal that can move its cursor."""
        return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def show(self, lines: RenderableType) -> None:
        """Show lines in place of the current ones, and hide the cursor."""
        if self._left:
            return
        if (live := self._live) is None:
            live = self._live = self._begun()
        console = live.console
        if console.size != self._size:  # the terminal may have wrapped the lines, so their place is unknown
            console.clear()
            self._size = console.size
        live.update(lines, refresh=True)

    def erase(self) -> None:
        """Erase the lines, and show the cursor again."""
        self._end(standing=False)

    def close(self) -> None:
        """Leave the lines on the screen, and show the cursor again."""
        self._end(standing=True)

    def leave(self, hint: str) -> None:
        """Leave the lines on the screen for good, and show a hint below until something else comes there. Safe in a
        signal handler."""
        self._live, self._left = None, True
        if self.usable():
            self._hinted = True
            draw(f"\n{hint}")

    def _forget_hint(self) -> None:
        if self._hinted:
            self._hinted = False
            draw("\r\x1b[2K")

    def above(self, out: TextIO) -> TextIO:
        """A text stream that writes to `out`; if `out` is a terminal, writing erases the lines first."""
        return cast(TextIO, _Above(self, out)) if out.isatty() else out

    def _end(self, standing: bool) -> None:
        self._forget_hint()
        live, self._live = self._live, None
        if live is not None:
            if not standing:
                live.update("")
                live.transient = True
            live.stop()
        elif self._console is not None:
            self._console.show_cursor()
        self._console = None

    def _begun(self) -> Live:
        from rich.console import Console
        from rich.live import Live

        # One console for each Live: after `leave`, the old Live keeps its console.
        console = Console(
            file=cast(TextIO, _StandardError()),
            force_terminal=True,
            color_system=None if os.environ.get("NO_COLOR") else "auto",
            highlight=False,
            markup=False,
            emoji=False,
        )
        live = Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
        live.start()
        self._console, self._size = console, console.size
        return live


class _Above(io.TextIOBase):
    """The part of a text stream that PrintSink needs."""

    def __init__(self, display: Display, out: TextIO) -> None:
        self._display, self._out = display, out

    def write(self, text: str) -> int:
        self._display.erase()
        return self._out.write(text)

    def flush(self) -> None:
        self._out.flush()


class _StandardError(io.TextIOBase):
    """Standard error, ignoring write errors: no job fails because its terminal is gone."""

    def write(self, text: str) -> int:
        draw(text)
        return len(text)
