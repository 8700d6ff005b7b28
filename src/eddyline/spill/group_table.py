"""The accounts of the partition groups of a job after a batch, over all its slots, for display.

Slots send their accounts to the driver with every batch, because the spiller needs them. This table keeps them as they
came, and adds them up only when they are asked for, so that a batch does not pay for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eddyline.spill.accounts import TABLE, Spillable, Table

MOST = 1024
"""The most groups that are listed."""


@dataclass(frozen=True)
class GroupTable:
    """What each group has in memory and gives, and whether it has rows on disk.

    >>> GroupTable(on_disk=frozenset([7])).as_dict()["list"]
    {'group': [7], 'rows': [0], 'bytes': [0], 'results': [0.0], 'idle_batches': [None], 'on_disk': [True]}
    """

    slots: tuple[Spillable, ...] = field(default=(), repr=False)
    on_disk: frozenset[int] = frozenset()
    numbers: tuple[int, ...] = ()
    """The number of each of these slots, if it is known."""
    places: NDArray[np.int32] | None = field(default=None, repr=False, compare=False)
    """By group the number of its slot, where groups can move."""

    @property
    def table(self) -> Table:
        """The accounts of all groups that have rows, in the order of their numbers. The batches since the last row are
        -1 for a group that has no row in memory."""
        tables = [slot.table for slot in self.slots]
        here = np.concatenate([np.array(sorted(self.on_disk), "i4"), *(table["group"] for table in tables)])
        found = np.zeros(np.unique(here).size, TABLE)
        found["group"], found["idle"] = np.unique(here), -1
        for table in tables:
            at = np.searchsorted(found["group"], table["group"])
            for name in ("rows", "bytes", "results"):
                found[name][at] += table[name]
            found["idle"][at] = np.where(
                found["idle"][at] < 0, table["idle"], np.minimum(found["idle"][at], table["idle"])
            )
        return found

    def columns(self, most: int = MOST) -> dict[str, list[Any]]:
        """The accounts as columns, one entry for each group of each slot that has rows of it; the groups that are only
        on disk are entries without rows. If there are more than `most`, those with the most bytes are listed."""
        tables = [slot.table for slot in self.slots]
        own = [np.full(len(table), number) for number, table in zip(self.numbers, tables, strict=True)]
        here = np.concatenate([np.empty(0, TABLE), *tables])
        there = np.array(sorted(self.on_disk.difference(here["group"].tolist())), "i8")
        slots = np.concatenate([np.empty(0, "i8"), *own, self._places(there)])
        more = np.zeros(there.size, TABLE)
        more["group"] = there
        table = np.concatenate([here, more])
        some = np.sort(np.argsort(-table["bytes"], kind="stable")[:most])
        listed = table[some]
        return {
            "slot": slots[some].astype(int).tolist(),
            "group": listed["group"].tolist(),
            "bytes": listed["bytes"].tolist(),
            "rows": listed["rows"].tolist(),
            "results": np.round(listed["results"], 1).tolist(),
            "on_disk": [group in self.on_disk for group in listed["group"].tolist()],
        }

    def _places(self, groups: NDArray[np.int64]) -> NDArray[np.int64]:
        """The slots of groups without rows in memory; slot 0 where groups cannot move."""
        if self.places is None:
            return np.zeros(groups.size, np.int64)
        return np.where(groups < self.places.size, self.places[groups % self.places.size], 0).astype(np.int64)

    def as_dict(self, most: int = MOST) -> dict[str, Any]:
        """As a dictionary for JSON: totals, and a list of columns. If there are more than `most` groups, those with the
        most bytes are listed."""
        table = self.table
        some = np.sort(np.argsort(-table["bytes"], kind="stable")[:most])
        listed = table[some]
        return {
            "count": len(table),
            "on_disk": len(self.on_disk),
            "rows": int(table["rows"].sum()),
            "bytes": int(table["bytes"].sum()),
            "list": {
                "group": listed["group"].tolist(),
                "rows": listed["rows"].tolist(),
                "bytes": listed["bytes"].tolist(),
                "results": np.round(listed["results"], 1).tolist(),
                "idle_batches": [None if idle < 0 else idle for idle in listed["idle"].tolist()],
                "on_disk": [group in self.on_disk for group in listed["group"].tolist()],
            },
        }
