"""Small state: the numbers that cannot be rebuilt from live rows. Its cells and tuples are record batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eddyline.routing.rows_windows import RowsCounted


@dataclass(frozen=True)
class SmallState:
    """The small state of one slot. These numbers are the same in all slots of a job."""

    results: int | None
    """The next slide boundary; None without aggregates."""
    clocks: Mapping[int, RowsCounted]
    """The rows counted, by source with a ROWS window. The field has this name in checkpoints."""
