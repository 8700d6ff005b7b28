"""The plan of a slot, and the plan that it is migrating to: enough to take the same course with a state made anew."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Toward:
    """A migration that has not ended: to which plan, by which strategy, and how many rows it has moved."""

    plan: str
    parallel: bool
    moved: int


@dataclass(frozen=True)
class PlanCourse:
    """The current plan as text, empty for a slot that was not asked; and the migration that goes on."""

    plan: str = ""
    to: Toward | None = None
