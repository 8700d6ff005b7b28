"""What a policy learned beside the traffic, for another process: samples, and the orders that it decided."""

from __future__ import annotations

from eddyline.codec import Snapshot
from eddyline.plan.plan import Signature
from eddyline.routing.profile import ProfileSnapshot


class ForkSnapshot(Snapshot, frozen=True):
    """A fork, and when it was sampled."""

    signature: Signature
    profile: ProfileSnapshot
    surprised: int
    news: int
    sampled: int
    ago: float
    """Seconds since it was last sampled: the clock of another process may tell another time."""
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
    """All that the policy `auto` learned."""

    spent: float
    thought: float
    worked: float
    """Seconds since it began."""
    forks: tuple[ForkSnapshot, ...]
    """In the order in which they were found."""
    notes: tuple[NoteSnapshot, ...]
