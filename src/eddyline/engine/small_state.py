"""Small state: the numbers that live rows cannot tell. The cells and tuples that belong to it are record batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eddyline.routing.rows_windows import RowsCounted


@dataclass(frozen=True)
class SmallState:
    """The state of one slot that is the same in all slots of a job."""

    results: int | None
    """The next slide boundary; None without aggregates."""
    clocks: Mapping[int, RowsCounted]
    """By source with a ROWS window. Checkpoints have the field by this name."""
