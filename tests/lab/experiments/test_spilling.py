"""Quick versions of the experiments with groups that leave memory: what the figures say holds there too, but times."""

from __future__ import annotations

from functools import cache

import pytest

from lab.experiments import Figure, partitioned, spilling
from lab.experiments.spilling import CLEAN_UP, ORDERS, PUSHES, WHOLE


@cache
def figure(name: str) -> Figure:
    module = partitioned if name in ("figure_6", "figure_7") else spilling
    made: Figure = getattr(module, name)(True, lambda line: None)
    return made


def last(name: str) -> dict[str, float]:
    """The last point of each line."""
    return {side: points[-1][1] for side, points in figure(name).chart.series.items()}


@pytest.mark.parametrize("name", ["figure_9", "figure_11", "delays"])
def test_all_sides_have_the_same_results_after_the_clean_up(name: str) -> None:
    table, at_run_time = figure(name).table, last(name)
    totals = {str(row["side"]): row["results"] for row in table.where(minute=CLEAN_UP)}
    assert set(totals) == set(at_run_time) and len(set(totals.values())) == 1
    assert at_run_time[WHOLE] == totals[WHOLE] > max(n for side, n in at_run_time.items() if side != WHOLE)


def test_the_more_leaves_at_a_time_the_fewer_results_are_made() -> None:
    made = list(last("figure_9").values())
    assert list(last("figure_9")) == [WHOLE, *(f"{percent} %" for percent in PUSHES)]
    assert made == sorted(made, reverse=True) and made[-1] < 0.5 * made[1]


def test_the_longer_results_may_wait_for_rows_on_disk_the_fewer_are_made_early() -> None:
    made = list(last("delays").values())
    assert made == sorted(made, reverse=True) and made[1] > 1.5 * made[-1]


def test_memory_is_bounded_and_groups_leave_the_less_often_the_more_leave() -> None:
    table = figure("figure_10").table
    most = {side: max(float(row["memory"]) for row in table.where(side=side)) for side in last("figure_10")}
    often = [sum(int(row["groups_left"]) > 0 for row in table.where(side=f"{percent} %")) for percent in PUSHES]
    assert all(size <= 1.05 * most[WHOLE] / spilling.TIMES for side, size in most.items() if side != WHOLE)
    assert often == sorted(often, reverse=True) and often[-1] >= 1 and often[0] > 2 * often[-1]
    assert figure("figure_9").table.rows == table.rows, "the figures show the same runs"


def test_least_productive_first_pays_where_join_ratios_differ() -> None:
    least, random, most = (last("figure_11")[side] for side in ORDERS)
    assert least > 1.3 * random and random > 1.3 * most


def test_a_job_with_more_slots_comes_further_and_groups_that_leave_let_it_end() -> None:
    minutes = {side: len(list(figure("figure_7").table.where(side=side))) for side in last("figure_7")}
    assert minutes["M1"] < minutes["M2"] < partitioned.MINUTES
    assert all(minutes[side] == partitioned.MINUTES for side in ("M3", "M4", "M5", partitioned.LEAVE))
    made = last("figure_7")
    assert made["M3"] == made["M4"] == made["M5"] > made[partitioned.LEAVE] > made["M1"]


def test_the_state_is_divided_over_slots() -> None:
    table = figure("figure_6").table
    largest = [max(float(row["largest_slot"]) for row in table.where(side=f"M{n}")) for n in (1, 2, 4)]
    assert largest[1] < 0.7 * largest[0] and largest[2] < 0.7 * largest[1]
