"""The search for qualified plans: figures 8.10 to 8.15 of dissertation 002.

Settings are drawn as in `lab.experiments.draw`: streams within a factor of 100 of each other's rates, joins drawn at
random, and limits between which most queries need a plan that is neither the multi-way join nor a binary tree.
Exhaustive search takes part up to 8 streams, where the paper's ran out of memory. Times are CPU times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from statistics import mean, quantiles
from time import process_time

from eddyline.optimizer.best_ordering import best_ordering
from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.costs import DEFAULTS
from eddyline.optimizer.exhaustive import exhaustive
from eddyline.optimizer.plans import PricedPlan, ResourceLimits
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.strategies import bjtree_init, mjoin_init
from lab.experiments import Figure, Say, draw
from lab.experiments.chart import Chart, Series
from lab.experiments.table import Table

STREAMS = range(3, 21)
MOST_EXHAUSTIVE = 8
SETTINGS = 100
QUICK_STREAMS, QUICK_SETTINGS = (3, 4, 9), 12
DECILES = range(10, 100, 10)
SIDES = ("mjoin-init", "bjtree-init", "exhaustive")

Search = Callable[[CostModel, ResourceLimits], list[PricedPlan]]
_SEARCHES: dict[str, Search] = {
    "mjoin-init": lambda model, limits: [mjoin_init(Pricing(model), limits)],
    "bjtree-init": lambda model, limits: [bjtree_init(Pricing(model), limits)],
    "exhaustive": lambda model, limits: exhaustive(Pricing(model, best_ordering), limits),
}


def figure_10(quick: bool, say: Say) -> Figure:
    """The share of settings in which a qualified plan is found."""
    table = Table(("streams", "settings", "mjoin_init", "bjtree_init", "either", "exhaustive"))
    for streams in QUICK_STREAMS if quick else STREAMS:
        settings = _settings(streams, QUICK_SETTINGS if quick else SETTINGS)
        found = {side: [bool(_qualified(side, setting)) for setting in settings] for side in _sides(streams)}
        either = map(max, zip(found["mjoin-init"], found["bjtree-init"], strict=True))
        percent = {side: 100 * mean(hits) for side, hits in {**found, "either": list(either)}.items()}
        table.add(streams, len(settings), *(percent.get(side, "") for side in (*SIDES[:2], "either", SIDES[2])))
        say(f"{streams} streams: {', '.join(f'{side} {value:.0f} %' for side, value in percent.items())}")
    title = "Settings in which a qualified plan is found"
    return Figure(table, Chart(title, "streams", "percent", _by_streams(table)))


def figure_11(quick: bool, say: Say) -> Figure:
    """The average time of the search: figures 8.11 and 8.12."""
    table = Table(("streams", "settings", "mjoin_init", "bjtree_init", "exhaustive"))
    for streams in QUICK_STREAMS if quick else STREAMS:
        settings = _settings(streams, QUICK_SETTINGS if quick else SETTINGS)
        times = {side: mean(_milliseconds(side, setting) for setting in settings) for side in _sides(streams)}
        table.add(streams, len(settings), *(times.get(side, "") for side in SIDES))
        say(f"{streams} streams: {', '.join(f'{side} {value:.3g} ms' for side, value in times.items())}")
    chart = Chart("Mean optimization time", "streams", "milliseconds", _by_streams(table), log_y=True)
    return Figure(table, chart)


def figure_13(quick: bool, say: Say) -> Figure:
    """The CPU and memory of qualified plans for 3 streams."""
    return _distribution(3, quick, say)


def figure_14(quick: bool, say: Say) -> Figure:
    """The CPU and memory of qualified plans for 5 streams."""
    return _distribution(5, quick, say)


def figure_15(quick: bool, say: Say) -> Figure:
    """The CPU and memory of qualified plans for 10 streams."""
    return _distribution(10, quick, say)


def _distribution(streams: int, quick: bool, say: Say) -> Figure:
    """A figure of the shares of the limits that qualified plans use, by decile of each strategy's plans."""
    table = Table(("streams", "setting", "strategy", "cpu", "memory", "cpu_share", "memory_share", "states"))
    for number, setting in enumerate(_settings(streams, 3 * QUICK_SETTINGS if quick else SETTINGS)):
        cpu, memory = setting.limits.cpu, setting.limits.memory
        assert cpu is not None and memory is not None
        for side in SIDES[:2]:
            for plan in _qualified(side, setting):
                cost, states = plan.cost, sum(1 for _ in plan.tree.below())
                shares = cost.cpu / cpu, cost.memory / memory
                table.add(streams, number, side, cost.cpu, cost.memory, *shares, states)
    say(f"{streams} streams: {len(table.rows)} qualified plans")
    series: dict[str, Sequence[tuple[str | int, float]]] = {}
    for side in SIDES[:2]:
        for resource in ("cpu", "memory"):
            values = [float(row[f"{resource}_share"]) for row in table.where(strategy=side)]
            cuts = quantiles(values, n=10, method="inclusive") if len(values) > 1 else values * len(DECILES)
            series[f"{side}, {resource}"] = list(zip(DECILES, cuts, strict=True))
    title = f"Use of the limits by qualified plans, {streams} streams"
    return Figure(table, Chart(title, "percent of the plans", "share of the limit, at most", series, level=1.0))


def _settings(streams: int, count: int) -> list[draw.DrawnSetting]:
    return [draw.setting(Random(f"{streams} {number}"), streams) for number in range(count)]


def _sides(streams: int) -> tuple[str, ...]:
    return SIDES if streams <= MOST_EXHAUSTIVE else SIDES[:2]


def _qualified(side: str, setting: draw.DrawnSetting) -> list[PricedPlan]:
    plans = _SEARCHES[side](CostModel(setting.workload, DEFAULTS), setting.limits)
    return [plan for plan in plans if setting.limits.allow(plan.cost)]


def _milliseconds(side: str, setting: draw.DrawnSetting) -> float:
    start = process_time()
    _SEARCHES[side](CostModel(setting.workload, DEFAULTS), setting.limits)
    return 1000 * (process_time() - start)


def _by_streams(table: Table) -> Series:
    """A line for each strategy, over the numbers of streams for which it was measured."""
    columns = {side: side.replace("-", "_") for side in SIDES}
    return {
        side: [(int(row["streams"]), float(row[column])) for row in table.where() if row[column] != ""]
        for side, column in columns.items()
    }
