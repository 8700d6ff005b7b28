"""Standard output and error that are closed, full or gone."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO


def fill_in() -> None:
    """Replace closed standard streams (Python has None for them), so that files opened later do not get their numbers.
    Messages to a closed standard error are lost; writing to a closed standard output fails."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def note(text: str, end: str = "\n") -> None:
    """Write a message to standard error and ignore failures: no job fails because its messages cannot be written."""
    with contextlib.suppress(OSError):
        print(text, end=end, file=sys.stderr, flush=True)


def silence(stream: TextIO) -> None:
    """Discard buffered output, so that the interpreter does not fail to write it when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
