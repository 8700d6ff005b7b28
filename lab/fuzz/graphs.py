"""Join graphs for random queries, and how many rows their streams need.

A fuzzer that compares empty results finds nothing. So the rows per stream and the sizes of the key pools are changed
until the estimated number of joined rows is between a few dozen and a few thousand.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from lab.fuzz.domains import TYPES

MOST_COMBINATIONS = 3_000
FEWEST_RESULTS = 50
SHAPES = ["chain", "chain", "star", "star", "tree", "cycle", "clique", "multi", "theta", "cross", "loose"]
_MOST_ROWS = {1: 80, 2: 45, 3: 32, 4: 22, 5: 16}
Edge = tuple[int, int, int]
"""Two places in FROM and the number of the domain on which they are joined; -1 for an edge that is only a theta
condition."""


@dataclass
class Sizes:
    """The parameters of a result's size: rows per place in FROM, the key domains and their pools, whether keys are
    skewed."""

    rows: list[int]
    families: list[str]
    pools: list[int]
    skew: bool

    def estimate(self, edges: Sequence[Edge]) -> float:
        """The estimated number of joined rows, ignoring windows and filters; of a cycle a spanning tree is counted."""
        estimate = float(math.prod(self.rows))
        joined: dict[int, set[int]] = {}
        for left, right, kind in edges:
            if kind >= 0:
                joined.setdefault(kind, set()).update((left, right))
            else:
                estimate *= 0.5
        for kind, members in joined.items():
            size = 2 if self.families[kind] == "bool" else self.pools[kind]
            weights = [(i + 1) ** (1 / 3) - i ** (1 / 3) for i in range(size)] if self.skew else [1.0] * size
            total = sum(weights)
            estimate *= sum((w / total) ** len(members) for w in weights)
        return estimate

    def fit(self, edges: Sequence[Edge], share: float) -> float:
        """Change rows and pools until the estimate fits; about `share` of the joined rows pass the rest of the query.
        Returns the estimate."""
        for _ in range(60):
            estimate = self.estimate(edges)
            if estimate > MOST_COMBINATIONS:
                if self.skew and estimate > 4 * MOST_COMBINATIONS:
                    self.skew = False
                elif max(self.rows) > 4:
                    self.rows = [max(3, int(n * 0.85)) for n in self.rows]
                else:
                    self.pools = [p + 1 for p in self.pools]
            elif estimate * share < FEWEST_RESULTS * len(self.rows) and any(p > 1 for p in self.pools):
                self.pools = [max(1, int(p * 0.8)) for p in self.pools]
            else:
                break
        return self.estimate(edges)


def sizes(rng: random.Random, places: int) -> Sizes:
    """A first guess."""
    usual = ["int", "int", "number", "string", "string"]
    families = [rng.choice([*usual, *TYPES]) for _ in range(rng.choice([1, 1, 2, 3]))]
    most = _MOST_ROWS.get(places, 11)
    rows = [rng.randint(max(3, most // 3), most) for _ in range(places)]
    pools = [2 if f == "bool" else max(1, int(most / rng.uniform(0.8, 3.0))) for f in families]
    return Sizes(rows, families, pools, rng.random() < 0.25)


def edges(rng: random.Random, shape: str, places: int, kinds: int) -> list[Edge]:
    """The edges of a graph of this shape."""

    def kind() -> int:
        return rng.randrange(kinds)

    chain = [(i, i + 1, kind()) for i in range(places - 1)]
    if shape == "star":
        return [(0, i, kind()) for i in range(1, places)]
    if shape == "tree":
        return [(rng.randrange(i), i, kind()) for i in range(1, places)]
    if shape == "cycle":
        return [*chain, (places - 1, 0, kind())] if places > 2 else chain
    if shape == "clique":
        one = kind()
        return [(i, j, one) for i in range(places) for j in range(i + 1, places)]
    if shape == "multi":
        return [*chain, *((i, i + 1, kind()) for i in range(places - 1) if rng.random() < 0.6)]
    if shape == "theta":
        return [(i, j, k if rng.random() < 0.5 else -1) for i, j, k in chain]
    if shape == "cross":
        return [e for e in chain if rng.random() < 0.5]
    if shape == "loose":
        return [(rng.randrange(i), i, kind() if rng.random() < 0.8 else -1) for i in range(1, places)]
    return chain
