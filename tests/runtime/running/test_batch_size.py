"""The time of a batch comes near the goal, whatever the costs of a batch and of a row; times are simulated."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eddyline.runtime.running.batch_size import BatchSize
from eddyline.settings import Settings, from_mapping

Cost = Callable[[int], float]


def linear(fixed: float, each: float) -> Cost:
    return lambda rows: fixed + each * rows


def fresh(goal: float = 1, first: int = 1 << 19, most: int = 1 << 22) -> BatchSize:
    return BatchSize(from_mapping({"batch_seconds": goal}), first, most)


def took(size: BatchSize, cost: Cost, batches: int) -> list[float]:
    """The seconds of `batches` full batches, with a deterministic noise of a tenth."""
    found = []
    for number in range(batches):
        found.append(cost(size.rows) * (1 + 0.1 * ((number * 7) % 5 - 2) / 2))
        size.observe(found[-1], size.rows)
    return found


@pytest.mark.parametrize("each", [1e-4, 1e-5, 2e-6, 1e-6])
@pytest.mark.parametrize("fixed", [0, 0.05, 0.3])
@pytest.mark.parametrize("first", [1 << 12, 1 << 19])
def test_batches_come_near_the_goal(fixed: float, each: float, first: int) -> None:
    seconds = took(fresh(first=first), linear(fixed, each), 25)
    assert all(0.75 < s < 1.25 for s in seconds[-8:]), seconds


def test_it_follows_when_rows_become_more_and_less_expensive() -> None:
    size = fresh()
    for each in (2e-6, 1e-5, 1e-6):
        seconds = took(size, linear(0.2, each), 15)
        assert all(0.75 < s < 1.25 for s in seconds[-4:]), (each, seconds)


def test_a_fixed_cost_above_the_goal_does_not_make_batches_tiny() -> None:
    size = fresh()
    took(size, linear(2, 2e-6), 30)
    assert 500_000 < size.rows < 2_000_000, "rows get about as much time as the fixed cost"


def test_steps_are_bounded() -> None:
    size, before = fresh(), 1 << 19
    for seconds in (50, 50, 50, 0.001, 0.001):
        size.observe(seconds, size.rows)
        assert before / 2 <= size.rows <= before * 2
        before = size.rows


def test_one_slow_batch_is_an_accident() -> None:
    size = fresh()
    size.observe(30, size.rows)
    assert size.rows == 1 << 19
    took(size, linear(0.3, 2e-6), 20)
    before = size.rows
    size.observe(9, size.rows)
    assert size.rows == before


def test_batches_that_are_not_full_leave_the_size() -> None:
    size = fresh()
    for _ in range(20):
        size.observe(1.3, 10)
        size.observe(0.1, 0)
    assert size.rows == 1 << 19


def test_never_above_the_most_or_below_the_least() -> None:
    local = BatchSize(from_mapping({"batch_seconds": 1}))
    took(local, linear(0, 1e-9), 5)
    assert local.rows == 65536, "on the local engine larger batches would only hold state longer"
    took(local, linear(0, 1), 40)
    assert local.rows == 256


def test_a_number_that_was_set_stays() -> None:
    fixed = BatchSize(from_mapping({"batch_rows": 10}), 1 << 19, 1 << 22)
    took(fixed, linear(0, 10), 5)
    assert fixed.rows == 10


def test_a_batch_fits_in_memory() -> None:
    size = BatchSize(Settings())
    whole = size.rows
    size.fit(None)
    assert size.rows == whole
    size.fit(5000)
    assert size.rows == 5000
    size.fit(1)
    assert size.rows == 256, "smaller batches would only cost time"
    took(size, linear(0, 1e-9), 5)
    assert size.rows == 256
    size.fit(10 * whole)
    assert size.rows == whole, "at once: nothing else keeps it small"
    size.fit(5000)
    took(size, linear(0, 1e-3), 20)
    assert 700 < size.rows < 1400, "time asks for fewer rows than would fit"
    size.fit(10 * whole)
    assert 700 < size.rows < 1400
    fixed = BatchSize(Settings(batch_rows=70_000))
    fixed.fit(5000)
    assert fixed.rows == 70_000


@pytest.mark.parametrize(
    ("settings", "busy"),
    [({}, 3.0), ({"batch_seconds": 2}, 1.5), ({"batch_rows": 100}, 0.0), ({"batch_rows": 100, "trigger": 2}, 1.5)],
)
def test_how_busy_a_job_is(settings: dict[str, object], busy: float) -> None:
    """Rows that the user has chosen may take any time, unless there is a trigger."""
    size = BatchSize(from_mapping(settings))
    assert size.busy == 0.0
    size.observe(3.0, 100)
    assert size.busy == busy
