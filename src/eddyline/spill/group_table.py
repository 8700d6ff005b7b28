"""The accounts of the partition groups of a job after a batch, over all its slots, for display.

Slots send their accounts to the driver with every batch, because the spiller needs them. This table keeps them as they
came, and adds them up only when they are asked for, so that a batch does not pay for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
