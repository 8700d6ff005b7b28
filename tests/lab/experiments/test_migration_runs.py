"""Runs whose plan is changed: how long that takes, and that it changes no result. Nothing here is timed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eddyline.errors import InternalError
from lab.experiments.migration_length import SET_1, Config, crossing, order
from lab.experiments.migration_runs import MOVING, NEW, NEWEST, OLD, PARALLEL, PAUSING, Changed, change

WINDOW, BATCH = 1.0, 0.05
CONFIG = replace(SET_1, window=WINDOW)


def _run(how: str | None, plans: tuple[str, str] = (OLD, NEW), late: float = 0.0) -> Changed:
    return change(CONFIG.join(3.9 + late, late), how, 1.5, BATCH, WINDOW, plans)


def test_parallel_track_ends_when_the_window_and_the_lateness_have_passed() -> None:
    assert _run(PARALLEL).length == pytest.approx(WINDOW, abs=2 * BATCH)
    assert _run(PARALLEL, late=0.5).length == pytest.approx(1.5 * WINDOW, abs=2 * BATCH)


def test_purge_by_the_newest_component_takes_another_window_unless_there_is_one_level() -> None:
    assert _run(NEWEST).length == pytest.approx(2 * WINDOW, rel=0.1)
    assert _run(NEWEST, plans=("(A B C D)", NEW)).length == pytest.approx(WINDOW, abs=2 * BATCH)


def test_results_are_the_same_and_states_are_those_of_the_plan() -> None:
    runs = [_run(how) for how in (None, MOVING, PAUSING, PARALLEL, NEWEST)]
    assert len({run.results for run in runs}) == 1 and runs[0].results
    new = _run(None, plans=(NEW, NEW)).batches[-1].state_rows
    assert [run.batches[-1].state_rows for run in runs[1:]] == [new] * 4
    assert runs[0].batches[-1].state_rows > new
    assert runs[0].seconds == 0 and all(run.seconds > 0 for run in runs[1:])


def test_a_pause_is_a_batch_without_rows() -> None:
    pauses = [batch for batch in _run(PAUSING).batches if not batch.rows]
    assert len(pauses) == 1 and pauses[0].end == pytest.approx(1.5) and pauses[0].results == 0


def test_a_change_that_is_not_done_is_said() -> None:
    with pytest.raises(InternalError, match="the plan is still"):
        change(CONFIG.join(2.0), PARALLEL, 1.5, BATCH, WINDOW)


def test_pairs_grow_with_the_window_and_the_rate_as_in_equation_16_1() -> None:
    config = Config((1, 10, 10, 10), (1, 0.1, 1), 1, 2.0)
    assert config.pairs == 10 * 10 * 4 + 2 * 10 * 10 * 10 * 8 * 0.1
    doubled = replace(config, rates=(1, 20, 10, 10))
    assert doubled.pairs == 2 * config.pairs


def test_the_order_is_a_slope_and_lines_cross_where_they_do() -> None:
    assert order([1, 2, 4], [5, 40, 320]) == pytest.approx(3)
    assert crossing([1, 2, 3, 4], [1, 2, 8, 16], [4, 4, 4, 4]) == pytest.approx(2 * 1.5**0.5)
    assert crossing([1, 2], [1, 2], [8, 8]) == pytest.approx(8), "where the lines go"
