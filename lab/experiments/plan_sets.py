"""The four sets of table 8.1 of dissertation 002, on the engine: figures 8.1 to 8.9.

Rows arrive at random (Poisson); joins are nested loops with the selectivities of the table, as in the paper's cost
analysis. The machine is the same for all sets: the multi-way join of set 2 needs `OVER` times its CPU, and its memory
is 1/300 of the paper's Java heap. Sets 1 and 2 have the rates of the table. With the printed rates sets 3 and 4 would
give 200 thousand and 16 million results a second, so their rates are smaller by `Set.scale`.

The binary tree is that of min-state. Prices are those of the cost model of a slot, multiplied by the measured over the
predicted time of the multi-way join.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from eddyline.errors import InternalError
from eddyline.optimizer.best_ordering import best_ordering
from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.dominating import choose
from eddyline.optimizer.exhaustive import exhaustive
from eddyline.optimizer.min_state import min_state
from eddyline.optimizer.plans import Cost, ResourceLimits
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.shapes import mjoin_shape, shape_of, tree_of
from eddyline.optimizer.strategies import bjtree_init, mjoin_init
from eddyline.plan.tree import Tree, mjoin
from lab.bench.plans import observed
from lab.bench.timed_joins import TimedJoin, chain_join
from lab.experiments import Figure, Say
from lab.experiments.chart import Chart, Series
from lab.experiments.paced import MeasuredBatch, Moment, most_bytes, need, paced, run
from lab.experiments.table import Table

OVER = 1.75
WINDOWS, MOMENTS, BATCHES = 3.0, 15, 20
"""The length of a run in windows, the number of moments shown, and the number of batches in a window."""
QUICK = 0.4
"""The rates of a quick version, as a share of the full rates."""
MEMORY = 1 / 300
MB = 1_000_000
COLUMNS = ("set", "plan", "chosen_by", "second", "results", "queued", "state_tuples", "state_bytes")


@dataclass(frozen=True)
class Set:
    """A row of table 8.1: MB, rows a second of each stream, selectivities between neighbours, seconds."""

    memory: float
    rates: tuple[float, ...]
    selectivities: tuple[float, ...]
    window: float
    scale: float = 1.0


SETS = {
    1: Set(300, (20, 20, 20), (0.05, 0.5), 5),
    2: Set(300, (20, 20, 50), (0.02, 0.5), 15),
    3: Set(30, (10, 10, 10, 10), (0.1, 0.15, 0.1), 15, 0.72),
    4: Set(30, (20, 20, 20, 20), (0.02, 0.2, 0.05), 50, 0.23),
}


@dataclass(frozen=True)
class RanPlan:
    """A plan of a set: its predicted cost, and its measured batches."""

    tree: str
    chosen_by: str
    """The strategies that choose this plan within the limits."""
    predicted: Cost
    batches: list[MeasuredBatch]


@dataclass(frozen=True)
class MeasuredSet:
    """A measured set with its limits: CPU seconds for a second of event time, and bytes."""

    window: float
    cpu: float
    memory: int
    plans: list[RanPlan]


def figure_1(quick: bool, say: Say) -> Figure:
    """The needs of the plans of all sets over the limits: figure 8.1 with numbers."""
    table = Table(("set", "plan", "chosen_by", "cpu", "predicted_cpu", "memory", "predicted_memory", "results"))
    for number in SETS:
        of_set = _measured(number, quick, say)
        for ran in of_set.plans:
            cpu = need(ran.batches, of_set.window) / of_set.cpu, ran.predicted.cpu / of_set.cpu
            memory = most_bytes(ran.batches) / of_set.memory, ran.predicted.memory / of_set.memory
            results = sum(batch.results for batch in ran.batches)
            table.add(number, ran.tree, ran.chosen_by, *cpu, *memory, results)
    shown = {"CPU": "cpu", "CPU predicted": "predicted_cpu", "memory": "memory", "memory predicted": "predicted_memory"}
    series: Series = {
        label: [(f"{row['set']} {str(row['plan']).replace(' ', '')}", float(row[column])) for row in table.where()]
        for label, column in shown.items()
    }
    return Figure(table, Chart("Plans and limits", "set and plan", "share of the limit", series, bars=True, level=1.0))


def figure_2(quick: bool, say: Say) -> Figure:
    """Results of set 1 by time."""
    return _results(1, quick, say)


def figure_3(quick: bool, say: Say) -> Figure:
    """Tuples in states and in input queues of set 1 by time."""
    shown: dict[str, Callable[[Moment], int]] = {"states": lambda m: m.state_rows, "queues": lambda m: m.queued}
    return _over_time(1, quick, say, "Tuples in states and input queues", "tuples", shown)


def figure_4(quick: bool, say: Say) -> Figure:
    """Results of set 2 by time."""
    return _results(2, quick, say)


def figure_5(quick: bool, say: Say) -> Figure:
    """Rows in input queues of set 2 by time."""
    return _over_time(2, quick, say, "Rows in input queues", "rows", {"": lambda m: m.queued})


def figure_6(quick: bool, say: Say) -> Figure:
    """Results of set 3 by time."""
    return _results(3, quick, say)


def figure_7(quick: bool, say: Say) -> Figure:
    """Bytes of state of set 3 by time."""
    return _bytes(3, quick, say)


def figure_8(quick: bool, say: Say) -> Figure:
    """Results of set 4 by time."""
    return _results(4, quick, say)


def figure_9(quick: bool, say: Say) -> Figure:
    """Bytes of state of set 4 by time."""
    return _bytes(4, quick, say)


def _results(number: int, quick: bool, say: Say) -> Figure:
    return _over_time(number, quick, say, "Results so far", "results", {"": lambda m: m.results})


def _bytes(number: int, quick: bool, say: Say) -> Figure:
    limit = SETS[number].memory * MEMORY * MB
    return _over_time(number, quick, say, "State", "bytes", {"": lambda m: m.state_bytes}, limit)


def _over_time(
    number: int,
    quick: bool,
    say: Say,
    title: str,
    unit: str,
    shown: dict[str, Callable[[Moment], int]],
    level: float | None = None,
) -> Figure:
    """A figure with a line for each plan; a line ends where the plan exceeds the memory."""
    of_set, table, series = _measured(number, quick, say), Table(COLUMNS), dict[str, list[tuple[str | int, float]]]()
    for ran in of_set.plans:
        seen = paced(ran.batches, of_set.cpu, of_set.memory, MOMENTS)
        for m in seen:
            table.add(number, ran.tree, ran.chosen_by, m.at, m.results, m.queued, m.state_rows, m.state_bytes)
        for what, value in shown.items():
            series[f"{ran.tree} {what}".strip()] = [(f"{m.at:g}", float(value(m))) for m in seen]
    chart = Chart(f"{title}, set {number}", "second", unit, series, level=level)
    return Figure(table, chart)


@cache
def _machine(quick: bool) -> float:
    """The CPU seconds of the machine for a second of event time."""
    join = _join(2, quick)
    return need(run(join, "mjoin", SETS[2].window / BATCHES), SETS[2].window) / OVER


_known: dict[tuple[int, bool], MeasuredSet] = {}
"""Measured sets, kept because two figures show the same set."""


def _measured(number: int, quick: bool, say: Say) -> MeasuredSet:
    if (number, quick) not in _known:
        _known[number, quick] = _measure(number, quick)
    known = _known[number, quick]
    say(f"set {number}: the machine has {known.cpu:.3g} CPU seconds for a second of event time")
    for ran in known.plans:
        share = need(ran.batches, known.window) / known.cpu
        say(f"set {number}, {ran.tree}: {share:.2f} of the CPU, {most_bytes(ran.batches)} bytes")
    return known


def _measure(number: int, quick: bool) -> MeasuredSet:
    of_set, join = SETS[number], _join(number, quick)
    batch, aliases = of_set.window / BATCHES, [s.alias for s in join.query.sources]
    limits = ResourceLimits(_machine(quick), of_set.memory * MEMORY * MB)
    assert limits.cpu is not None and limits.memory is not None
    mjoin_run = run(join, "mjoin", batch)
    known = observed(join, batch)
    factor = need(mjoin_run, of_set.window) / Pricing(known).cost(mjoin_shape(len(aliases))).cpu
    model = CostModel(known.workload, known.costs.times(factor))
    pricing = Pricing(model)
    trees: dict[Tree, list[str]] = {mjoin(len(aliases)): [], tree_of(min_state(pricing)): []}
    for name, strategy in (("mjoin-init", mjoin_init), ("bjtree-init", bjtree_init)):
        trees.setdefault(strategy(pricing, limits).tree, []).append(name)
    best = choose(exhaustive(Pricing(model, best_ordering), limits), limits, "cpu")
    if best is not None:
        trees.setdefault(best.tree, []).append("exhaustive")
    plans: list[RanPlan] = []
    for tree, chosen_by in trees.items():
        text, cost = tree.text(aliases), pricing.cost(shape_of(tree))
        done = run(join, text, batch) if plans else mjoin_run
        plans.append(RanPlan(text, " ".join(chosen_by), cost, done))
    if len({sum(b.results for b in plan.batches) for plan in plans}) != 1:
        raise InternalError(f"the plans of set {number} disagree")
    return MeasuredSet(of_set.window, limits.cpu, int(limits.memory), plans)


def _join(number: int, quick: bool) -> TimedJoin:
    of_set, scale = SETS[number], QUICK if quick else 1.0
    rates = [rate * of_set.scale * scale for rate in of_set.rates]
    return chain_join(rates, of_set.selectivities, of_set.window, WINDOWS * of_set.window, seed=number)
