"""What slots report about a batch, as the distribution manager sees it.

The figures of groups are those of the last batches, smoothed by the slot: the manager keeps nothing about single
groups, so its state stays small. A slot reports only groups that have rows or took CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eddyline.codec import Snapshot

GROUP_LOAD = np.dtype([("group", "<i4"), ("rows", "<i8"), ("bytes", "<i8"), ("results", "<f4"), ("cpu", "<f4")])
"""The load of a group: its rows and bytes in memory, and its results and CPU seconds a batch."""

GroupLoads = NDArray[np.void]
"""An array of `GROUP_LOAD`."""

Floats = NDArray[np.float64]


class SlotReport(Snapshot, frozen=True):
    """What one slot reports after a batch.

    >>> report = SlotReport(0, memory=700, cpu=1.5, groups=group_loads([3, 7], [10, 60], [100, 600], [5, 0], [1, 0.5]))
    >>> report.table["group"].tolist(), report.table["bytes"].sum()
    ([3, 7], np.int64(700))
    """

    slot: int
    memory: int = 0
    """Bytes of state."""
    growth: int = 0
    """Bytes by which the state grows if the next batch is like this one."""
    cpu: float = 0.0
    """CPU seconds that the batch took."""
    backlog: int = 0
    """Rows for this slot that wait for a later batch."""
    rows_out: int = 0
    """Result rows of the batch."""
    on_disk: int = 0
    """Bytes that its groups would take in memory and that are only on disk."""
    spilling: bool = False
    """Whether groups of the slot leave memory, or are swept, before the next batch."""
    rows_in: int = 0
    """Rows of the batch that came to this slot."""
    groups: bytes = b""
    """The loads of its groups, an array of `GROUP_LOAD`."""

    @property
    def table(self) -> GroupLoads:
        """The loads of its groups."""
        return np.frombuffer(self.groups, GROUP_LOAD)


def group_loads(groups: ArrayLike, rows: ArrayLike, bytes: ArrayLike, results: ArrayLike, cpu: ArrayLike) -> bytes:
    """The `groups` of a report, from one column each."""
    table = np.zeros(np.size(groups), GROUP_LOAD)
    for name, column in zip(GROUP_LOAD.names or (), (groups, rows, bytes, results, cpu), strict=True):
        table[name] = column
    return table.tobytes()


def shared_cpu(seconds: float, arrived: ArrayLike, results: ArrayLike, result_cost: float = 0.5) -> Floats:
    """CPU seconds of a slot divided over its groups, as many as there are numbers. A result costs `result_cost` times
    as much as a row that arrives.

    >>> shared_cpu(6.0, [10, 0, 0], [0, 40, 0]).tolist()
    [2.0, 4.0, 0.0]
    """
    work: Floats = np.asarray(arrived, np.float64) + result_cost * np.asarray(results, np.float64)
    whole = float(work.sum())
    return work * (seconds / whole) if whole > 0 else work


@dataclass(frozen=True)
class Loads:
    """The reports of all slots as columns: by slot, and by group. A group that several slots report has the sum."""

    memory: Floats
    growth: Floats
    cpu: Floats
    on_disk: Floats
    backlog: Floats
    rows_in: Floats
    rows_out: Floats
    spilling: NDArray[np.bool_]
    group_bytes: Floats
    group_rows: Floats
    group_results: Floats
    group_cpu: Floats
    known_cpu: Floats
    """By slot the CPU of the groups that it reports."""
    known: NDArray[np.bool_] = field(repr=False)
    """Whether a slot has reported."""

    @staticmethod
    def of(reports: Sequence[SlotReport], slots: int, groups: int) -> Loads:
        """The columns of these reports. A report of a slot or group that does not exist is a ValueError."""
        at = np.array([report.slot for report in reports], np.int64)
        table = np.frombuffer(b"".join(report.groups for report in reports), GROUP_LOAD)
        if at.size and not 0 <= at.min() <= at.max() < slots:
            raise ValueError(f"a report of slot {at.max()}, there are {slots}")
        if table.size and not 0 <= table["group"].min() <= table["group"].max() < groups:
            raise ValueError(f"a report of group {table['group'].max()}, there are {groups}")

        def by_slot(values: Sequence[float]) -> Floats:
            return np.bincount(at, np.array(values, np.float64), slots).astype(np.float64)

        def by_group(name: str) -> Floats:
            return np.bincount(table["group"], table[name], groups).astype(np.float64)

        return Loads(
            by_slot([report.memory for report in reports]),
            by_slot([report.growth for report in reports]),
            by_slot([report.cpu for report in reports]),
            by_slot([report.on_disk for report in reports]),
            by_slot([report.backlog for report in reports]),
            by_slot([report.rows_in for report in reports]),
            by_slot([report.rows_out for report in reports]),
            by_slot([report.spilling for report in reports]) > 0,
            by_group("bytes"),
            by_group("rows"),
            by_group("results"),
            by_group("cpu"),
            by_slot([float(report.table["cpu"].sum(dtype=np.float64)) for report in reports]),
            np.bincount(at, minlength=slots) > 0,
        )
