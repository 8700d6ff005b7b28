"""Routers choose which of the allowed steps a packet takes next. Results never depend on the choice, only the cost.

The choice is kept in routing arrays: one entry per signature, made when the signature is first met, with the step to
take now in front. `fixed` keeps the order of the plan (selections as soon as they can be evaluated, then sources in
the order of FROM); `random` draws anew for every packet.
"""

from __future__ import annotations

import random
from typing import Protocol

from eddyline.errors import SettingError
from eddyline.routing.routing_arrays import Traffic
from eddyline.settings import Settings


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
