"""The standing of an engine after a batch: its counts, the size of its state, and the watermark."""

from __future__ import annotations

from dataclasses import dataclass, field

from eddyline.counts import Counts
from eddyline.engine.watermarks import Reached
from eddyline.spill.group_table import GroupTable


@dataclass(frozen=True)
class StateSize:
    """Rows and bytes of state.

    >>> StateSize(2, 50) + StateSize(3, 10), StateSize(2, 50).most(StateSize(3, 10))
    (StateSize(rows=5, bytes=60), StateSize(rows=3, bytes=50))
    """

    rows: int = 0
    bytes: int = 0

    def __add__(self, other: StateSize) -> StateSize:
        return StateSize(self.rows + other.rows, self.bytes + other.bytes)

    def most(self, other: StateSize) -> StateSize:
        """The larger number of rows, and the larger number of bytes."""
        return StateSize(max(self.rows, other.rows), max(self.bytes, other.bytes))


@dataclass(frozen=True)
class DiskSize:
    """What a job has on disk."""

    groups: int = 0
    """Groups with rows that are in the log and not in memory."""
    log_bytes: int = 0
    """The size of the log."""

    def most(self, other: DiskSize) -> DiskSize:
        """The larger number of groups, and the larger log."""
        return DiskSize(max(self.groups, other.groups), max(self.log_bytes, other.log_bytes))


@dataclass(frozen=True)
class SlotStanding:
    """The numbers of one slot at one moment."""

    slot: int
    rows: int
    """Rows that it holds."""
    bytes: int
    cpu: float
    """CPU seconds that it has taken for rows in this run."""


@dataclass(frozen=True)
class Standing:
    """The numbers of a run at one moment."""

    job: Counts = field(default_factory=Counts)
    """Counts since the job began; with a checkpoint, over all its runs."""
    run: Counts = field(default_factory=Counts)
    """Counts since this run began."""
    held: StateSize = field(default_factory=StateSize)
    peak: StateSize = field(default_factory=StateSize)
    """The largest state at the end of a batch of this run, before expired rows were released."""
    watermark: int | None = None
    """The query's watermark, in microseconds since 1970; None: not known yet."""
    reached: Reached = field(default_factory=Reached)
    """How far the streams have come."""
    waiting: int = 0
    """Rows, and cells of groups, that wait for the watermark and are kept for the next run."""
    disk: DiskSize = field(default_factory=DiskSize)
    peak_disk: DiskSize = field(default_factory=DiskSize)
    """The most that was on disk after a batch of this run."""
    behind: int = 0
    """How far the results of groups on disk are behind the watermark, in microseconds."""
    groups: GroupTable = field(default_factory=GroupTable)
    """The accounts of the partition groups; empty where groups cannot leave memory."""
    rebuilt: int = 0
    """How often a slot rebuilt its state from the log in this run."""
    finished: bool = False
    """Whether the streams have ended and all results are emitted, so that no run can continue the job."""
    prefer: str = ""
    slots: tuple[SlotStanding, ...] = ()
    """The slots after the last batch."""
    """The condition of rows that come first; empty: no row is preferred."""
