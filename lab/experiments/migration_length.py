"""How long a migration takes: figures 16.1 to 16.4 of dissertation 002.

Parallel track is measured in event time: it ends when the old rows have expired. Moving state is measured in CPU
seconds. The parameters are those of table 16.1, with `scale` times the rates and 1 / `scale` of the selectivities, so
that a row finds as many partners as in the paper while there is enough work to measure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from lab.bench.timed_joins import TimedJoin, chain_join
from lab.experiments import Figure, Say
from lab.experiments.chart import Chart
from lab.experiments.migration_runs import MOVING, NEW, NEWEST, PARALLEL, PAUSING, Changed, change, pauses
from lab.experiments.table import Table

WINDOWS = (1.0, 2.0, 3.0, 4.0, 5.0)
RATES_B = (10.0, 20.0, 40.0, 80.0)
"""Rows a second of B in figure 16.3, before they are scaled."""
QUICK_WINDOWS = (1.0, 1.5)
BATCHES = 40
"""Batches in a window."""
LATE = 0.25
"""The lateness of a run that has one, as a share of the window."""
MACHINE = 0.03
"""The share of a core that the machine of figure 16.4 has."""
ROUNDS = 3
ONE_LEVEL = "(A B C D)", NEW


@dataclass(frozen=True)
class Config:
    """A column of table 16.1: rows a second, selectivities between neighbours, and how both are scaled."""

    rates: tuple[float, ...]
    selectivities: tuple[float, ...]
    scale: float
    window: float = 1.0

    @property
    def pairs(self) -> float:
        """The number of pairs that a recomputation compares by equation 16.1, without T_s: matches are a constant share
        of the pairs."""
        (_, b, c, d), (_, bc, _) = ([rate * self.scale for rate in self.rates], self.selectivities)
        return b * c * self.window**2 + 2 * b * c * d * self.window**3 * bc / self.scale

    def join(self, windows: float, lateness: float = 0.0) -> TimedJoin:
        """The join with rows for `windows` windows."""
        rates = [rate * self.scale for rate in self.rates]
        shares = [share / self.scale for share in self.selectivities]
        late = f"{round(lateness * 1e6)} MICROSECONDS"
        return chain_join(rates, shares, self.window, windows * self.window, 1, late)


SET_1 = Config((10, 10, 10, 10), (0.1, 0.05, 0.02), 10)
SET_2 = Config((20, 20, 20, 20), (0.1, 0.05, 0.02), 30)
SET_3 = Config((10, 1000 / 12, 1000 / 12, 1000 / 12), (0.02, 0.1, 0.1), 1)
LARGE = 3.0
"""The factor on the scale of set 1 for moving state, which would otherwise be too quick to measure."""


def figure_1(quick: bool, say: Say) -> Figure:
    """The length of parallel track by window."""
    table = Table(("window", "lateness", "old_plan", "purge", "seconds", "model", "over_model"))
    lines: dict[str, list[tuple[str | int, float]]] = {}
    for window in QUICK_WINDOWS[:1] if quick else WINDOWS:
        config = replace(SET_1, window=window)
        cases = {
            "exact expiry": (PARALLEL, 0.0, {}, window),
            "exact expiry, lateness": (PARALLEL, LATE * window, {}, (1 + LATE) * window),
            "newest component": (NEWEST, 0.0, {}, 2 * window),
            "newest component, one level": (NEWEST, 0.0, {"plans": ONE_LEVEL}, window),
        }
        for label, (how, late, plans, model) in cases.items():
            took = _parallel(config, how, late, **plans).length
            old = ONE_LEVEL[0] if plans else "(((A B) C) D)"
            table.add(window, late, old, "newest" if how == NEWEST else "exact", took, model, took / model)
            lines.setdefault(label, []).append((f"{window:g}", took))
            say(f"window {window:g} s, {label}: {took:.3g} s of event time, {took / model:.3f} of the model")
        lines.setdefault("W", []).append((f"{window:g}", window))
        lines.setdefault("2W", []).append((f"{window:g}", 2 * window))
    return Figure(table, Chart("Length of parallel track", "window, seconds", "seconds of event time", lines))


def figure_2(quick: bool, say: Say) -> Figure:
    """The length of moving state by window."""
    windows = _windows(quick)
    configs = {f"{window:g}": replace(SET_1, window=window, scale=LARGE * SET_1.scale) for window in windows}
    return _moving("window", configs, windows, say, 1 if quick else ROUNDS)


def figure_3(quick: bool, say: Say) -> Figure:
    """The length of both strategies by the rate of B."""
    rates = RATES_B[:2] if quick else RATES_B
    configs = {f"{rate:g}": replace(SET_2, rates=(20, rate, 20, 20)) for rate in rates}
    figure = _moving("rate_B", configs, rates, say, 1 if quick else ROUNDS)
    lines = {**figure.chart.series}
    for label, how in (("parallel track", PARALLEL), ("parallel track, newest component", NEWEST)):
        lines[label] = [(x, _parallel(replace(c, scale=c.scale / 6), how, 0.0).length) for x, c in configs.items()]
        for (x, seconds), config in zip(lines[label], configs.values(), strict=True):
            figure.table.add(x, label, seconds, (2 if how == NEWEST else 1) * config.window, 0.0)
            say(f"rate of B {x}, {label}: {seconds:.3g} s of event time")
    chart = replace(figure.chart, series=lines, log_y=True, y="seconds")
    return Figure(figure.table, chart)


def figure_4(quick: bool, say: Say) -> Figure:
    """The length of both by window with large states: on a machine with a small share of a core the lines cross."""
    table, lines = Table(("window", "strategy", "cpu_seconds", "seconds")), dict[str, list[tuple[str | int, float]]]()
    windows = _windows(quick)
    configs = [replace(SET_3, window=window) for window in windows]
    cpu = [_seconds(config, PAUSING, 1 if quick else ROUNDS) for config in configs]
    sides = {
        "moving state": [seconds / MACHINE for seconds in cpu],
        "parallel track": [_parallel(c, PARALLEL, 0.0, windows=1.3).length for c in configs],
        "parallel track, newest component": [_parallel(c, NEWEST, 0.0).length for c in configs],
    }
    for label, values in sides.items():
        lines[label] = [(f"{window:g}", value) for window, value in zip(windows, values, strict=True)]
        for window, value, took in zip(windows, values, cpu, strict=True):
            table.add(window, label, took if label == "moving state" else "", value)
        if label != "moving state":
            at = crossing(windows, sides["moving state"], values)
            core = crossing(windows, cpu, values)
            say(
                f"moving state is slower than {label} from a window of {at:.3g} s on; on a whole core from {core:.3g} s"
            )
    return Figure(table, Chart("Length of migration", "window, seconds", "seconds", lines))


def _moving(x: str, configs: Mapping[str, Config], values: Sequence[float], say: Say, rounds: int) -> Figure:
    """Moving state in slices and in one pause, beside the model, which is fitted to the pausing form."""
    table = Table((x, "strategy", "seconds", "model", "order"))
    pairs = [config.pairs for config in configs.values()]
    sides = {how: [_seconds(config, how, rounds) for config in configs.values()] for how in (MOVING, PAUSING)}
    sides["model"] = fitted(pairs, sides[PAUSING])
    say(f"pairs alone: order {order(values, pairs):.2f} in {x.replace('_', ' of ')}")
    lines: dict[str, list[tuple[str | int, float]]] = {}
    for label, seconds in sides.items():
        slope = order(values, seconds)
        lines[f"{label}, order {slope:.2f}"] = list(zip(configs, seconds, strict=True))
        say(f"{label}: order {slope:.2f} in {x.replace('_', ' of ')}")
        for at, took, model in zip(configs, seconds, sides["model"], strict=True):
            table.add(at, label, took, model, slope)
    name = "window, seconds" if x == "window" else "rows of B a second, before they are scaled"
    return Figure(table, Chart("Length of moving state", name, "CPU seconds", lines))


def order(values: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope on logarithmic scales.

    >>> round(order([1, 2, 4], [3, 12, 48]), 6)
    2.0
    """
    return float(np.polyfit(np.log(values), np.log(seconds), 1)[0])


