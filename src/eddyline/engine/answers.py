"""What a slot remembers of the answers of tables: which came when, for whom, and what has failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.codec import Snapshot
from eddyline.engine.asked_again import AskedAgain, AskedAgainSnapshot

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Failure:
    """Lookups that have failed for good."""

    table: str
    keys: pa.RecordBatch
    reason: str

    @property
    def reasons(self) -> pa.Array:
        """The reason, for each key."""
        return pa.repeat(self.reason, self.keys.num_rows)


@dataclass(frozen=True)
class Came:
    """Rows of a table that came with an answer: numbers first..last-1 of a source."""

    source: int
    first: int
    last: int
    since: int
    """The oldest time of a row that may have waited for them."""

    def among(self, rows: Ints) -> Ints:
        """Which of these rows of the source are among them."""
        return np.flatnonzero((rows >= self.first) & (rows < self.last))


@dataclass(frozen=True)
class NewRows:
    """The new rows of an answer, for those who waited since a time and asked after a mark."""

    rows: pa.RecordBatch
    since: int
    mark: int


def all_rows(some: Sequence[NewRows]) -> NewRows:
    """The new rows of answers that were asked after the same mark."""
    if len(some) == 1:
        return some[0]
    return NewRows(pa.concat_batches([new.rows for new in some]), min(new.since for new in some), some[0].mark)


class Answers(Snapshot, frozen=True):
    """The answers of a table that came in one batch: where they end."""

    table: str
    came: float
    """When, in seconds."""
    rows: tuple[int, ...]
    """The number of rows of each source of the table after it."""
    keys: tuple[int, ...]
    """The number of keys that each index has answered after it."""


class KnownSnapshot(Snapshot, frozen=True):
    """Marks, the answers of batches, and which scans have ended or begun."""

    marks: AskedAgainSnapshot
    answers: tuple[Answers, ...]
    complete: tuple[str, ...]
    seeded: tuple[str, ...]


@dataclass
class Known:
    """What changes in a batch, and is wound back as a whole."""

    marks: AskedAgain = field(default_factory=AskedAgain)
    answers: list[Answers] = field(default_factory=list)
    """The answers of each batch, the oldest first, as long as they are kept."""
    complete: set[str] = field(default_factory=set)
    """The tables whose scan has ended: nothing is asked of them any more."""
    seeded: set[str] = field(default_factory=set)
    """The tables whose scan was begun (in the paper: by a seed tuple)."""

    def copy(self) -> Known:
        """A copy."""
        return Known(self.marks.copy(), list(self.answers), set(self.complete), set(self.seeded))

    def saved(self) -> KnownSnapshot:
        """A snapshot for another process."""
        return KnownSnapshot(
            self.marks.saved(), tuple(self.answers), tuple(sorted(self.complete)), tuple(sorted(self.seeded))
        )

    @staticmethod
    def of(saved: KnownSnapshot) -> Known:
        """From a snapshot."""
        return Known(AskedAgain.of(saved.marks), list(saved.answers), set(saved.complete), set(saved.seeded))
