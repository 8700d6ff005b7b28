"""What the eddy asks a routing policy. Results never depend on the answers, only the cost."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from eddyline.routing.policies.learned import Learned
from eddyline.routing.routing_arrays import Entry, Traffic


class Policy:
    """Remakes the decision of an entry when the tuples it stood for are used up. A policy that learns more than the
    traffic on its routes tells also asks for samples; the others leave the rest as it is here."""

    def decide(self, entry: Entry) -> Traffic:
        """The step to take from now on; the entry has at least one."""
        raise NotImplementedError

    def follow(self, orderings: Mapping[tuple[int, int], tuple[int, ...]]) -> None:
        """The orders that the optimizer found best: by (span of an operator, span of the child that starts) the spans
        of the other children as they are probed. A policy that finds its own does not care."""

    def sample(self, entry: Entry, size: int) -> int:
        """How many of the next `size` tuples shall be shown to every step."""
        return 0

    def late(self, entry: Entry) -> frozenset[int]:
        """The steps that need to see only what the current step lets through."""
        return frozenset()

    def learn(self, entry: Entry, counts: NDArray[np.float64], seconds: NDArray[np.float64]) -> None:
        """What the steps made of the sample, `counts[i, step]` tuples of tuple i (not a number: it did not see it), and
        how long each took."""

    def surprised(self, entry: Entry) -> None:
        """A step of this entry did something else than before."""

    def about(self, entry: Entry) -> int | None:
        """How large packets of this entry should be, if smaller ones are worth it."""
        return None

    def saved(self) -> Learned | None:
        """What it learned beside the traffic, for another process."""
        return None

    def restore(self, saved: Learned | None) -> None:
        """Continue from a snapshot; None if the other process had a policy that learned nothing."""
