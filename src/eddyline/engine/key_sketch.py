"""A sketch of the keys that arrive: which keys have far more rows than others.

Rows are counted by partition group. Keys are looked at only in groups that have more than a quarter of what a slot has
if all have the same, so a batch without a hot key costs one pass over its groups.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.balance.hot_key import KeyCount, added

Ints = NDArray[np.int64]

LEAST = 2
"""A key with fewer rows in a batch is not counted."""
MOSTLY = 0.25
"""The share of the rows of its group that a key must have."""
COUNTED = 1 << 14
"""About the most rows of a batch that are counted; where there are more, every n-th is."""


class KeySketch:
    """The keys of one task that have many rows."""

    def __init__(self, groups: int, slots: int) -> None:
        self._groups, self._parts = groups, 4 * slots
        self._found: list[KeyCount] = []

    def add(self, source: int, codes: Ints, groups: Ints) -> None:
        """Count rows of a source, by their keys and groups.

        >>> sketch = KeySketch(groups=4, slots=2)
        >>> sketch.add(0, np.array([5] * 20 + [6, 7]), np.array([1] * 20 + [1, 2]))
        >>> sketch.take()
        (KeyCount(source=0, code=5, group=1, rows=20, among=21),)
        """
        step = max(1, groups.size // COUNTED)
        codes, groups = codes[::step], groups[::step]
        counts = np.bincount(groups, minlength=self._groups)
        for group in np.flatnonzero(counts > max(LEAST - 1, groups.size // self._parts)).tolist():
            known, times = np.unique(codes[groups == group], return_counts=True)
            most = np.flatnonzero(times > max(MOSTLY * counts[group], LEAST - 1))
            for code, rows in zip(known[most].tolist(), times[most].tolist(), strict=True):
                self._found.append(KeyCount(source, code, group, rows * step, int(counts[group]) * step))

    def take(self) -> tuple[KeyCount, ...]:
        """What was counted since the last call."""
        found, self._found = added(self._found), []
        return tuple(found)
