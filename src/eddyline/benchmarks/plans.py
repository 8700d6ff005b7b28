"""`bench plans`: does the cost model tell the truth? Random joins in several plans each, predicted and measured.

What the model is told is what a slot observed while it ran the query as a multi-way join; then the plans are run, in
turns, and CPU time and state are compared with the prediction. A plan is one of: the multi-way join, the one that the
exhaustive search predicts to be cheapest, and a random tree without products.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import process_time

import numpy as np

from eddyline.benchmarks import Result
from eddyline.benchmarks.timed_joins import TimedJoin, timed_join
from eddyline.engine.batch import LocalEngine
from eddyline.engine.planner import Planner
from eddyline.optimizer.calibrate import calibrate
from eddyline.optimizer.cost_model import Model
from eddyline.optimizer.dominating import choose
from eddyline.optimizer.exhaustive import exhaustive
from eddyline.optimizer.optimiser import Held
from eddyline.optimizer.plans import NO_LIMITS, Cost
from eddyline.optimizer.shapes import Pricing, shape_of
from eddyline.optimizer.workload import Workload
from eddyline.plan.tree import Tree, mjoin
from eddyline.settings import Settings
from eddyline.testing.trees import random_tree

QUERIES, ROUNDS = 20, 2
SECONDS, WINDOW, BATCH = 5.0, 1.0, 0.1
"""Of event time: how long streams are, what a window holds, and what a batch has."""
SLOW, FAST = 10_000, 100_000
"""Rows a second of a stream."""
RANK_CPU, RANK_STATE, OFF, CHEAPEST, SHARE = 0.9, 0.95, 0.25, 1.15, 0.9


@dataclass(frozen=True)
class Run:
    """A plan: predicted and measured CPU seconds per second of event time, and bytes."""

    case: int
    tree: str
    predicted: Cost
    measured: Cost


def run() -> list[Result]:
    """All cases."""
    costs = calibrate(process_time)
    runs: list[Run] = []
    hits = 0
    for number in range(QUERIES):
        rng = random.Random(number)
        case = draw(rng)
        model = Model(observed(case), costs)
        pricing = Pricing(model)
        sources = len(case.query.sources)
        best = choose(exhaustive(model, NO_LIMITS), NO_LIMITS, "cpu")
        assert best is not None
        trees = [mjoin(sources), best.tree, random_tree(rng, sources, case.edges)]
        found = measured(case, trees)
        for tree, cost in zip(trees, found, strict=True):
            text = tree.text([s.alias for s in case.query.sources])
            runs.append(Run(number, text, pricing.cost(shape_of(tree)), cost))
        hits += found[1].cpu <= CHEAPEST * min(cost.cpu for cost in found)
    return [
        *_truth(runs),
        Result("cheapest predicted", "within 15 % of the cheapest", hits / QUERIES, "", SHARE, hits >= SHARE * QUERIES),
    ]


def _truth(runs: list[Run]) -> Iterator[Result]:
    cpu = _rank([r.predicted.cpu for r in runs], [r.measured.cpu for r in runs])
    state = _rank([r.predicted.memory for r in runs], [r.measured.memory for r in runs])
    off = median(abs(r.predicted.memory / r.measured.memory - 1.0) for r in runs)
    yield Result("CPU", "rank correlation", cpu, "", RANK_CPU, cpu >= RANK_CPU)
    yield Result("state", "rank correlation", state, "", RANK_STATE, state >= RANK_STATE)
    yield Result("state", "off in the median", off, "", OFF, off <= OFF)
    factors = [r.measured.cpu / r.predicted.cpu for r in runs]
    yield Result("CPU", "measured / predicted, median", median(factors), "")


def _rank(one: list[float], other: list[float]) -> float:
    """Spearman's rank correlation."""
    ranks = [np.argsort(np.argsort(values)) for values in (one, other)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def draw(rng: random.Random) -> TimedJoin:
    """A random tree of joins over 3 to 5 streams, rates and fan-outs at random."""
    sources = rng.choice([3, 4, 4, 5])
    edges = tuple((rng.randrange(i), i) for i in range(1, sources))
    rates = [SLOW * (FAST / SLOW) ** rng.random() for _ in range(sources)]
    fan_outs = [0.2 * 20.0 ** rng.random() for _ in edges]
    return timed_join(rates, edges, fan_outs, SECONDS, WINDOW, rng.randrange(1 << 30))


def _feed(case: TimedJoin, engine: LocalEngine) -> Iterator[float]:
    """Batch after batch; gives the event time that each has come to."""
    for number, rows in enumerate(case.batches(BATCH), 1):
        engine.batch(rows)
        yield number * BATCH


def observed(case: TimedJoin) -> Workload:
    """What a slot tells the optimiser about it."""
    engine = LocalEngine(case.query, Settings(plan="mjoin"))
    planner = Planner(engine.slot.plan, Settings(), process_time)
    engine.slot.planner = planner
    planner.propose = lambda plan, stems, eddy: None  # type: ignore[method-assign]
    for _ in _feed(case, engine):
        pass
    stems = engine.slot.stems[: len(case.query.sources)]
    return planner.optimiser.workload([Held(s.rows - s.min_live, s.row_bytes) for s in stems])


def measured(case: TimedJoin, trees: list[Tree]) -> list[Cost]:
    """CPU seconds per second of event time once windows are full, the least of some rounds, and state at the end."""
    aliases = [s.alias for s in case.query.sources]
    found = [Cost(float("inf"), 0.0)] * len(trees)
    for _ in range(ROUNDS):
        for number, tree in enumerate(trees):
            engine = LocalEngine(case.query, Settings(plan=tree.text(aliases), optimizer="off"))
            begin, memory = None, []
            for at in _feed(case, engine):
                if begin is None and at >= 1.5 * WINDOW:
                    begin = process_time(), at
                if at > SECONDS / 2:
                    memory.append(engine.slot.peak_bytes)
            assert begin is not None
            cpu = (process_time() - begin[0]) / (SECONDS - begin[1])
            found[number] = Cost(min(cpu, found[number].cpu), median(memory))
    return found
