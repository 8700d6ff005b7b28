"""Where an engine stands after a batch: what it has counted, the state that it holds, the watermark."""

from __future__ import annotations

from dataclasses import dataclass, field

from eddyline.counts import Counts


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
class Standing:
    """One moment of a run."""

    job: Counts = field(default_factory=Counts)
    """Since the job began: with a checkpoint over all its runs."""
    run: Counts = field(default_factory=Counts)
    """Since this run began."""
    held: StateSize = field(default_factory=StateSize)
    peak: StateSize = field(default_factory=StateSize)
    """The most that was held at the end of a batch of this run, before expired rows were given back."""
    watermark: int | None = None
    """The query's watermark, in microseconds since 1970; None: not known yet."""
    waiting: int = 0
    """Rows, and cells of groups, that wait for the watermark and are kept for the next run."""
    finished: bool = False
    """The streams have ended and all results are given: no run can go on with the job."""
