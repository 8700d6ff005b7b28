"""The pressure of the input on a job. Rows of a batch do not show it: batches become smaller when a job is overloaded,
while more and more rows wait in the sources."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pressure:
    """What the driver knows of it when a batch begins."""

    backlog: int = 0
    """Rows that wait in the sources, for each slot, as far as the sources know."""
    busy: float = 0.0
    """The time of the batch before, divided by the time that it should take; 0: unknown."""


NO_PRESSURE = Pressure()
