"""Rows printed to the terminal, aligned in columns, or as lines of JSON, without characters that a terminal obeys.

Widths of columns come from the first batch and only grow, so that printing can begin before all rows are known.
"""

from __future__ import annotations

from typing import TextIO

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound.as_text import as_text
from eddyline.errors import JobError
from eddyline.os_errors import why
from eddyline.printable import UNPRINTABLE, printable
from eddyline.runtime.sinks.json_lines import lines


class PrintSink:
    """Writes to a text stream; `limit` is the most rows to show (None: all)."""

    def __init__(self, out: TextIO, schema: pa.Schema, style: str = "table", limit: int | None = None) -> None:
        self._out, self._schema, self._style, self._limit = out, schema, style, limit
        self._rows = 0
        self._widths: list[int] = []

    def check(self) -> None:
        """Nothing can be wrong."""

    def open(self) -> None:
        """Nothing to make."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Shows rows, up to the limit."""
        left = batch.num_rows if self._limit is None else max(0, self._limit - self._rows)
        self._rows += batch.num_rows
        shown = batch.slice(0, left)
        if shown.num_rows:
            text = _printable(lines(shown)) if self._style == "json" else self._aligned(shown)
            self._put("\n".join(text.to_pylist()) + "\n")

    def close(self) -> None:
        """Says how many rows were not shown."""
        if self._limit is not None and self._rows > self._limit and self._style != "json":
            self._put(f"... and {self._rows - self._limit} more rows\n")

    def abandon(self) -> None:
        """Nothing to undo: printed rows stay."""

    def _put(self, text: str) -> None:
        """JobError if it cannot be written; a closed pipe is for the caller."""
        try:
            self._out.write(text)
            self._out.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise JobError(f"cannot write to standard output: {why(error)}") from None

    def _aligned(self, batch: pa.RecordBatch) -> pa.Array:
        columns = [_printable(pc.coalesce(as_text(column), "NULL")) for column in batch.columns]
        needed = [int(pc.max(pc.utf8_length(column)).as_py()) for column in columns]
        right = [
            pa.types.is_integer(f.type) or pa.types.is_floating(f.type) or pa.types.is_decimal(f.type)
            for f in self._schema
        ]
        if not self._widths:
            names = [printable(name) for name in self._schema.names]
            self._widths = [max(n, len(name)) for n, name in zip(needed, names, strict=True)]
            titles = zip(names, self._widths, right, strict=True)
            title = "  ".join(name.rjust(width) if r else name.ljust(width) for name, width, r in titles)
            self._put(f"{title.rstrip()}\n{'  '.join('-' * width for width in self._widths)}\n")
        self._widths = [max(old, new) for old, new in zip(self._widths, needed, strict=True)]
        padded = [
            (pc.utf8_lpad if r else pc.utf8_rpad)(column, width)
            for column, width, r in zip(columns, self._widths, right, strict=True)
        ]
        return pc.utf8_rtrim_whitespace(pc.binary_join_element_wise(*padded, "  "))


def _printable(text: pa.Array) -> pa.Array:
    """Each text with unprintable characters escaped."""
    if not pc.any(pc.match_substring_regex(text, UNPRINTABLE)).as_py():
        return text
    return pa.array([value and printable(value) for value in text.to_pylist()], pa.string())
