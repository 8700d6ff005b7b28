"""The course of a slot: its plan and the plan that it is migrating to. A slot with a rebuilt state can take it up
again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Toward:
    """A migration under way: its target plan, its strategy, and how many rows it has moved."""

    plan: str
    parallel: bool
    moved: int


@dataclass(frozen=True)
class PlanCourse:
    """The current plan as text, empty if unknown; and the migration under way."""

    plan: str = ""
    to: Toward | None = None
