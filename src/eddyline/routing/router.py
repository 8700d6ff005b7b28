"""Makes the router, which chooses the next step of packets: the policy that the settings name."""

from __future__ import annotations

from collections.abc import Callable

from eddyline.plan.plan import Plan
from eddyline.routing.decisions import DecisionLog
from eddyline.routing.policies.auto import Auto
from eddyline.routing.policies.benefit import Benefit
from eddyline.routing.policies.fixed import Fixed
from eddyline.routing.policies.lottery import Lottery
from eddyline.routing.policies.policy import Policy
from eddyline.routing.policies.random import Random
from eddyline.routing.policies.rank import Rank
from eddyline.routing.routing_arrays import RoutingArrays
from eddyline.routing.statistics import Work
from eddyline.routing.tuning import DEFAULT, RoutingTuning
from eddyline.settings import Settings


def router(
    settings: Settings,
    plan: Plan,
    routes: RoutingArrays,
    work: Work,
    decisions: DecisionLog,
    clock: Callable[[], float],
    tuning: RoutingTuning = DEFAULT,
) -> Policy:
    """The policy that the settings name."""
    if settings.router == "auto":
        return Auto(plan, routes, work, decisions, settings.explore, clock, tuning)
    if settings.router == "random":
        return Random(settings.seed)
    if settings.router == "lottery":
        return Lottery(settings.seed, tuning)
    if settings.router == "rank":
        return Rank(work, tuning)
    if settings.router == "benefit":
        return Benefit(work, tuning)
    return Fixed()
