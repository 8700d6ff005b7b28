"""The size of batches with simulated costs: its first batches, where it ends, what it fits into, and who waits."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.runtime.running.batch_size import IN_PROCESS, BatchSize, SizeLimits
from eddyline.settings import Settings, from_mapping

Cost = Callable[[int], float]
WIDE = SizeLimits(first=1 << 16, live=1 << 22, most=1 << 26, nbytes=1 << 60, patience=5.0, step=8.0)


def linear(fixed: float, each: float) -> Cost:
    return lambda rows: fixed + each * rows


def fresh(goal: float = 1, follow: bool = True, limits: SizeLimits = WIDE) -> BatchSize:
    return BatchSize(from_mapping({"batch_seconds": goal}), follow, limits)


def took(size: BatchSize, cost: Cost, batches: int, backlog: int = 0) -> list[float]:
    """The seconds of `batches` full batches, with a deterministic noise of a tenth."""
    found = []
    for number in range(batches):
        found.append(cost(size.rows) * (1 + 0.1 * ((number * 7) % 5 - 2) / 2))
        size.observe(found[-1], size.rows, backlog)
    return found


def whole(size: BatchSize, cost: Cost, rows: int, noise: float = 0.0, seed: int = 0) -> tuple[float, list[int]]:
    """The seconds of a job over so many rows, and the rows of its batches."""
    rng, seconds, cut = random.Random(seed), 0.0, list[int]()
    while rows:
        cut.append(min(size.rows, rows))
        rows -= cut[-1]
        one = cost(cut[-1]) * rng.uniform(1 - noise, 1 + noise)
        seconds += one
        size.observe(one, cut[-1], rows, 30 * cut[-1])
    return seconds, cut


@pytest.mark.parametrize("each", [1e-4, 1e-5, 2e-6, 1e-6])
@pytest.mark.parametrize("fixed", [0, 0.05, 0.3])
@pytest.mark.parametrize("first", [1 << 12, 1 << 19])
@pytest.mark.parametrize("follow", [True, False])
def test_batches_come_near_the_goal(fixed: float, each: float, first: int, follow: bool) -> None:
    size = fresh(follow=follow, limits=dataclasses.replace(WIDE, first=first))
    seconds, goal = took(size, linear(fixed, each), 25), 1 if follow else WIDE.patience
    assert all(0.75 * goal < s < 1.25 * goal for s in seconds[-8:]), seconds


def test_it_follows_when_rows_become_more_and_less_expensive() -> None:
    size = fresh()
    for each in (2e-6, 1e-5, 1e-6):
        seconds = took(size, linear(0.2, each), 15)
        assert all(0.75 < s < 1.25 for s in seconds[-4:]), (each, seconds)


def test_a_fixed_cost_above_the_goal_does_not_make_batches_tiny() -> None:
    size = fresh()
    took(size, linear(2, 2e-6), 30)
    assert 500_000 < size.rows < 2_000_000, "rows get about as much time as the fixed cost"


@given(st.lists(st.floats(1e-6, 100), min_size=1, max_size=20), st.booleans())
@settings(max_examples=50, deadline=None)
def test_steps_are_bounded(times: list[float], follow: bool) -> None:
    size = fresh(follow=follow)
    before = size.rows
    for seconds in times:
        size.observe(seconds, size.rows)
        assert before / WIDE.step - 1 <= size.rows <= before * WIDE.step + 1
        before = size.rows


@given(
    st.floats(0.001, 1.0),
    st.floats(1e-7, 1e-5),
    st.integers(10_000_000, 100_000_000),
    st.floats(0, 0.3),
    st.integers(0, 99),
)
@settings(max_examples=100, deadline=None)
def test_a_job_over_what_is_there_is_nearly_as_fast_as_in_one_batch(
    fixed: float, each: float, rows: int, noise: float, seed: int
) -> None:
    """Whatever a batch and a row cost. At its goal a batch has a fixed cost of `fixed / (patience * goal)`."""
    seconds, cut = whole(fresh(follow=False), linear(fixed, each), rows, noise, seed)
    assert cut[0] == WIDE.first, "the first result comes early"
    assert seconds < (fixed + each * rows) * (1 + noise) * (1 + 2 * fixed / WIDE.patience) + 8 * fixed


@pytest.mark.parametrize("fixed", [1.0, 4.0])
def test_batches_that_cost_as_much_as_they_may_tell_their_fixed_cost(fixed: float) -> None:
    """On a busy machine the first sizes may take the whole goal, most of it whatever their rows are."""
    size = fresh(goal=2, follow=False, limits=dataclasses.replace(WIDE, first=1 << 19))
    _, cut = whole(size, linear(fixed, 1e-6), 50_000_000, noise=0.1)
    assert len(cut) <= 15


def test_the_first_sizes_of_a_fast_job() -> None:
    _, cut = whole(fresh(follow=False, limits=IN_PROCESS), linear(0.005, 2e-7), 18_000_000)
    assert cut[:4] == [1 << 16, 1 << 18, 1 << 20, 1 << 20]
    assert len(cut) == 19


def test_the_last_batch_takes_a_small_rest() -> None:
    limits = dataclasses.replace(IN_PROCESS, first=1 << 20)
    assert whole(fresh(follow=False, limits=limits), linear(0, 1e-7), 2_200_000)[1] == [1 << 20, 2_200_000 - (1 << 20)]


@pytest.mark.parametrize("setting", [{"batch_rows": 100}, {"batch_rows": 7}])
def test_a_number_is_never_exceeded(setting: dict[str, object]) -> None:
    size = BatchSize(from_mapping(setting))
    _, cut = whole(size, linear(0, 1e-6), 1009)
    assert set(cut[:-1]) == {setting["batch_rows"]} and cut[-1] <= cut[0]


def test_one_slow_batch_is_an_accident() -> None:
    size = fresh()
    size.observe(30, size.rows)
    assert size.rows == 1 << 16
    took(size, linear(0.3, 2e-6), 20)
    before = size.rows
    size.observe(9, size.rows)
    assert size.rows == before


def test_batches_that_are_not_full_leave_the_size() -> None:
    size = fresh()
    for _ in range(20):
        size.observe(1.3, 10)
        size.observe(0.1, 0)
    assert size.rows == 1 << 16


def test_never_above_the_most_or_below_the_least() -> None:
    for follow, most in ((True, IN_PROCESS.live), (False, IN_PROCESS.most)):
        local = fresh(follow=follow, limits=IN_PROCESS)
        took(local, linear(0, 1e-9), 5)
        assert local.rows == most
        took(local, linear(0, 1), 40)
        assert local.rows == 256


def test_a_job_that_follows_catches_up_and_then_keeps_its_seconds() -> None:
    size, rows, cost = fresh(limits=IN_PROCESS), 20_000_000, linear(0.01, 5e-7)
    cut = []
    while rows > 0:
        cut.append(min(size.rows, rows))
        rows -= cut[-1]
        size.observe(cost(cut[-1]), cut[-1], rows)
    assert cut[:3] == [1 << 16, 1 << 18, 1 << 20]
    size.observe(cost(10_000), 10_000, 0)
    assert size.rows == IN_PROCESS.live, "what arrives now is waited for"
    for _ in range(20):
        size.observe(cost(10_000), 10_000, 500)
        assert size.rows == IN_PROCESS.live
    size.observe(cost(size.rows), size.rows, 50_000_000)
    assert size.rows == 4 * IN_PROCESS.live, "it is behind again"


def test_a_trigger_is_waited_for() -> None:
    size = BatchSize(from_mapping({"trigger": 60}), limits=IN_PROCESS)
    took(size, linear(0, 1e-9), 5)
    assert size.rows == IN_PROCESS.live


@given(
    st.lists(st.tuples(st.integers(1, 1 << 22), st.floats(1e-4, 10), st.integers(10, 10_000)), min_size=1, max_size=20)
)
@settings(max_examples=50, deadline=None)
def test_a_batch_fits(batches: list[tuple[int, float, int]]) -> None:
    """In `memory`, and but for the rows of a first batch in the limit of bytes."""
    size = BatchSize(Settings())
    for fits, seconds, row_bytes in batches:
        size.observe(seconds, size.rows, 10 * size.rows, size.rows * row_bytes)
        size.fit(fits)
        assert size.rows <= max(fits, 256)
        assert size.rows <= 1.25 * max(IN_PROCESS.nbytes / row_bytes, IN_PROCESS.first)


def test_memory_alone_changes_the_size_at_once() -> None:
    size = fresh(limits=IN_PROCESS)
    size.fit(None)
    assert size.rows == 1 << 16
    size.fit(5000)
    assert size.rows == 5000
    size.fit(1)
    assert size.rows == 256, "smaller batches would only cost time"
    took(size, linear(0, 1e-9), 5)
    assert size.rows == 256
    size.fit(1 << 20)
    assert size.rows == 1 << 16, "at once: nothing else keeps it small"
    size.fit(5000)
    took(size, linear(0, 1e-3), 20)
    assert 700 < size.rows < 1400, "time asks for fewer rows than would fit"
    size.fit(1 << 20)
    assert 700 < size.rows < 1400
    fixed = BatchSize(Settings(batch_rows=70_000))
    fixed.fit(5000)
    assert fixed.rows == 70_000


@pytest.mark.parametrize(
    ("changed", "busy"),
    [({}, 1.5), ({"batch_seconds": 2}, 0.75), ({"batch_rows": 100}, 0.0), ({"batch_rows": 100, "trigger": 2}, 1.5)],
)
def test_how_busy_a_job_is(changed: dict[str, object], busy: float) -> None:
    """Beside the time that a batch should take. Rows that the user has chosen may take any time, unless there is a
    trigger."""
    size = BatchSize(from_mapping(changed))
    assert size.busy == 0.0
    size.observe(3.0, 100)
    assert size.busy == busy
