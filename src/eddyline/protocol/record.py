"""A record: what one slot did in a batch, told to the driver. The files that it names count only if it is committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eddyline.codec import packed, unpacked
from eddyline.counts import Counts
from eddyline.engine.estimate import Estimate
from eddyline.engine.plan_course import PlanCourse
from eddyline.engine.standing import StateSize
from eddyline.engine.tally import Spans
from eddyline.protocol.commit import LogFile
from eddyline.protocol.outlet import Outlet
from eddyline.routing.gathered import TurnReport

COMBINED = -1
"""The slot of a record of partial results that were put together."""


@dataclass(frozen=True)
class Staged:
    """Files with rows for one outlet."""

    outlet: Outlet
    files: tuple[str, ...]


@dataclass(frozen=True)
class Record:
    """What one slot did in a batch, by one attempt."""

    slot: int
    counts: Counts = field(default_factory=Counts)
    """What this slot counted, and what tasks counted, as far as this slot was told."""
    staged: tuple[Staged, ...] = ()
    newest: Mapping[str, int] = field(default_factory=dict)
    """The newest time of a readable row of each stream, as far as this slot was told."""
    log: LogFile | None = None
    merged: tuple[str, ...] = ()
    """Segments whose rows are in `log` now."""
    small: str | None = None
    """The segment with the slot's small state."""
    counted: Mapping[int, int | None] = field(default_factory=dict)
    """By source with a ROWS window the time before which its rows are in no window any more, if it is known."""
    course: PlanCourse = field(default_factory=PlanCourse)
    """The plan of the slot."""
    held: StateSize = field(default_factory=StateSize)
    """The state at the end of the turn, before expired rows are given back."""
    waiting: int = 0
    """Rows, and cells of groups, that wait for the watermark."""
    spans: tuple[Spans, ...] = ()
    """The times of the files that tasks read, as far as this slot was told."""
    report: TurnReport | None = None
    """What the eddy did in this turn; None if nothing happened."""
    estimate: Estimate | None = None
    """What the slot's optimiser believes."""

    def packed(self) -> bytes:
        """As bytes, for another process."""
        return packed(self)

    @staticmethod
    def unpacked(data: bytes) -> Record:
        """The record that `packed` gave."""
        return unpacked(data, Record)
