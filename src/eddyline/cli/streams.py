"""What commands print: foreign text is escaped, and standard output and error may be closed, full or gone."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

from eddyline.printable import printable


def fill_in() -> None:
    """Replace closed standard streams (Python has None for them), so that files opened later do not get their numbers.
    Messages to a closed standard error are lost; writing to a closed standard output fails."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


STANDARD_OUTPUT = "standard output"


_notes: TextIO | None = None
"""Where notes go once they alone reach standard error."""


def note(text: str) -> None:
    """Write a message to standard error and ignore failures: no job fails because its messages cannot be written."""
    draw(printable(text, keep="\n\t") + "\n")


def draw(text: str) -> None:
    """Write to standard error as `note` does, but with control characters and without an end of line."""
    with contextlib.suppress(OSError):
        print(text, end="", file=_notes or sys.stderr, flush=True)


def say(text: str) -> None:
    """Write lines to standard output."""
    put(printable(text, keep="\n\t") + "\n")


def put(text: str) -> None:
    """Write to standard output, unchanged. A failure is an OSError with STANDARD_OUTPUT as its file."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        error.filename = STANDARD_OUTPUT
        raise


def columns() -> int:
    """The width of the terminal that standard error is; 100 if it is none."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 100
    except (OSError, ValueError):
        return 100


def only_notes() -> None:
    """From now on nothing but notes reaches standard error, unless EDDYLINE_DEBUG=1 asks for all of it."""
    global _notes
    if _notes is None and os.environ.get("EDDYLINE_DEBUG") != "1":
        with contextlib.suppress(OSError):
            _notes = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace")
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def silence(stream: TextIO) -> None:
    """Discard buffered output, so that the interpreter does not fail to write it when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
