"""The numbers that tune the state of a slot. None of them changes a result.

The arena of a slot holds them, because everything that is made in an arena gets the arena.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StateTuning:
    """How columns, rows, indexes and the log use memory."""

    block: int = 64
    """The newest time is recorded for each block of this many rows, to find the rows before a time (rows.py)."""
    unsorted_rows: int = 64
    """The largest number of rows that are not sorted (sorted_index.py)."""
    together: int = 512
    """The number of tuples whose chains in a hash index are followed side by side (hash_index.py)."""
    moved_bytes: int = 1 << 18
    """When nearly all rows of a column are released, the others move; not if fewer bytes than this are released
    (column.py)."""
    text_bytes: int = (1 << 31) - 1
    """The most bytes of text in one gathered array: an Arrow array with 32-bit offsets holds no more (heap.py)."""
    section_bytes: int = 1 << 20
    """About the fewest bytes of a section with a range of groups (log/by_group.py)."""
    merged_bytes: int = 1 << 22
    """About the most bytes that are put in the order of groups at a time."""
    merged_files: int = 8
    """When a slot has this many segments of similar size, they are merged into one (protocol/coordinator.py)."""


DEFAULT = StateTuning()
