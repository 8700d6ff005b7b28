"""Accounts of partition groups: what each group takes of a slot's memory, and what it gives.

The rows of each source are counted by group, once when they come and once when they expire: the counted rows
are those from `first` to `last` of each source. Results are counted on a sample of them. Results and arrived rows decay
from batch to batch. A commit keeps a copy of the numbers, which a wind-back takes again.

A group that moves to another slot goes on there with its account: the slot that had it reported the account after the
last batch, and the driver passes it on (`BatchDecision.moved`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eddyline.codec import Snapshot
from eddyline.plan.spill_axis import SpillAxis
from eddyline.routing.packet import Packet
from eddyline.state.part import Cut, Part
from eddyline.state.stem import SteM

Ints = NDArray[np.int64]

TABLE = np.dtype(
    [("group", "i4"), ("rows", "i8"), ("bytes", "i8"), ("results", "f8"), ("idle", "i4"), ("arrived", "f8")]
)
"""The account of a group: its rows and bytes in memory, its decayed results, the batches since its last row, and the
decayed number of rows that arrived."""

Table = NDArray[np.void]
"""An array of `TABLE`."""

KEPT = 0.9
"""The share of a group's results, and of the rows that arrived, that still counts one batch later."""
SAMPLED = 32
"""One of this many results is counted, for all of them."""
ENOUGH, APART = 1 << 19, 1 << 20
"""After this many results of a batch, results are counted that are so far apart, for those in between."""


class NumbersSnapshot(Snapshot, frozen=True):
    """The numbers of accounts as bytes."""

    batch: int
    counted: tuple[tuple[int, int], ...]
    rows: bytes
    results: bytes
    last: bytes
    arrived: bytes


class AccountsSnapshot(Snapshot, frozen=True):
    """The numbers of accounts now and at the last commit."""

    now: NumbersSnapshot
    committed: NumbersSnapshot


@dataclass
class _Numbers:
    batch: int
    counted: tuple[tuple[int, int], ...]
    """By source the first row that is counted, and the first that is not counted yet."""
    rows: Ints
    """By source and group."""
    results: NDArray[np.float64]
    last: Ints
    """By group the last batch in which a row came."""
    arrived: NDArray[np.float64]

    def copy(self) -> _Numbers:
        rows, results, last = self.rows.copy(), self.results.copy(), self.last.copy()
        return _Numbers(self.batch, self.counted, rows, results, last, self.arrived.copy())

    def saved(self) -> NumbersSnapshot:
        arrays = self.rows, self.results, self.last, self.arrived
        return NumbersSnapshot(self.batch, self.counted, *(array.tobytes() for array in arrays))

    def restored(self, saved: NumbersSnapshot) -> _Numbers:
        rows = np.frombuffer(saved.rows, np.int64).reshape(self.rows.shape).copy()
        results, last = np.frombuffer(saved.results).copy(), np.frombuffer(saved.last, np.int64).copy()
        return _Numbers(saved.batch, saved.counted, rows, results, last, np.frombuffer(saved.arrived).copy())


@dataclass(frozen=True)
class Spillable:
    """What can leave the memory of a slot, at the end of a batch."""

    accounts: bytes = b""
    """Those of the groups that are not empty (`GroupAccounts.table`)."""
    stays: int = 0
    """Bytes of everything that cannot leave."""
    growth: int = 0
    """Bytes by which the slot grows if the next batch is like this one."""
    added: int = 0
    """Bytes of the rows of this batch; some of them, and of those before, may have expired."""

    @property
    def table(self) -> Table:
        """The accounts of the groups that are not empty."""
        return np.frombuffer(self.accounts, TABLE)


