"""Decisions: every adaptation leaves a record of what was measured, what was chosen and why."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

KEPT = 1000
"""How many of the newest records are kept."""


@dataclass(frozen=True)
class Decision:
    """One adaptation. `at` is how many rows had been built; `what` and `why` are for people."""

    kind: str
    at: int
    what: str
    why: str
    measured: Mapping[str, float] = field(default_factory=dict)


class DecisionLog:
    """The newest decisions, and how many there were of each kind."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.recent: deque[Decision] = deque(maxlen=KEPT)

    def add(self, decision: Decision) -> None:
        """Note a decision."""
        self.counts[decision.kind] += 1
        self.recent.append(decision)
