"""The snapshot of a policy for another process: samples, and the orders that it decided."""

from __future__ import annotations

from eddyline.codec import Snapshot
from eddyline.plan.plan import Signature
from eddyline.routing.profile import ProfileSnapshot


class ForkSnapshot(Snapshot, frozen=True):
    """A fork, and the time of its last sample."""

    signature: Signature
    profile: ProfileSnapshot
    surprised: int
    news: int
    sampled: int
    ago: float
    """Seconds since the last sample: clocks of two processes cannot be compared."""
    expected: float
    took: float
    every: float


class NoteSnapshot(Snapshot, frozen=True):
    """The order that was decided for an entry."""

    signature: Signature
    order: tuple[int, ...]
    tried: tuple[int, ...]
    value: float
    news: int


class Learned(Snapshot, frozen=True):
    """Everything that the policy `auto` learned."""

    spent: float
    thought: float
    worked: float
    """Seconds since it began."""
    forks: tuple[ForkSnapshot, ...]
    """The forks in the order in which they were found."""
    notes: tuple[NoteSnapshot, ...]
