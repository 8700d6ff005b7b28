"""Figure 8 of paper 001, small: its claims hold."""

from __future__ import annotations

from lab.experiments import Figure
from lab.experiments.index_joins import (
    MODULES,
    ONE_CACHE,
    STEMS,
    caches_of_aliases,
    figure_8_caches,
    gain,
    q1,
)
from lab.experiments.timed_run import bend


def end(figure: Figure, side: str) -> float:
    """When all results are there."""
    points = [(float(row["second"]), int(row["count"])) for row in figure.table.where(side=side)]
    return next(second for second, count in points if count == points[-1][1])


def test_results_come_sooner_with_the_same_probes() -> None:
    stems, modules, probes = q1(True)
    assert stems.results.total == modules.total == 100
    assert stems.probes("S").total == probes.total
    assert gain(stems, modules) >= 1.5
    assert abs(bend(stems.results)) < 0.2 and bend(modules) < -0.3


def test_one_cache_is_faster_than_two() -> None:
    figure = figure_8_caches(True, lambda line: None)
    assert end(figure, MODULES) >= 1.2 * end(figure, STEMS)
    assert end(figure, ONE_CACHE) <= 1.1 * end(figure, STEMS)
    aliases = caches_of_aliases(True, lambda line: None)
    assert end(aliases, MODULES) >= 1.2 * end(aliases, STEMS)
