"""Decisions: every adaptation leaves a record of its measurements, its choice and its reason."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

KEPT = 1000
"""The number of newest records that are kept."""


@dataclass(frozen=True)
class Decision:
    """One adaptation. `at` is how many rows had been built; `what` and `why` are for display.

    A *verdict* is a decision with `paid`: what came of the newest decision before it with the same `about`.
    """

    kind: str
    at: int
    what: str
    why: str
    measured: Mapping[str, float] = field(default_factory=dict)
    expected: Mapping[str, float] = field(default_factory=dict)
    """The predictions by which it was chosen."""
    slot: int | None = None
    """The slot that it concerns; None: all of them, or the only one."""
    about: str = ""
    """A name of what it changes; empty if no verdict will come."""
    paid: bool | None = None

    def of_slot(self, slot: int) -> Decision:
        """The decision with the number of its slot, also in its text."""
        return replace(self, slot=slot, what=f"slot {slot}: {self.what}")


class DecisionLog:
    """The newest decisions, and the number of decisions of each kind."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.added = 0
        """The number of all decisions so far."""
        self.recent: deque[Decision] = deque(maxlen=KEPT)

    def add(self, decision: Decision) -> None:
        """Record a decision."""
        self.counts[decision.kind] += 1
        self.added += 1
        self.recent.append(decision)
