"""The counts of rows that were read, for a commit. Checks import it, so it imports no compiled kernels."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SeenCounts:
    """`SeenRows` for a commit."""

    clusters: tuple[int, ...]
    oldest: int | None = None
