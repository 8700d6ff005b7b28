"""What a run did, in numbers: while it runs and at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """A look at a run; `watermark` is the query's, in microseconds since the epoch (None: not known yet)."""

    rows_in: int = 0
    rows_out: int = 0
    rows_late: int = 0
    rows_dead: int = 0
    state_rows: int = 0
    memory_bytes: int = 0
    batches: int = 0
    seconds: float = 0.0
    watermark: int | None = None


@dataclass(frozen=True)
class Summary:
    """The object that `--json` prints; rows_in = rows_used + rows_late + rows_dead."""

    rows_in: int
    rows_out: int
    rows_used: int
    rows_late: int
    rows_dead: int
    expression_errors: int
    peak_state_rows: int
    peak_memory_bytes: int
    spilled_rows: int
    migrations: int
    batches: int
    seconds: float
    start_seconds: float
    stopped: bool
    """Whether it was stopped before its streams ended; then nothing that waited for a watermark was flushed."""
    decisions: Mapping[str, int]
    plan: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)