class GroupAccounts(Part):
    """Keeps the accounts of the groups of one slot."""

    name, snapshot = "accounts", AccountsSnapshot

    def __init__(self, axis: SpillAxis, stems: Sequence[SteM]) -> None:
        """`stems` are those of the sources. Results are counted for the groups of the sources that lead."""
        self._size, self._stems = axis.count, tuple(stems)
        self._source, self._sampled = next((source, stem) for source, stem in enumerate(stems) if axis.has(source))
        groups, counted = self._size, ((0, 0),) * len(stems)
        rows, last = np.zeros((len(stems), groups), np.int64), np.zeros(groups, np.int64)
        self._now = _Numbers(0, counted, rows, np.zeros(groups), last, np.zeros(groups))
        self._committed = self._now.copy()
        self._seen = self._uncounted = 0
        """Results of the batch, and those since the last that were counted."""

    # A batch

    def count_results(self, packet: Packet) -> None:
        """Complete tuples, all of whose rows can be read."""
        self._seen += packet.size
        self._uncounted += packet.size
        if self._seen > ENOUGH and self._uncounted < APART:
            return
        some = packet.rows[self._source][::SAMPLED]
        weights = None if packet.carried is None else packet.carried.weights[::SAMPLED]
        found = np.bincount(self._sampled.rows.groups(some), weights, self._size)
        self._now.results += found * (self._uncounted / some.size)
        self._uncounted = 0

    def end_batch(self) -> None:
        """All rows of the batch are stored, and those that expire with it have expired but are not released."""
        now = self._now
        now.batch += 1
        self._seen = self._uncounted = 0
        came = self._count()
        now.last[came > 0] = now.batch
        now.arrived = (now.arrived + came) * KEPT
        now.results *= KEPT

    def _count(self) -> Ints:
        """Count the rows that were stored and that expired since the last call. Returns those stored, by group."""
        now, counted, came = self._now, [], np.zeros(self._size, np.int64)
        for stem, rows, (first, last) in zip(self._stems, now.rows, now.counted, strict=True):
            live, stored = stem.rows.min_live, stem.rows.stored
            if stored > last:
                before = rows.copy()
                stem.rows.add_by_group(slice(last, stored), 1, rows)
                came += rows - before
            if live > first:
                stem.rows.add_by_group(slice(first, live), -1, rows)
            counted.append((live, stored))
        now.counted = tuple(counted)
        return came

    def commit(self, cut: Cut | None = None) -> None:
        self._committed = self._now.copy()

    def wind_back(self) -> None:
        """Undo everything since the last commit."""
        self._now = self._committed.copy()

    # Between two batches

    def take_over(self, accounts: Table) -> None:
        """After rows were loaded that came in earlier batches: they are counted, and are no arrivals. Groups that were
        in another slot go on with the accounts that they had there."""
        now = self._now
        came = self._count()
        now.last[came > 0] = now.batch
        known = accounts["group"]
        now.results[known], now.arrived[known] = accounts["results"], accounts["arrived"]
        now.last[known] = now.batch - accounts["idle"]
        self.commit()

    def forget(self, groups: Ints) -> int:
        """After all rows of these groups have left memory: the others have new numbers. The results that the rows made
        go with them: rows to come do not earn them."""
        self._now.rows[:, groups] = 0
        self._now.results[groups] = self._now.arrived[groups] = 0
        self._now.counted = tuple((stem.rows.min_live, stem.rows.stored) for stem in self._stems)
        self.commit()
        return 0

    def saved(self) -> AccountsSnapshot:
        """A snapshot for another process."""
        return AccountsSnapshot(self._now.saved(), self._committed.saved())

    def restore(self, saved: AccountsSnapshot) -> None:
        """Restore from a snapshot."""
        self._committed = self._now.restored(saved.committed)
        self._now = self._now.restored(saved.now)

    # Read

    def table(self, shared: int = 0) -> Table:
        """The accounts of all groups that are not empty. `shared` are bytes of tuples of several sources, which groups
        share as they share the rows."""
        now, rows = self._now, self._now.rows.sum(axis=0)
        here = np.flatnonzero(rows)
        table = np.empty(here.size, TABLE)
        each = [stem.row_bytes for stem in self._stems]
        size = np.array(each) @ now.rows[:, here] + shared * (rows[here] / max(1, rows.sum()))
        table["group"], table["rows"], table["bytes"] = here, rows[here], np.ceil(size)
        table["results"], table["idle"] = now.results[here], now.batch - now.last[here]
        table["arrived"] = now.arrived[here]
        return table
