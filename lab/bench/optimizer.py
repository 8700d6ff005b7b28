"""`bench optimizer`: whether the algorithms find the optima of brute force, how close the strategies come to exhaustive
search, and how long they take.

Parts: `optimal` (orders, stars, trees and products beside their slow twins), `qualified` (percentages for 3 to 8
streams), `exhaustive` (time and memory for 8 streams, without limits, in a process of its own), `time` (of both
strategies for 10 and 20 streams). Times are CPU times: everything runs in one thread and waits for nothing, so they do
not depend on the load of the machine.
"""

from __future__ import annotations

import logging
import resource
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from math import isclose
from multiprocessing import get_context
from random import Random
from statistics import median
from time import process_time

from eddyline.errors import SettingError
from eddyline.optimizer.best_ordering import best_ordering
from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.costs import DEFAULTS
from eddyline.optimizer.exhaustive import exhaustive
from eddyline.optimizer.min_state import min_state
from eddyline.optimizer.mjoin_ordering import mjoin_ordering
from eddyline.optimizer.plans import Cost
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.strategies import bjtree_init, mjoin_init
from lab.bench import Result
from lab.bench.brute_force import all_trees, least_binary_memory, least_orders
from lab.experiments import draw

PARTS = ("optimal", "qualified", "exhaustive", "time")
SEED = 1
GRAPHS, STREAMS = 10_000, 9
"""The number of random acyclic graphs, and the most streams of one."""
STARS, STAR_STREAMS = 2_000, 8
FRONTS, FRONT_STREAMS = 100, 6
CYCLIC = 5_000
SETTINGS = 100
POINTS = 2.0
SECONDS, GIGABYTES = 60.0, 2.0
MILLISECONDS = {10: 20.0, 20: 150.0}
_CLOSE, _ROUNDING = 1e-9, 1e-12
"""The relative difference that summing the same costs in another order may make."""

_log = logging.getLogger(__name__)


def run(part: str | None = None, seed: int = SEED) -> list[Result]:
    """Run all parts, or one; all random cases depend on the seed alone."""
    if part is not None and part not in PARTS:
        raise SettingError(f"--part {part}: the parts of this benchmark are {', '.join(PARTS)}")
    parts: dict[str, Callable[[int], Iterator[Result]]] = {
        "optimal": optimal,
        "qualified": qualified,
        "exhaustive": eight_streams,
        "time": strategy_times,
    }
    return [result for name, function in parts.items() if part in (None, name) for result in function(seed)]


# Optimal where it can be proved


def optimal(seed: int) -> Iterator[Result]:
    """The number of cases in which an algorithm is worse than its slow twin; there must be none."""
    checks: tuple[tuple[str, int, Callable[[Random], bool]], ...] = (
        (f"mjoin-ordering, acyclic, 2 to {STREAMS} streams", GRAPHS, ordering_is_best),
        (f"min-state, stars of 3 to {STAR_STREAMS} streams", STARS, star_is_best),
        (f"exhaustive, 2 to {FRONT_STREAMS} streams", FRONTS, front_is_whole),
        (f"products, min-state, 2 to {STREAMS} streams", CYCLIC, products_are_no_worse),
    )
    for case, count, check in checks:
        _log.info("%s: %d cases from seed %d", case, count, seed)
        wrong = [number for number in range(count) if not check(Random(f"{seed} {number}"))]
        if wrong:
            _log.info("wrong: %s", ", ".join(map(str, wrong[:10])))
        yield Result(case, f"of {count:,} cases, not as good as brute force", len(wrong), "cases", 0, not wrong)


def _model(rng: Random, edges: list[tuple[int, int]], sources: int) -> CostModel:
    """A random model: half of them as in the experiments, the others with arbitrary values."""
    drawn = draw.wild(rng, edges, sources) if rng.random() < 0.5 else draw.workload(rng, sources, edges)
    return CostModel(drawn, DEFAULTS)


def ordering_is_best(rng: Random) -> bool:
    """Whether mjoin-ordering is as good as all orders of an acyclic graph that the engine can run."""
    sources = rng.randint(2, STREAMS)
    model = _model(rng, draw.tree_edges(rng, sources), sources)
    children = [1 << i for i in range(sources)]
    found = mjoin_ordering(model, children).cpu
    return isclose(found, least_orders(model, children), rel_tol=_CLOSE)


