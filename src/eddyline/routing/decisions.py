"""Decisions: every adaptation leaves a record of its measurements, its choice and its reason."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

KEPT = 1000
"""The number of newest records that are kept."""


@dataclass(frozen=True)
class Decision:
    """One adaptation. `at` is how many rows had been built; `what` and `why` are for display."""

    kind: str
    at: int
    what: str
    why: str
    measured: Mapping[str, float] = field(default_factory=dict)


class DecisionLog:
    """The newest decisions, and the number of decisions of each kind."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.recent: deque[Decision] = deque(maxlen=KEPT)

    def add(self, decision: Decision) -> None:
        """Record a decision."""
        self.counts[decision.kind] += 1
        self.recent.append(decision)