def fitted(pairs: Sequence[float], seconds: Sequence[float]) -> list[float]:
    """The fit of equation 12.3: matching and moving states takes a constant time, and each pair takes the same time.

    >>> [round(value, 6) for value in fitted([10, 20, 40], [2, 3, 5])]
    [2.0, 3.0, 5.0]
    """
    weights = 1 / np.array(seconds)
    known = np.array([weights, weights * np.array(pairs)]).T
    (once, price), *_ = np.linalg.lstsq(known, np.ones(len(pairs)), rcond=None)
    return [float(max(once, 0.0) + price * count) for count in pairs]


def crossing(values: Sequence[float], one: Sequence[float], other: Sequence[float]) -> float:
    """The value at which `one` rises above `other`, by linear interpolation on logarithmic scales, or by a line through
    all points if it is outside them.

    >>> crossing([1, 2, 4], [1, 8, 64], [4, 8, 16])
    2.0
    """
    logs, apart = np.log(values), np.log(np.array(one) / np.array(other))
    for at in range(1, len(values)):
        if apart[at - 1] < 0 <= apart[at]:
            share = -apart[at - 1] / (apart[at] - apart[at - 1])
            return float(math.exp(logs[at - 1] + share * (logs[at] - logs[at - 1])))
    slope, level = np.polyfit(logs, apart, 1)
    return float(math.exp(-level / slope))


def _windows(quick: bool) -> Sequence[float]:
    return QUICK_WINDOWS if quick else WINDOWS


@cache
def _parallel(
    config: Config, how: str, late: float, plans: tuple[str, str] | None = None, windows: float = 2.3
) -> Changed:
    """A migration by parallel track after one and a half windows."""
    join = config.join(1.5 + windows + late / config.window, late)
    chosen = {} if plans is None else {"plans": plans}
    return change(join, how, 1.5 * config.window, config.window / BATCHES, config.window, **chosen)


def _seconds(config: Config, how: str, rounds: int) -> float:
    """The CPU seconds of a migration when windows are full. For the pausing form it is the least of some rounds that
    move the state there and back."""
    window = config.window
    if how == PAUSING:
        return pauses(config.join(1.1), 1.1 * window, window / BATCHES, rounds)
    return change(config.join(1.6), how, 1.1 * window, window / BATCHES, window).seconds
