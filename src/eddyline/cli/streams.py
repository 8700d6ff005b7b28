"""Standard output and error when they are closed, full or gone."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO


def fill_in() -> None:
    """Puts something in place of closed ones (Python has None there), which also keeps their numbers from files that
    are opened later: what is said on a closed standard error is lost, writing to a closed standard output fails."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def note(text: str, end: str = "\n") -> None:
    """Says something on standard error, if that is possible: no job fails because nobody listens."""
    with contextlib.suppress(OSError):
        print(text, end=end, file=sys.stderr, flush=True)


def silence(stream: TextIO) -> None:
    """Lets what is still to be written vanish, so that the interpreter does not fail at it when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
