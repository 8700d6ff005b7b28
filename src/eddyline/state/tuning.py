"""The numbers that the state of a slot can be tuned by. None of them changes a result.

The arena of a slot has them, because all that is made in an arena is given the arena.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StateTuning:
    """How columns, rows and indexes use memory."""

    block: int = 64
    """The newest time is kept for every so many rows, to find the rows before a time (rows.py)."""
    unsorted_rows: int = 64
    """At most this many rows are not worth sorting (sorted_index.py)."""
    together: int = 512
    """Tuples whose chains in a hash index are followed side by side (hash_index.py)."""
    moved_bytes: int = 1 << 18
    """Where nearly all rows of a column go, the others move; fewer bytes are not worth moving (column.py)."""
    text_bytes: int = (1 << 31) - 1
    """Bytes of text that are gathered into one array; an Arrow array with 32-bit offsets holds no more (heap.py)."""


DEFAULT = StateTuning()
