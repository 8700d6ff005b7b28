"""Drift scripts: predicates whose selectivity, cost and correlation change over the rows of a run.

A predicate is true for a row if its random number, uniform in 0..1, is below its selectivity at that row. Predicates of
one `latent` share the latent's random number in the rows where they follow it (mirrored ones see 1 - the number), and
have their own in other rows. So the selectivity of each follows its curve whatever the correlation, while its
selectivity among the rows that passed another predicate may differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

STRETCH = 5_000
"""The number of tuples over which work is counted, and the size of a micro-batch. Costs change only between
stretches."""


@dataclass(frozen=True)
class Curve:
    """A value over the rows of a run: straight between its points, constant before and after them.

    >>> Curve(((0, 0.5), (100, 1.0))).at(np.array([50, 500])).tolist()
    [0.75, 1.0]
    """

    points: tuple[tuple[float, float], ...]

    def at(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The value at each row."""
        places, values = zip(*self.points, strict=True)
        values_there: NDArray[np.float64] = np.interp(rows, places, values)
        return values_there

    def value(self, row: int) -> float:
        """The value at one row."""
        return float(self.at(np.array([row]))[0])


def steady(value: float) -> Curve:
    """A constant value: no drift."""
    return Curve(((0, value),))


def steps(values: Iterable[float], every: int) -> Curve:
    """One value after another, each for `every` rows, with a sudden change between them."""
    points: list[tuple[float, float]] = []
    for number, value in enumerate(values):
        points += [(number * every, value), ((number + 1) * every - 1, value)]
    return Curve(tuple(points))


def to_and_fro(low: float, high: float, start: float, rising: bool, rows: int, rows_a_percent: float) -> Curve:
    """A value that moves by one hundredth every `rows_a_percent` rows and turns round at `low` and `high`.

    >>> to_and_fro(0.2, 0.8, 0.5, True, 100_000, 1000).at(np.array([10_000, 50_000])).round(3).tolist()
    [0.6, 0.6]
    """
    points, row, value = [(0.0, start)], 0.0, start
    while row < rows:
        end = high if rising else low
        row += abs(end - value) * 100 * rows_a_percent
        value, rising = end, not rising
        points.append((row, value))
    return Curve(tuple(points))


@dataclass(frozen=True)
class Drifting:
    """A predicate: its passes and selectivity over the rows, and the latent that correlates it with others."""

    passes: Curve
    selectivity: Curve
    latent: int = -1
    mirrored: bool = False
    follows: Curve = Curve(((0, 1.0),))
    """The share of rows in which the predicate follows its latent, if it has one."""


@dataclass(frozen=True)
class DriftScript:
    """The predicates of one run. `swaps` are the rows at which something changes suddenly."""

    name: str
    rows: int
    predicates: tuple[Drifting, ...]
    swaps: tuple[int, ...] = ()

    def truth(self, random: np.random.Generator) -> NDArray[np.bool_]:
        """Which predicate is true for which row."""
        rows = np.arange(self.rows)
        shared = {p.latent: random.random(self.rows) for p in self.predicates if p.latent >= 0}
        truth = np.empty((self.rows, len(self.predicates)), np.bool_)
        for i, p in enumerate(self.predicates):
            luck = random.random(self.rows)
            if p.latent >= 0:
                along = random.random(self.rows) < p.follows.at(rows)
                luck = np.where(along, 1 - shared[p.latent] if p.mirrored else shared[p.latent], luck)
            truth[:, i] = luck < p.selectivity.at(rows)
        return truth

    def passes(self, row: int) -> list[int]:
        """The passes of each predicate in the stretch that begins at a row."""
        return [round(p.passes.value(row)) for p in self.predicates]


COSTS = (200, 400, 800, 300, 600)
"""Passes of the five predicates of the named scripts."""
_EACH = 100_000
"""Rows of a phase between two swaps."""


def named_scripts() -> list[DriftScript]:
    """The scripts that every run measures."""
    return [_swap(), _slow(), _correlated_swap(), _correlated_slow(), _turns_expensive(), _grows_expensive()]


