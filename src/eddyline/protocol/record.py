"""A record: the report of one slot to the driver about a batch. Files in it count only if the driver commits it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eddyline.balance.hot_key import KeyCount
from eddyline.codec import packed, unpacked
from eddyline.counts import Counts
from eddyline.engine.estimate import Estimate
from eddyline.engine.plan_course import PlanCourse
from eddyline.engine.standing import StateSize
from eddyline.engine.tally import Spans
from eddyline.protocol.commit import LogFile
from eddyline.protocol.outlet import Staged
from eddyline.routing.gathered import TurnReport
from eddyline.spill.accounts import Spillable

COMBINED = -1
"""The slot number in the record of combined partial results."""


@dataclass(frozen=True)
class Record:
    """The work of one attempt of one slot in a batch."""

    slot: int
    counts: Counts = field(default_factory=Counts)
    """The counts of this slot and of the tasks that sent their counts to it."""
    staged: tuple[Staged, ...] = ()
    newest: Mapping[str, int] = field(default_factory=dict)
    """By stream, the newest time of a readable row that tasks reported to this slot."""
    log: LogFile | None = None
    merged: tuple[str, ...] = ()
    """Segments that were merged into `log`."""
    small: str | None = None
    """The segment with the slot's small state."""
    counted: Mapping[int, int | None] = field(default_factory=dict)
    """For each source with a ROWS window, the time before which its rows are in no window any more; None: unknown."""
    course: PlanCourse = field(default_factory=PlanCourse)
    """The plan of the slot."""
    cpu: float = 0.0
    """CPU seconds that the slot took for the rows of the batch."""
    rows_in: int = 0
    """Rows that came to the slot."""
    bytes_in: int = 0
    """The bytes of these rows; 0 without a checkpoint."""
    held: StateSize = field(default_factory=StateSize)
    """The size of the state at the end of the turn, before expired rows are released."""
    waiting: int = 0
    """Rows, and cells of groups, that wait for the watermark."""
    attempt: str = ""
    """The name of the attempt, in a query with tables that are asked."""
    waits: int | None = None
    """The oldest time of a row that waits for the answer of a table."""
    spans: tuple[Spans, ...] = ()
    """The times of the files that tasks read, from the tasks that sent them to this slot."""
    keys: tuple[KeyCount, ...] = ()
    """Keys that have many rows, from the same tasks."""
    spillable: Spillable = field(default_factory=Spillable)
    """What can leave memory."""
    report: TurnReport | None = None
    """The work of the eddy in this turn; None if it did nothing."""
    estimate: Estimate | None = None
    """The costs that the slot's optimizer estimates."""
    rebuilt: bool = False
    """Whether the turn found no state that it could use, and rebuilt it from the log."""

    def packed(self) -> bytes:
        """Serialise for another process."""
        return packed(self)

    @staticmethod
    def unpacked(data: bytes) -> Record:
        """Read a record that `packed` serialised."""
        return unpacked(data, Record)
