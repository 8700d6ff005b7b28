"""The numbers that tune migrations. None of them changes a result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MigrationTuning:
    """How finely the work of a migration is divided."""

    chunk: int = 4096
    """Rows that are moved at a time; the clock is read after each such chunk."""


DEFAULT = MigrationTuning()
