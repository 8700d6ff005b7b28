"""Finds the decisions that are new since the last look at a report.

Reports hold the newest decisions and count all of them. A decision is the same object in every report, so the new ones
come after the last one that is known.
"""

from __future__ import annotations

from itertools import takewhile

from eddyline.routing.decisions import Decision
from eddyline.routing.report import Report


class NewDecisions:
    """Remembers how far it has looked."""

    def __init__(self) -> None:
        self._taken = 0
        self._last: Decision | None = None

    def look(self, report: Report) -> tuple[list[Decision], int]:
        """The new decisions, oldest first, and how many more there were that the report does not hold any more."""
        taken = sum(report.counts.values())
        new, self._taken = taken - self._taken, taken
        known = list(takewhile(lambda d: d is not self._last, reversed(report.decisions)))[::-1]
        self._last = report.decisions[-1] if report.decisions else None
        return known, max(0, new - len(known))
