"""Which groups leave memory: a policy puts the groups of a slot in order, and as many as needed leave.

`productivity` lets those leave that earn least: first groups to which no row has come for long, then those with the
fewest results per byte. The others are there to compare with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from eddyline.spill.accounts import Table

INACTIVE = 16
"""Batches without a new row after which a group is inactive."""

LeavingOrder = Callable[[Table, int], NDArray[np.int64]]
"""(the accounts of groups, a seed) -> their places in the order in which they leave."""


def _earned(table: Table) -> NDArray[np.float64]:
    """Results per byte."""
    earned: NDArray[np.float64] = table["results"] / np.maximum(table["bytes"], 1)
    return earned


def _productivity(table: Table, seed: int) -> NDArray[np.int64]:
    inactive = np.where(table["idle"] > INACTIVE, table["idle"], 0)
    return np.lexsort((-table["bytes"], _earned(table), -inactive))


def _random(table: Table, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(table.size)


def _largest(table: Table, seed: int) -> NDArray[np.int64]:
    return np.lexsort((-table["bytes"],))


def _inactive(table: Table, seed: int) -> NDArray[np.int64]:
    return np.lexsort((-table["bytes"], -table["idle"]))


def _most_productive(table: Table, seed: int) -> NDArray[np.int64]:
    return np.lexsort((-table["bytes"], -_earned(table)))


POLICIES: Mapping[str, LeavingOrder] = MappingProxyType(
    {
        "productivity": _productivity,
        "random": _random,
        "largest": _largest,
        "inactive": _inactive,
        "most-productive": _most_productive,
    }
)
"""By the value of the setting `spill_policy`."""


def leaving(policy: str, table: Table, least: float, leading: int, seed: int = 0) -> Table:
    """The accounts of the groups that leave: the first in the order of the policy that have `least` bytes together, or
    all groups if they have less. A group that takes no memory stays. Groups that lead, below `leading`, leave before
    others: all results may miss rows of the others.

    >>> from eddyline.spill.accounts import TABLE
    >>> table = np.array([(3, 5, 500, 90.0, 0, 0), (7, 5, 500, 10.0, 0, 0), (9, 5, 500, 0.0, 0, 0)], TABLE)
    >>> leaving("productivity", table, 600, leading=10)["group"].tolist()
    [9, 7]
    >>> leaving("productivity", table, 600, leading=9)["group"].tolist()
    [7, 3]
    """
    table = table[table["bytes"] > 0]
    table = table[POLICIES[policy](table, seed)]
    table = table[np.argsort(table["group"] >= leading, kind="stable")]
    before = np.cumsum(table["bytes"]) - table["bytes"]
    found: Table = table[before < least]
    return found
