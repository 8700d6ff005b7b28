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
    subject: str = ""
    """Of a change of route: the tuples that take it, by the aliases of their sources."""
    before: tuple[str, ...] = ()
    """Of a change of route: the remaining steps in their old order, by alias or text of a selection."""
    after: tuple[str, ...] = ()
    """The same steps in their new order."""

    def of_slot(self, slot: int) -> Decision:
        """The decision with the number of its slot, also in its text."""
        return replace(self, slot=slot, what=f"slot {slot}: {self.what}")

    def cut(self, letters: int) -> Decision:
        """The decision with no text longer than this."""
        before, after = (tuple(step[:letters] for step in steps) for steps in (self.before, self.after))
        what, why, subject = self.what[:letters], self.why[:letters], self.subject[:letters]
        return replace(self, what=what, why=why, subject=subject, before=before, after=after)


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
