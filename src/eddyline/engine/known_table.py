"""A table that is asked, as a slot knows it: its indexes, and a scan that is under way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.model import BoundStream
from eddyline.codec import Snapshot
from eddyline.engine.asked_index import Index, in_bytes, of_bytes
from eddyline.engine.asked_keys import KeyValues, values


class ScanSnapshot(Snapshot, frozen=True):
    """The rows that a scan has brought, those that it will bring again, and how many batches of them are committed."""

    scanned: bytes
    again: bytes
    committed: int


@dataclass
class KnownTable:
    """What a slot knows of one table."""

    stream: BoundStream
    sources: tuple[int, ...]
    indexes: dict[int, Index]
    scan: int | None
    """The access method that is a scan."""
    scanned: list[pa.RecordBatch] = field(default_factory=list)
    """The rows that a scan has brought which has not ended."""
    committed: int = 0
    """How many of these batches came before the last commit."""
    again: Counter[KeyValues] = field(default_factory=Counter)
    """The rows that a scan which was begun again will bring for the second time."""

    def take_scanned(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of a scan; returns those that are new."""
        for index in self.indexes.values():
            rows = without(rows, index.has(rows))
        if self.again:
            rows = beyond(rows, self.again)
        self.scanned.append(rows)
        return rows

    def load(self, rows: pa.RecordBatch) -> None:
        """Rows that are there; the scan has not ended, and its rows are among them."""
        for index in self.indexes.values():
            rows = without(rows, index.has(rows))
        self.scanned.append(rows)
        self.committed = len(self.scanned)

    def saved(self) -> ScanSnapshot:
        """A snapshot of the scan for another process."""
        left = Counter(self.again)
        coming = [_among(rows, left) for rows in self.scanned] if left else []
        scanned, again = (in_bytes(some) if some else b"" for some in (self.scanned, coming))
        return ScanSnapshot(scanned, again, self.committed)

    def restore(self, saved: ScanSnapshot) -> None:
        """Restore from a snapshot."""
        self.scanned = of_bytes(saved.scanned) if saved.scanned else []
        again = of_bytes(saved.again) if saved.again else []
        self.again = Counter(row for rows in again for row in values(rows))
        self.committed = saved.committed

    def wind_back(self) -> None:
        """Undo everything since the last commit. If there was a scan it begins again, and brings the rows again that
        came before."""
        del self.scanned[self.committed :]
        self.again = Counter(row for part in self.scanned for row in values(part))

    def beside_scan(self, rows: pa.RecordBatch, index: Index, keys: Collection[KeyValues]) -> pa.RecordBatch:
        """The rows of an answer without those that the scan has brought so far: of equal rows as many are left out as
        it has brought."""
        there = Counter(
            row
            for part in self.scanned
            for key, row in zip(values(part.select(list(index.columns))), values(part), strict=True)
            if key in keys
        )
        return beyond(rows, there) if there else rows


def without(rows: pa.RecordBatch, known: NDArray[np.bool_]) -> pa.RecordBatch:
    return rows.filter(pa.array(~known)) if known.any() else rows


def beyond(rows: pa.RecordBatch, there: Counter[KeyValues]) -> pa.RecordBatch:
    """The rows without those that are there already: of equal rows as many are left out as are there. Those are taken
    out of `there`."""
    return rows.filter(pc.invert(_which(rows, there)))


def _among(rows: pa.RecordBatch, some: Counter[KeyValues]) -> pa.RecordBatch:
    """The rows that are among some, of equal rows as many as those are; they are taken out of them."""
    return rows.filter(_which(rows, some))


def _which(rows: pa.RecordBatch, some: Counter[KeyValues]) -> pa.BooleanArray:
    found = []
    for row in values(rows):
        found.append(some[row] > 0)
        some[row] -= found[-1]
    return pa.array(found, pa.bool_())