def _swap() -> DriftScript:
    """The most selective predicates become the least selective, and back."""
    one, other = (0.1, 0.3, 0.5, 0.7, 0.9), (0.9, 0.7, 0.5, 0.3, 0.1)
    courses = [steps((a, b, a), _EACH) for a, b in zip(one, other, strict=True)]
    predicates = tuple(Drifting(steady(k), c) for k, c in zip(COSTS, courses, strict=True))
    return DriftScript("selectivities swap", 3 * _EACH, predicates, (_EACH, 2 * _EACH))


def _slow(rows: int = 300_000) -> DriftScript:
    starts = ((0.1, True), (0.9, False), (0.5, True), (0.3, False), (0.7, True))
    courses = [to_and_fro(0.05, 0.95, start, rising, rows, 1000) for start, rising in starts]
    return DriftScript("slow drift", rows, tuple(Drifting(steady(k), c) for k, c in zip(COSTS, courses, strict=True)))


def _correlate(script: DriftScript, name: str) -> DriftScript:
    """The fifth predicate becomes correlated with the first, the second anti-correlated with the third."""
    p = script.predicates
    tied = (
        replace(p[0], latent=0),
        replace(p[1], latent=1),
        replace(p[2], latent=1, mirrored=True),
        p[3],
        replace(p[4], latent=0),
    )
    return replace(script, name=name, predicates=tied)


def _correlated_swap() -> DriftScript:
    return _correlate(_swap(), "selectivities swap, correlated")


def _correlated_slow() -> DriftScript:
    return _correlate(_slow(), "slow drift, correlated")


def _turns_expensive() -> DriftScript:
    """The predicate that is best called first costs ten times as much, for a while."""
    script = _swap()
    selectivities = (0.2, 0.5, 0.4, 0.6, 0.5)
    predicates = [Drifting(steady(k), steady(s)) for k, s in zip(COSTS, selectivities, strict=True)]
    predicates[0] = replace(predicates[0], passes=steps((COSTS[0], 10 * COSTS[0], COSTS[0]), _EACH))
    return replace(script, name="an operator turns expensive", predicates=tuple(predicates))


def _grows_expensive() -> DriftScript:
    """As `_turns_expensive`, but gradually, while the selectivities drift and are correlated."""
    script = _correlated_slow()
    k = COSTS[0]
    dearer = Curve(((0, k), (50_000, k), (140_000, 10 * k), (200_000, 10 * k), (290_000, k)))
    predicates = (replace(script.predicates[0], passes=dearer), *script.predicates[1:])
    return replace(script, name="slow drift, correlated, one grows expensive", predicates=predicates)


def random_script(seed: int) -> DriftScript:
    """A random script: costs, selectivities, correlation and the kind of drift are drawn."""
    random = np.random.default_rng(seed)
    count, rows = int(random.integers(3, 7)), 3 * _EACH
    kind = str(random.choice(["swap", "slow", "expensive"]))
    latents = random.integers(-1, 2, count) if random.random() < 0.6 else np.full(count, -1)
    predicates = []
    for latent in latents:
        base = float(np.exp(random.uniform(np.log(160), np.log(2000))))
        selectivities = [float(s) for s in random.uniform(0.05, 0.95, 3)]
        selectivity = steady(selectivities[0])
        if kind == "swap":
            selectivity = steps(selectivities, _EACH)
        elif kind == "slow":
            selectivity = to_and_fro(0.05, 0.95, selectivities[0], bool(random.integers(2)), rows, 1000)
        follows = steady(float(random.uniform(0.3, 1.0)))
        predicates.append(Drifting(steady(base), selectivity, int(latent), bool(random.integers(2)), follows))
    if kind == "expensive":
        first = min(range(count), key=lambda i: _rank(predicates[i]))
        base = predicates[first].passes.value(0)
        predicates[first] = replace(predicates[first], passes=steps((base, 10 * base, base), _EACH))
    swaps = () if kind == "slow" else (_EACH, 2 * _EACH)
    tied = ", correlated" if (latents >= 0).sum() > 1 else ""
    return DriftScript(f"seed {seed}: {kind} of {count}{tied}", rows, tuple(predicates), swaps)


def _rank(predicate: Drifting) -> float:
    """The rank of a predicate at the start of a run, without correlation: the predicate of least rank is best called
    first."""
    return predicate.passes.value(0) / (1 - predicate.selectivity.value(0))
