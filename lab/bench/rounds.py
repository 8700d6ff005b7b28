"""The sides of a comparison take turns, so that other load on the machine affects all of them.

The ratio of two sides is the median of the ratios of their rounds: the k-th time of one was measured next to the k-th
time of the other.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from time import perf_counter

from eddyline.errors import InternalError

Times = Mapping[str, list[float]]


def race(
    sides: Mapping[str, Callable[[], int]], rounds: int, favourite: str, finalists: int = 0, final_rounds: int = 0
) -> Times:
    """The seconds of every side in each round; in the final rounds only the favourite and the quickest others run. A
    side returns its number of results, which must be the same for all."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    found: dict[str, int] = {}
    runners = list(sides)
    for number in range(rounds + final_rounds):
        if number == rounds:
            others = quickest(times, [name for name in runners if name != favourite])
            runners = [favourite, *others[:finalists]]
        for name in runners if number % 2 == 0 else reversed(runners):
            gc.collect()
            begin = perf_counter()
            found[name] = sides[name]()
            times[name].append(perf_counter() - begin)
    if len(set(found.values())) != 1:
        raise InternalError(f"the sides disagree: {found}")
    return times


def quickest(times: Times, among: Iterable[str]) -> list[str]:
    """The sides by their median time, but finalists before sides that ran fewer rounds."""
    return sorted(among, key=lambda name: (-len(times[name]), median(times[name])))


def ratio(times: Times, one: str, other: str) -> float:
    """How many times as long one side took as the other: the median over the rounds that both ran."""
    both = zip(times[one], times[other], strict=False)
    return median(mine / theirs for mine, theirs in both)
