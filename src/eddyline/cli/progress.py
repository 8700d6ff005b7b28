"""The progress line, rewritten in place a few times a second, and the closing sentence."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta
from typing import TextIO

from eddyline.cli.screen import above, clipped, terminal_size
from eddyline.cli.streams import note
from eddyline.runtime.reporting.summary import Progress, Summary

_EVERY = 0.2


class ProgressLine:
    """Shown on stderr if that is a terminal, or if asked for. Used with `with`; makes place for what comes next."""

    def __init__(self, always: bool) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown = self._terminal or always
        self._next = 0.0
        self._width = 0

    def __enter__(self) -> ProgressLine:
        return self

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if self._shown and now >= self._next:
            self._next = now + _EVERY
            self._write(line(progress))

    def __exit__(self, *error: object) -> None:
        self.erase()

    def above(self, out: TextIO) -> TextIO:
        """Writes to `out`, which may be the same terminal, in place of the line."""
        return above(self.erase, out)

    def erase(self) -> None:
        """Takes the line away; it comes back with the next progress."""
        if self._terminal and self._width:
            note("\r" + " " * self._width + "\r", end="")
            self._width = 0

    def _write(self, text: str) -> None:
        if self._terminal:
            text = clipped(text, terminal_size()[0] - 1)  # a line that wraps could not be taken back
        note("\r" + text.ljust(self._width) if self._terminal else text, end="" if self._terminal else "\n")
        self._width = len(text)


def line(progress: Progress) -> str:
    """Rows in, rows/s, results, state and watermark."""
    rate = progress.rows_in / progress.seconds if progress.seconds > 0 else 0.0
    parts = [
        f"{progress.rows_in:,} rows in",
        f"{rate:,.0f} rows/s",
        f"{progress.rows_out:,} out",
        f"state {progress.state_rows:,} rows, {progress.memory_bytes / 1e6:,.1f} MB",
        f"watermark {moment(progress.watermark_us)}",
    ]
    parts += [f"{progress.rows_late:,} late"] if progress.rows_late else []
    parts += [f"{progress.rows_dead:,} dead"] if progress.rows_dead else []
    return " | ".join(parts)


def moment(microseconds: int | None) -> str:
    """An event time for people."""
    if microseconds is None:
        return "-"
    try:
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:
        return f"{microseconds} us"
    return when.strftime("%Y-%m-%d %H:%M:%S")


def closing(summary: Summary) -> str:
    """What was done, in a sentence."""
    rate = summary.rows_in / summary.seconds if summary.seconds > 0 else 0.0
    text = f"{summary.rows_in:,} rows in, {summary.rows_out:,} rows out in {summary.seconds:.2f} s ({rate:,.0f} rows/s)"
    odd = (
        (summary.rows_late, f"late{summary.late}"),
        (summary.rows_dead, f"dead{summary.dead}"),
        (summary.expression_errors, "expressions not evaluated"),
    )
    text += "".join(f", {count:,} {what}" for count, what in odd if count)
    if summary.expression_errors and summary.first_error:
        text += f" (first: {summary.first_error})"
    if summary.waiting and not summary.stopped:
        text += f"; {summary.waiting:,} groups or rows wait for the watermark (--final gives their results)"
    return f"stopped: {text}; what was written is complete up to here" if summary.stopped else f"done: {text}"