def star_is_best(rng: Random) -> bool:
    """Whether min-state is as good as all trees without products of a star."""
    sources = rng.randint(3, STAR_STREAMS)
    model = _model(rng, draw.star_edges(rng, sources), sources)
    pricing = Pricing(model)
    found = pricing.cost(min_state(pricing, cartesian=False)).memory
    return isclose(found, least_binary_memory(model), rel_tol=_CLOSE)


def front_is_whole(rng: Random) -> bool:
    """Whether no tree beats the plans of exhaustive search, and all its plans are trees."""
    sources = rng.randint(2, FRONT_STREAMS)
    model = _model(rng, draw.any_edges(rng, sources), sources)
    trees = all_trees(model)
    plans = [plan.cost for plan in exhaustive(Pricing(model, best_ordering))]
    return all(any(_no_more(plan, tree) for plan in plans) for tree in trees) and all(
        any(_no_more(tree, plan) for tree in trees) for plan in plans
    )


def _no_more(cost: Cost, than: Cost, rounding: float = _CLOSE) -> bool:
    return cost.cpu <= than.cpu * (1 + rounding) and cost.memory <= than.memory * (1 + rounding)


def products_are_no_worse(rng: Random) -> bool:
    """Whether a search of trees with products is at least as good as search without them."""
    sources = rng.randint(2, STREAMS)
    model = _model(rng, draw.any_edges(rng, sources), sources)
    pricing = Pricing(model)
    trees = [pricing.cost(min_state(pricing, cartesian)) for cartesian in (True, False)]
    return _no_more(trees[0], trees[1], _ROUNDING)


# As good as exhaustive, far cheaper


def qualified(seed: int) -> Iterator[Result]:
    """The share of settings in which a qualified plan is found."""
    for sources in range(3, 9):
        found = {"mjoin-init": 0, "bjtree-init": 0, "exhaustive": 0}
        for number in range(SETTINGS):
            setting = draw.setting(Random(f"{seed} {sources} {number}"), sources)
            model, limits = CostModel(setting.workload, DEFAULTS), setting.limits
            found["mjoin-init"] += limits.allow(mjoin_init(Pricing(model), limits).cost)
            found["bjtree-init"] += limits.allow(bjtree_init(Pricing(model), limits).cost)
            found["exhaustive"] += bool(exhaustive(Pricing(model, best_ordering), limits))
        _log.info("%d streams: %s", sources, found)
        percent = {name: 100 * count / SETTINGS for name, count in found.items()}
        better = max(percent["mjoin-init"], percent["bjtree-init"])
        case, missed = f"{sources} streams", percent["exhaustive"] - better
        for name, value in percent.items():
            yield Result(case, f"{name}, qualified", value, "%")
        yield Result(case, "exhaustive - the better strategy", missed, "points", POINTS, missed <= POINTS)


def eight_streams(seed: int) -> Iterator[Result]:
    """The whole front for 8 streams, in a process of its own to measure its peak memory."""
    _log.info("exhaustive search for 8 streams, without limits")
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        seconds, peak, plans = pool.submit(_search_eight, seed).result()
    case = "exhaustive, 8 streams"
    yield Result(case, "plans that none dominates", plans, "plans")
    yield Result(case, "CPU time", seconds, "s", SECONDS, seconds <= SECONDS)
    yield Result(case, "peak memory of the process", peak, "GB", GIGABYTES, peak <= GIGABYTES)


def _search_eight(seed: int) -> tuple[float, float, int]:
    rng = Random(seed)
    model = CostModel(draw.workload(rng, 8, draw.any_edges(rng, 8)), DEFAULTS)
    start = process_time()
    plans = len(exhaustive(Pricing(model, best_ordering)))
    return process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, plans


def strategy_times(seed: int) -> Iterator[Result]:
    """The median time of each strategy over the settings."""
    for sources, bar in MILLISECONDS.items():
        settings = [draw.setting(Random(f"{seed} {sources} {number}"), sources) for number in range(SETTINGS)]
        for name, strategy in (("mjoin-init", mjoin_init), ("bjtree-init", bjtree_init)):
            times = []
            for setting in settings:
                start = process_time()
                strategy(Pricing(CostModel(setting.workload, DEFAULTS)), setting.limits)
                times.append(1000 * (process_time() - start))
            case = f"{name}, {sources} streams"
            yield Result(case, f"CPU time, median of {SETTINGS}", median(times), "ms", bar, median(times) <= bar)
            yield Result(case, f"CPU time, longest of {SETTINGS}", max(times), "ms")
