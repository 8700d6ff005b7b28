"""When it is time to look for a plan."""

from __future__ import annotations

import json
from collections.abc import Mapping

from eddyline.optimizer.timing import FIRST_ROWS, INTERVAL_ROWS, LONGEST_INTERVAL, NEAR, THRESHOLD, Timing, Usage

IDLE = Usage(0.0, 0)
STILL = {"rate 0": 10.0, "selectivity 0-1": 0.01}


class Batches:
    """Batches of a second of event time each."""

    def __init__(self, longest: float = 2.0) -> None:
        self.timing, self.second = Timing(longest), 0

    def feed(self, rows: int, usage: Usage = IDLE, seconds: int = 1) -> float:
        self.second += seconds
        return self.timing.passed(self.second * 1_000_000, rows, usage)

    def looked(self, figures: Mapping[str, float] = STILL) -> str:
        assert self.timing.due()
        return self.timing.changed(figures)


def after_first_look() -> Batches:
    batches = Batches()
    for _ in range(4):
        batches.feed(FIRST_ROWS)
    assert batches.looked() == "the first look"
    return batches


def test_the_seconds_that_passed() -> None:
    batches = Batches()
    assert not batches.timing.started
    assert batches.timing.passed(None, 5, IDLE) == 0.0 and not batches.timing.started
    assert batches.feed(5) == 0.0 and batches.timing.started
    assert batches.feed(5, seconds=3) == 3.0
    assert batches.timing.passed(1_000_000, 5, IDLE) == 0.0, "time does not go back"
    assert batches.feed(5) == 1.0


def test_the_first_look_needs_a_window_and_rows() -> None:
    batches = Batches()
    for _ in range(2):
        batches.feed(FIRST_ROWS)
        assert batches.timing.due() is None, "no whole window yet"
    batches.feed(1)
    assert batches.timing.due() == "enough has been seen"
    few = Batches()
    for _ in range(5):
        few.feed(FIRST_ROWS // 5 - 1)
    assert few.timing.due() is None and not few.timing.looked
    few.feed(5)
    assert few.looked() == "the first look" and few.timing.looked


def test_the_next_look_is_an_interval_later_which_grows_while_nothing_changes() -> None:
    batches, expected = after_first_look(), 1
    for _ in range(9):
        for _ in range(expected - 1):
            batches.feed(INTERVAL_ROWS)
            assert batches.timing.due() is None
        batches.feed(INTERVAL_ROWS - 1)
        assert batches.timing.due() is None
        batches.feed(1)
        assert batches.timing.due() == "an interval has passed"
        assert batches.timing.changed(STILL) == ""
        expected = min(2 * expected, LONGEST_INTERVAL)
    assert expected == LONGEST_INTERVAL


def test_a_change_is_a_factor_and_makes_the_interval_short_again() -> None:
    batches = after_first_look()
    little = {**STILL, "rate 0": STILL["rate 0"] * (THRESHOLD - 0.01)}
    batches.feed(INTERVAL_ROWS)
    assert batches.looked(little) == ""
    batches.feed(2 * INTERVAL_ROWS)
    assert (
        batches.looked({"rate 0": 14.0, "selectivity 0-1": 0.001}) == "rate 0 10 -> 14, selectivity 0-1 0.01 -> 0.001"
    )
    batches.feed(INTERVAL_ROWS)
    assert batches.looked({"rate 0": 14.0, "selectivity 0-1": 0.001}) == ""


def test_slow_drift_adds_up() -> None:
    """It is compared with what was known when a plan was last looked for, not with the last look."""
    batches = after_first_look()
    batches.feed(INTERVAL_ROWS)
    assert batches.looked({**STILL, "rate 0": 12.0}) == ""
    batches.feed(2 * INTERVAL_ROWS)
    assert batches.looked({**STILL, "rate 0": 14.4}) == "rate 0 10 -> 14.4"


def test_memory_near_its_limit_does_not_wait_for_the_grown_interval() -> None:
    batches = after_first_look()
    batches.feed(INTERVAL_ROWS)
    assert batches.looked() == ""
    batches.feed(INTERVAL_ROWS, Usage(0.0, int(NEAR * 1000), 1000))
    assert batches.timing.due() is None
    batches.feed(1, Usage(0.0, int(NEAR * 1000) + 1, 1000))
    assert batches.timing.due() == "memory is near its limit"
    batches.timing.changed(STILL)
    batches.feed(1, Usage(0.0, 999, 1000))
    assert batches.timing.due() is None, "not before an interval has passed"


def test_cpu_above_its_limit_for_a_whole_window() -> None:
    batches = after_first_look()
    batches.feed(INTERVAL_ROWS)
    assert batches.looked() == ""
    for _ in range(2):
        batches.feed(INTERVAL_ROWS // 2, Usage(9.0, 0, None, 0.5))
        assert batches.timing.due() is None
    batches.feed(1, Usage(9.0, 0, None, 0.5))
    assert batches.timing.due() == "more CPU than its limit for a whole window"
    for _ in range(20):
        batches.feed(0, Usage(0.0, 0, None, 0.5))
    assert batches.timing.due() is None, "it has come down again"


def test_cpu_is_per_second_of_event_time() -> None:
    """What was spent in batches that moved no time counts when it moves."""
    batches = Batches()
    batches.feed(1)
    batches.timing.passed(batches.second * 1_000_000, 1, Usage(1.0, 0))
    batches.feed(1, Usage(1.0, 0), seconds=4)
    assert batches.timing.factors(0.25, 0.25, (1.0, 3.0)) == (2.0, 3.0), "nothing was said about building"
    assert Timing(1.0).factors(0.25, 0.25, (7.0, 8.0)) == batches.timing.factors(0.0, 0.0, (7.0, 8.0)) == (7.0, 8.0)


def test_probing_and_building_are_corrected_apart() -> None:
    batches = Batches()
    batches.feed(1)
    batches.feed(1, Usage(3.0, 0, building=1.0), seconds=4)
    assert batches.timing.factors(0.25, 1.0, (1.0, 1.0)) == (2.0, 0.25)


def test_saved_and_restored() -> None:
    batches = after_first_look()
    batches.feed(INTERVAL_ROWS, Usage(1.5, 950, 1000, 0.1))
    again = Timing(2.0)
    again.restore(json.loads(json.dumps(batches.timing.saved())))
    assert again.saved() == batches.timing.saved()
    assert again.due() == batches.timing.due() == "memory is near its limit"
    assert again.looked and again.started and again.changed(STILL) == ""
