"""A hot key: one whose rows are too many for one slot, and which several slots share.

The rows of one source, the largest, are *spread* over these slots, each to one of them. The rows of all other sources
with this key go to all of them. So each result of the key is made in exactly one slot: where its row of the spread
source is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class HotKey:
    """A key that several slots share."""

    code: int
    """The key as an integer (state/keys.py)."""
    group: int
    """Its partition group. The group does not move meanwhile."""
    source: int
    """The source whose rows are spread."""
    slots: tuple[int, ...]
    """Those that share the key; the slot of its group is among them."""


@dataclass(frozen=True)
class KeyCount:
    """How many rows of a source a batch had with one key, and in the group of the key."""

    source: int
    code: int
    group: int
    rows: int
    among: int


def added(counts: Collection[KeyCount]) -> list[KeyCount]:
    """One count for each key and source.

    >>> added([KeyCount(0, 7, 3, 10, 20), KeyCount(0, 7, 3, 1, 2)])
    [KeyCount(source=0, code=7, group=3, rows=11, among=22)]
    """
    found: dict[tuple[int, int], KeyCount] = {}
    for one in counts:
        before = found.get((one.source, one.code), KeyCount(one.source, one.code, one.group, 0, 0))
        rows, among = before.rows + one.rows, before.among + one.among
        found[one.source, one.code] = KeyCount(one.source, one.code, one.group, rows, among)
    return list(found.values())
