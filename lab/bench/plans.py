"""`bench plans`: is the cost model right? It predicts random joins in several plans each, and these are measured.

The model is that of a slot: it has the rates and selectivities observed while the slot ran the query as a multi-way
join, and the costs of this machine, corrected by the CPU time of the slot. Then three plans take turns, and their CPU
time and state are compared with the prediction: the multi-way join, the plan that exhaustive search predicts to be
cheapest, and random trees without products (one, or two if the first two plans are equal).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from statistics import median
from time import process_time

import numpy as np

from eddyline.engine.plan_source import Running
from eddyline.engine.planner import Planner, held
from eddyline.optimizer.best_ordering import best_ordering
from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.dominating import choose
from eddyline.optimizer.exhaustive import exhaustive
from eddyline.optimizer.plans import NO_LIMITS, Cost
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.shapes import shape_of
from eddyline.plan.tree import Tree, mjoin
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench import Result
from lab.bench.timed_joins import TimedJoin, timed_join
from lab.fuzz.trees import random_tree

QUERIES, PLANS, ROUNDS = 20, 3, 2
SECONDS, WINDOW, BATCH = 2.5, 0.5, 0.05
"""Seconds of event time: the length of streams, of a window, and of a batch."""
SLOW, FAST = 10_000, 100_000
"""The least and the most rows a second of a stream."""
RANK_CPU, RANK_STATE, OFF, CHEAPEST, SHARE = 0.9, 0.95, 0.25, 1.15, 0.9

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlanRun:
    """A plan: predicted and measured CPU seconds per second of event time, and bytes."""

    case: int
    tree: str
    predicted: Cost
    measured: Cost


def run() -> list[Result]:
    """Measure all cases."""
    runs: list[PlanRun] = []
    hits = 0
    for number in range(QUERIES):
        rng = random.Random(number)
        case = draw(rng)
        model = observed(case, BATCH)
        best = choose(exhaustive(Pricing(model, best_ordering), NO_LIMITS), NO_LIMITS, "cpu")
        assert best is not None
        trees = plans_of(rng, case, best.tree)
        found = measured(case, trees)
        pricing, aliases = Pricing(model), [s.alias for s in case.query.sources]
        for tree, cost in zip(trees, found, strict=True):
            runs.append(PlanRun(number, tree.text(aliases), pricing.cost(shape_of(tree)), cost))
            _log.info("query %d of %d, %s", number + 1, QUERIES, _text(runs[-1]))
        hits += found[trees.index(best.tree)].cpu <= CHEAPEST * min(cost.cpu for cost in found)
    return [
        *_truth(runs),
        Result("cheapest predicted", "within 15 % of the cheapest", hits / QUERIES, "", SHARE, hits >= SHARE * QUERIES),
    ]


def _text(run: PlanRun) -> str:
    cpu, memory = run.measured.cpu / run.predicted.cpu, run.measured.memory / run.predicted.memory
    return f"{run.tree}: {run.measured.cpu:.3f} of a core, {cpu:.2f} of the prediction; state {memory:.2f} of it"


def _truth(runs: list[PlanRun]) -> Iterator[Result]:
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


def plans_of(rng: random.Random, case: TimedJoin, best: Tree) -> list[Tree]:
    """PLANS different plans of a case: the multi-way join, `best`, and random ones."""
    sources = len(case.query.sources)
    trees = [mjoin(sources)]
    if best not in trees:
        trees.append(best)
    while len(trees) < PLANS:
        tree = random_tree(rng, sources, case.edges, late=0.0)
        shapes = [shape_of(other) for other in trees]
        if shape_of(tree) not in shapes and all(_connected(below.span, case.edges) for below in tree.below()):
            trees.append(tree)
    return trees


def _connected(span: int, edges: Collection[tuple[int, int]]) -> bool:
    """Whether the edges inside a span connect it: a product of whole windows would not fit into memory."""
    inside = [1 << left | 1 << right for left, right in edges if span >> left & 1 and span >> right & 1]
    reached, before = span & -span, 0
    while reached != before:
        before = reached
        for edge in inside:
            reached |= edge if edge & reached else 0
    return reached == span


def _feed(case: TimedJoin, engine: BatchDriver, seconds: float) -> Iterator[float]:
    """Feed batch after batch; yields the event time after each."""
    for number, rows in enumerate(case.batches(seconds), 1):
        engine.batch(rows)
        yield number * seconds


class _OnlyWatches(Planner):
    """A plan source that watches and never changes the plan."""

    def next_plan(self, running: Running) -> None:
        return None


def observed(case: TimedJoin, seconds: float) -> CostModel:
    """The cost model of a slot's optimizer after `seconds` seconds of batches."""
    engine = BatchDriver(case.query, Settings(), process_time, plans=_OnlyWatches)
    slot, planner = engine.slot, engine.slot.plans
    assert isinstance(planner, Planner)
    for _ in _feed(case, engine, seconds):
        pass
    holds = held(slot.executor.source_stems)
    planner.optimizer.propose(slot.executor.plan, holds)  # the first search corrects the costs
    return planner.optimizer.model(holds)


def measured(case: TimedJoin, trees: list[Tree]) -> list[Cost]:
    """CPU seconds per second of event time once windows are full, and the median of the state in the second half.

    The plans take turns batch by batch, so other load on the machine affects all of them alike. A batch counts with its
    least time over some rounds, because its work is the same in every round.
    """
    aliases = [s.alias for s in case.query.sources]
    steps = round(SECONDS / BATCH)
    seconds, held = np.full((len(trees), ROUNDS, steps), np.inf), np.zeros((len(trees), steps))
    for turn in range(ROUNDS):
        engines = [BatchDriver(case.query, Settings(plan=t.text(aliases), optimizer="off")) for t in trees]
        for step, rows in enumerate(case.batches(BATCH)):
            for number, engine in enumerate(engines):
                begin = process_time()
                engine.batch(rows)
                seconds[number, turn, step] = process_time() - begin
                held[number, step] = engine.slot.peak_bytes
    full = round(1.5 * WINDOW / BATCH)
    cpu = seconds.min(axis=1)[:, full:].sum(axis=1) / ((steps - full) * BATCH)
    memory = np.median(held[:, steps // 2 :], axis=1)
    return [Cost(float(c), float(m)) for c, m in zip(cpu, memory, strict=True)]
