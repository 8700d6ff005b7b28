"""A finished batch, as a slot reports it to its plan source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eddyline.optimizer.pressure import NO_PRESSURE, Pressure


@dataclass(frozen=True)
class FinishedBatch:
    """The costs of a batch, and how far it came."""

    watermarks: Mapping[str, int | None]
    """The watermark of each stream after the batch."""
    held: int
    """Bytes of the slot's state at the end, before rows expired."""
    seconds: float
    """CPU seconds of the batch."""
    pressure: Pressure = NO_PRESSURE
    """The pressure of the input when the batch began."""
