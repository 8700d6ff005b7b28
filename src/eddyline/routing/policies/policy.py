"""The interface of routing policies. Their answers influence the cost, never the results."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from eddyline.routing.policies.learned import Learned
from eddyline.routing.routing_arrays import Entry, Traffic


class Policy:
    """Remakes the decision of an entry when the tuples that it covered are used up. A policy that learns from more than
    the traffic on its routes also asks for samples; other policies keep the defaults here."""

    def decide(self, entry: Entry) -> Traffic:
        """The step to take from now on; the entry has at least one step."""
        raise NotImplementedError

    def follow(self, orderings: Mapping[tuple[int, int], tuple[int, ...]]) -> None:
        """Take the orders that the optimizer found best: (span of an operator, span of the child that starts) -> the
        spans of the other children in the order of probes. A policy that finds its own orders ignores them."""

    def sample(self, entry: Entry, size: int) -> int:
        """How many of the next `size` tuples to show to every step."""
        return 0

    def late(self, entry: Entry) -> frozenset[int]:
        """The steps that need to see only tuples that the current step lets through."""
        return frozenset()

    def learn(self, entry: Entry, counts: NDArray[np.float64], seconds: NDArray[np.float64]) -> None:
        """Learn from a sample: `counts[i, step]` is how many tuples a step made of tuple i (NaN: the step did not see
        it); `seconds` is how long each step took."""

    def surprised(self, entry: Entry) -> None:
        """Take into account that a step of this entry did something else than before."""

    def about(self, entry: Entry) -> int | None:
        """How large packets of this entry should be; None if smaller packets have no advantage."""
        return None

    def saved(self) -> Learned | None:
        """A snapshot for another process, of what it learned beside the traffic; None if nothing."""
        return None

    def restore(self, saved: Learned | None) -> None:
        """Restore from a snapshot; None if the policy of the other process learned nothing."""
