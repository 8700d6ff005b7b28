"""A preference: rows that satisfy a condition come first. It changes the order of work, never a result.

It is a part of the decision of a batch, which is read without the engine.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preference:
    """Which rows come first, and since which batch."""

    text: str = ""
    """The condition as it is written; empty: no row is preferred."""
    since: int = -1
    """The number of the first batch with this preference."""


NO_PREFERENCE = Preference()
