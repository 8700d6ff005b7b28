"""Routers choose which of the allowed steps a packet takes next. Results never depend on the choice, only the cost.

The choice is kept in routing arrays: one entry per signature, made when the signature is first met, with the step to
take now in front. `fixed` keeps the order of the plan (selections as soon as they can be evaluated, then sources in
the order of FROM); `random` draws anew for every packet.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

from eddyline.errors import SettingError
from eddyline.plan.plan import Plan, Signature, Step
from eddyline.settings import Settings


@dataclass
class Traffic:
    """What one step did to the tuples of one signature."""

    step: Step
    tuples: int = 0
    produced: int = 0


class RoutingArrays:
    """signature -> the steps allowed next, each with its traffic; empty for the whole result."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.entries: dict[Signature, list[Traffic]] = {}

    def entry(self, signature: Signature) -> list[Traffic]:
        """The entry of a signature, made now if it is new."""
        entry = self.entries.get(signature)
        if entry is None:
            entry = self.entries[signature] = [Traffic(step) for step in self._plan.steps(signature)]
        return entry


class Router(Protocol):
    """Chooses the next step of a packet."""

    def choose(self, entry: list[Traffic]) -> Traffic:
        """One of the entry."""


class FixedRouter:
    """Always the first step: a static plan."""

    def choose(self, entry: list[Traffic]) -> Traffic:
        """The first."""
        return entry[0]


class RandomRouter:
    """Any step, drawn for each packet."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def choose(self, entry: list[Traffic]) -> Traffic:
        """Any."""
        return entry[self._random.randrange(len(entry))]


def router(settings: Settings) -> Router:
    """The router that the settings name."""
    if settings.router == "fixed":
        return FixedRouter()
    if settings.router == "random":
        return RandomRouter(settings.seed)
    raise SettingError(f"router={settings.router} is not built yet; use fixed or random")
