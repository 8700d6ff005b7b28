"""What a slot remembers of the answers of tables: which came when, for whom, and what has failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.codec import Snapshot
from eddyline.counts import StreamCounts
from eddyline.engine.lookups.look_up import DeadRows
from eddyline.engine.lookups.retry_marks import AskedAgain, AskedAgainSnapshot
from eddyline.plan.bounds import FOREVER
from eddyline.routing.packet import Packet
from eddyline.state.rows import Rows

Ints = NDArray[np.int64]

_FORGOTTEN, _MARKS = "\0forgotten", "\0marks"
"""The sections of the small state that tell which answers are forgotten, and the watermarks at marks."""
_BASE = "\0base"
"""Told as if it were a table."""


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
class UnreadableRows:
    """Rows of a table that cannot be read. A scan brings them to each slot; an index to the slot that asked."""

    table: str
    dead: DeadRows
    by_scan: bool

    def is_told_by(self, slot: int) -> bool:
        """Whether this slot counts them and writes them down: each row is told once."""
        return not self.by_scan or slot == 0

    @property
    def counts(self) -> StreamCounts:
        """As counts of the table."""
        return StreamCounts(dead=self.dead.rows.num_rows, reason=self.dead.reasons[0].as_py())


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


@dataclass
class Arrivals:
    """The rows of tables that came since the last commit."""

    rows: list[Came] = field(default_factory=list)

    def oldest(self, packet: Packet, rows: Sequence[Rows]) -> Ints:
        """The oldest time of a row that waits if these tuples wait: of their components, or of those that waited for a
        row with which a tuple started."""
        found = np.full(packet.size, FOREVER)
        for source, of_source in packet.rows.items():
            if source >= 0 and rows[source].timed:
                np.minimum(found, rows[source].times.values[of_source], out=found)
        for came in self.rows:
            if came.source in packet.rows:
                which = came.among(packet.rows[came.source])
                found[which] = np.minimum(found[which], came.since)
        return found


@dataclass(frozen=True)
class NewRows:
    """The new rows of an answer, for those who waited since a time and asked after a mark."""

    rows: pa.RecordBatch
    since: int
    mark: int


class Answers(Snapshot, frozen=True):
    """The answers of a table that came in one batch: where they end."""

    table: str
    batch: int
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
    forgotten: Mapping[str, int]
    complete: tuple[str, ...]
    seeded: tuple[str, ...]


@dataclass
class Known:
    """What changes in a batch, and is wound back as a whole."""

    marks: AskedAgain = field(default_factory=AskedAgain)
    answers: list[Answers] = field(default_factory=list)
    """The answers of each batch, the oldest first, as long as they are kept, of tables whose answers are forgotten."""
    forgotten: dict[str, int] = field(default_factory=dict)
    """By table, the batch before which all its answers are forgotten."""
    complete: set[str] = field(default_factory=set)
    """The tables whose scan has ended: nothing is asked of them any more."""
    seeded: set[str] = field(default_factory=set)
    """The tables whose scan was begun (in the paper: by a seed tuple)."""

    def copy(self) -> Known:
        """A copy."""
        return Known.of(self.saved())

    def small_state(self) -> list[tuple[str, pa.RecordBatch]]:
        """What cannot be rebuilt from rows: which answers are forgotten, since when all keys are asked again, and the
        watermarks at marks."""
        found, marks = [], self.marks.watermarks
        if self.forgotten:
            told = {**self.forgotten, _BASE: self.marks.base}
            found.append((_FORGOTTEN, pa.record_batch({"table": list(told), "batch": list(told.values())})))
        if marks:
            found.append((_MARKS, pa.record_batch({"mark": list(marks), "watermark": list(marks.values())})))
        return found

    def restore_small_state(self, batches: Sequence[tuple[str, pa.RecordBatch]]) -> None:
        """Restore from the small state."""
        for batch in (batch for section, batch in batches if section == _FORGOTTEN):
            self.forgotten = dict(zip(*(column.to_pylist() for column in batch.columns), strict=True))
            self.marks.base = self.forgotten.pop(_BASE)
        for batch in (batch for section, batch in batches if section == _MARKS):
            self.marks.watermarks = dict(zip(*(column.to_pylist() for column in batch.columns), strict=True))

    def saved(self) -> KnownSnapshot:
        """A snapshot for another process."""
        return KnownSnapshot(
            marks=self.marks.saved(),
            answers=tuple(self.answers),
            forgotten=dict(self.forgotten),
            complete=tuple(sorted(self.complete)),
            seeded=tuple(sorted(self.seeded)),
        )

    @staticmethod
    def of(saved: KnownSnapshot) -> Known:
        """From a snapshot."""
        return Known(
            AskedAgain.of(saved.marks),
            list(saved.answers),
            dict(saved.forgotten),
            set(saved.complete),
            set(saved.seeded),
        )
