"""The settings of INTERFACE: one frozen record, parsed from text, refused in one line when wrong or not built yet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """What a run may be told. `check` makes the eddy check every routing constraint at every step (tests)."""

    router: str = "fixed"
    packet: int = 65536
    seed: int = 0
    memory: int | None = None
    batch_rows: int = 65536
    at_end: str = "flush"
    check: bool = False
