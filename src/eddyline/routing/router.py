"""Routers choose which of the allowed steps packets take next. Results never depend on the choice, only the cost.

A router is asked two things: to remake the decision of an entry, when the tuples it stood for are used up; and whether
some tuples of a packet should try another step, so that something is known about it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from eddyline.plan.plan import Plan
from eddyline.routing.decisions import DecisionLog
from eddyline.routing.policies.auto import Auto
from eddyline.routing.policies.benefit import Benefit
from eddyline.routing.policies.fixed import Fixed
from eddyline.routing.policies.lottery import Lottery
from eddyline.routing.policies.random import Random
from eddyline.routing.policies.rank import Rank
from eddyline.routing.routing_arrays import Entry, RoutingArrays, Traffic
from eddyline.routing.statistics import Work
from eddyline.settings import Settings


class Router(Protocol):
    """Decides for entries with at least one step."""

    def decide(self, entry: Entry) -> Traffic:
        """The step to take from now on."""

    def trial(self, entry: Entry, size: int) -> tuple[Traffic, int] | None:
        """Another step that so many of the `size` tuples should take, if any."""


def router(
    settings: Settings,
    plan: Plan,
    routes: RoutingArrays,
    work: Work,
    decisions: DecisionLog,
    clock: Callable[[], float],
) -> Router:
    """The router that the settings name."""
    if settings.router == "auto":
        return Auto(plan, routes, work, decisions, settings.explore, clock)
    if settings.router == "random":
        return Random(settings.seed)
    if settings.router == "lottery":
        return Lottery(settings.seed)
    if settings.router == "rank":
        return Rank(work)
    if settings.router == "benefit":
        return Benefit(work)
    return Fixed()
