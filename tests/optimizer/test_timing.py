"""When it is time to look for a plan."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pytest

from eddyline.codec import packed, unpacked
from eddyline.optimizer.pressure import Pressure
from eddyline.optimizer.timing import GLANCE, Timing, TimingSnapshot, Usage
from eddyline.optimizer.trend import Trend
from eddyline.optimizer.tuning import DEFAULT as TUNING

IDLE = Usage(0.0, 0)
STILL = {"rate 0": 10.0, "selectivity 0-1": 0.01}


class Batches:
    """Batches of a second of event time each."""

    def __init__(self, longest: float = 2.0, when: str = "auto") -> None:
        self.timing, self.second = Timing(longest, when), 0

    def feed(self, rows: int, usage: Usage = IDLE, seconds: int = 1) -> float:
        self.second += seconds
        return self.timing.passed(self.second * 1_000_000, rows, usage)

    def looked(self, figures: Mapping[str, float] = STILL) -> str:
        assert self.timing.due()
        return self.timing.changed(figures)


def after_first_look(when: str = "auto") -> Batches:
    batches = Batches(when=when)
    for _ in range(4):
        batches.feed(TUNING.first_rows)
    assert bool(batches.timing.due()) == (when in ("auto", "data"))
    assert batches.timing.changed(STILL) == "the first look for a better plan"
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
        batches.feed(TUNING.first_rows)
        assert batches.timing.due() is None, "no whole window yet"
    batches.feed(1)
    assert batches.timing.due() == "enough rows have been seen"
    few = Batches()
    for _ in range(5):
        few.feed(TUNING.first_rows // 5 - 1)
    assert few.timing.due() is None and not few.timing.looked
    few.feed(5)
    assert few.looked() == "the first look for a better plan" and few.timing.looked


def test_the_next_look_is_an_interval_later_which_grows_while_nothing_changes() -> None:
    batches, expected = after_first_look(), 1
    for _ in range(9):
        for _ in range(expected - 1):
            batches.feed(TUNING.interval_rows)
            assert batches.timing.due() is None
        batches.feed(TUNING.interval_rows - 1)
        assert batches.timing.due() is None
        batches.feed(1)
        assert batches.timing.due() == "an interval has passed"
        assert batches.timing.changed(STILL) == ""
        expected = min(2 * expected, TUNING.longest_interval)
    assert expected == TUNING.longest_interval


def test_a_change_is_a_factor_and_makes_the_interval_short_again() -> None:
    batches = after_first_look()
    little = {**STILL, "rate 0": STILL["rate 0"] * (TUNING.threshold - 0.01)}
    batches.feed(TUNING.interval_rows)
    assert batches.looked(little) == ""
    batches.feed(2 * TUNING.interval_rows)
    assert (
        batches.looked({"rate 0": 14.0, "selectivity 0-1": 0.001}) == "rate 0 10 -> 14, selectivity 0-1 0.01 -> 0.001"
    )
    batches.feed(TUNING.interval_rows)
    assert batches.looked({"rate 0": 14.0, "selectivity 0-1": 0.001}) == ""


def test_other_cpu_makes_the_interval_short_again() -> None:
    """The CPU is known anyway; only a look finds out whether statistics have changed."""
    batches, steady = after_first_look(), Usage(0.1, 0)
    for _ in range(4):
        while not batches.timing.due():
            batches.feed(TUNING.interval_rows // 2, steady)
        assert batches.looked() == ""
    batches.feed(TUNING.interval_rows // 2, steady)
    assert batches.timing.due() is None
    while batches.timing.cpu < TUNING.threshold * 0.1:
        batches.feed(1, Usage(0.2, 0))
    batches.feed(TUNING.interval_rows // 2, Usage(0.2, 0))
    assert batches.timing.due() == "an interval has passed"


def test_slow_drift_adds_up() -> None:
    """Statistics are compared with those of the last change, not with those of the last look."""
    batches = after_first_look()
    batches.feed(TUNING.interval_rows)
    assert batches.looked({**STILL, "rate 0": 12.0}) == ""
    batches.feed(2 * TUNING.interval_rows)
    assert batches.looked({**STILL, "rate 0": 14.4}) == "rate 0 10 -> 14.4"


def test_memory_near_its_limit_does_not_wait_for_the_grown_interval() -> None:
    batches = after_first_look()
    batches.feed(TUNING.interval_rows)
    assert batches.looked() == ""
    batches.feed(TUNING.interval_rows, Usage(0.0, int(TUNING.near * 1000), 1000))
    assert batches.timing.due() is None
    batches.feed(1, Usage(0.0, int(TUNING.near * 1000) + 1, 1000))
    assert batches.timing.due() == "memory is near its limit"
    batches.timing.changed(STILL)
    batches.feed(1, Usage(0.0, 999, 1000))
    assert batches.timing.due() is None, "not before an interval has passed"


def test_cpu_above_its_limit_for_a_whole_window() -> None:
    batches = after_first_look()
    batches.feed(TUNING.interval_rows)
    assert batches.looked() == ""
    for _ in range(2):
        batches.feed(TUNING.interval_rows // 2, Usage(9.0, 0, None, 0.5))
        assert batches.timing.due() is None
    batches.feed(1, Usage(9.0, 0, None, 0.5))
    assert batches.timing.due() == "more CPU than its limit for a whole window"
    for _ in range(20):
        batches.feed(0, Usage(0.0, 0, None, 0.5))
    assert batches.timing.due() is None, "CPU is below its limit again"


NEAR_USAGE, OVER = Usage(0.0, 999, 1000), Usage(9.0, 0, None, 0.5)
MEMORY, CPU = "memory is near its limit", "more CPU than its limit for a whole window"
INPUT, INSIDE = "input queues grow steadily", "queues inside the plan grow steadily"


def growing(batches: Batches, rows: bool = False, between: bool = False) -> str | None:
    """Let a queue grow long enough to be a trend; returns the reason why it is time to look."""
    for n in range(TUNING.trend_parts * TUNING.trend_batches):
        size = round(1000 * TUNING.grows ** (n / 2 if rows or between else 0))
        batches.feed(TUNING.first_rows + size * rows, Usage(0.0, 0, between=size if between else 0))
    return batches.timing.due()


@pytest.mark.parametrize(
    ("when", "pressed"),
    [("data", ()), ("memory", (MEMORY, INPUT)), ("refined", (MEMORY, CPU, INPUT, INSIDE)),
     ("auto", (MEMORY, CPU, INPUT, INSIDE))],
)  # fmt: skip
def test_what_asks_for_a_plan(when: str, pressed: tuple[str, ...]) -> None:
    """Before the first look; without pressure, only data-driven timing looks."""

    def due(usage: Usage) -> str | None:
        batches = Batches(when=when)
        for _ in range(8):
            batches.feed(TUNING.first_rows, usage)
        return batches.timing.due()

    quiet = "enough rows have been seen" if when in ("data", "auto") else None
    assert due(IDLE) == quiet
    assert due(NEAR_USAGE) == (MEMORY if MEMORY in pressed else quiet)
    assert due(OVER) == (CPU if CPU in pressed else quiet)
    grown = Batches(when=when)
    for n in range(TUNING.trend_parts * TUNING.trend_batches):
        grown.feed(round(TUNING.first_rows * TUNING.grows**n))
    assert grown.timing.due() == (INPUT if INPUT in pressed else quiet)
    assert growing(Batches(when=when), between=True) == (INSIDE if INSIDE in pressed else quiet)


def overloaded(batches: Batches, backlog: bool) -> str | None:
    """Batches that become smaller, as they do under overload; with a `backlog` that grows in the sources."""
    each = TUNING.interval_rows
    for n in range(TUNING.trend_parts * TUNING.trend_batches):
        waiting = 30 * each * (n + 1) if backlog else 0
        batches.feed(each - each // 20 * n, Usage(0.0, 0, pressure=Pressure(waiting)))
    return batches.timing.due()


@pytest.mark.parametrize("when", ["memory", "refined"])
def test_a_backlog_that_grows_is_an_input_queue_that_grows(when: str) -> None:
    assert overloaded(after_first_look(when), backlog=True) == INPUT
    assert overloaded(after_first_look(when), backlog=False) is None, "rows alone do not show it"
    shrinking = after_first_look(when)
    for n in range(TUNING.trend_parts * TUNING.trend_batches):
        rows = TUNING.interval_rows + 10_000 * n  # batches that grow while a backlog is worked off
        shrinking.feed(rows, Usage(0.0, 0, pressure=Pressure(100_000_000 - n * 1_000_000)))
    assert shrinking.timing.due() is None


LATE = Usage(0.0, 0, pressure=Pressure(1000, 9.0))
SLOW = "batches were too long for a whole window, and rows wait in the sources"


@pytest.mark.parametrize(("when", "why"), [("memory", None), ("refined", SLOW)])
def test_batches_that_are_too_long(when: str, why: str | None) -> None:
    batches = after_first_look(when)
    late = Usage(0.0, 0, pressure=Pressure(1000, TUNING.busy + 0.1))
    for _ in range(2):
        batches.feed(TUNING.interval_rows, late)
        assert batches.timing.due() is None, "not for a whole window"
    batches.feed(TUNING.interval_rows, late)
    assert batches.timing.due() == why
    batches.feed(TUNING.interval_rows, Usage(0.0, 0, pressure=Pressure(1000, TUNING.busy)))
    assert batches.timing.due() is None, "one batch was quick enough"
    for _ in range(4):
        batches.feed(TUNING.interval_rows, Usage(0.0, 0, pressure=Pressure(0, 9.0)))
    assert batches.timing.due() is None, "no row waits"


def test_a_trend_is_no_jump_and_holds_for_long_enough() -> None:
    steady = [100.0 * TUNING.grows**n for n in range(TUNING.trend_parts * TUNING.trend_batches)]
    assert Trend(steady).steady and not Trend(steady[1:]).steady
    for at in range(TUNING.trend_parts * TUNING.trend_batches + 1):
        assert not Trend([10.0] * at + [50.0] * (TUNING.trend_parts * TUNING.trend_batches - at)).steady, (
            f"a jump at {at}"
        )
    assert (
        not Trend([10.0, 12.0, 11.0] * TUNING.trend_parts).steady
        and not Trend([0.0] * TUNING.trend_parts * TUNING.trend_batches).steady
    )
    trend = Trend(steady)
    trend.add(0.0)
    assert len(trend.sizes) == TUNING.trend_parts * TUNING.trend_batches and not trend.steady


def test_a_trend_counts_once() -> None:
    batches = after_first_look()
    batches.feed(TUNING.interval_rows)
    assert batches.looked() == ""
    assert growing(batches, between=True) == INSIDE
    batches.timing.changed(STILL)
    batches.feed(TUNING.interval_rows, Usage(0.0, 0, between=10**9))
    assert batches.timing.pressing is None


@pytest.mark.parametrize(("usage", "why"), [(NEAR_USAGE, MEMORY), (OVER, CPU), (LATE, SLOW)])
def test_a_pressing_reason_that_finds_no_change_counts_less_and_less_often(usage: Usage, why: str) -> None:
    batches, heard = after_first_look("refined"), []
    for n in range(300):
        batches.feed(TUNING.interval_rows, usage)
        if batches.timing.due() is not None:
            assert batches.timing.due() == why
            heard.append(n)
            assert batches.timing.changed(STILL) == ""
    gaps = [b - a for a, b in pairwise(heard)]
    assert gaps == [2, 4, 8, 16, 32, 64, 64, 64][: len(gaps)] and len(gaps) >= 7
    for _ in range(30):
        batches.feed(0, Usage(0.0, 0, 1000, 0.5))
    for _ in range(3):
        batches.feed(TUNING.interval_rows, usage)
    assert batches.timing.due() == why, "after a calm window the reason counts at once again"


def test_pressure_that_comes_and_goes_does_not_begin_anew() -> None:
    """A calm period of less than a window does not count."""
    batches, heard = after_first_look("memory"), 0
    for n in range(64):
        batches.feed(TUNING.interval_rows, NEAR_USAGE if n % 2 else IDLE)
        if batches.timing.due():
            heard += 1
            batches.timing.changed(STILL)
    assert 3 <= heard <= 6


def test_after_a_change_a_pressing_reason_counts_at_once_again() -> None:
    batches = after_first_look("memory")
    for _ in range(10):
        batches.feed(TUNING.interval_rows, NEAR_USAGE)
        if batches.timing.due():
            batches.timing.changed(STILL)
    batches.feed(20 * TUNING.interval_rows, NEAR_USAGE)
    assert batches.looked({**STILL, "rate 0": 100.0})
    batches.feed(TUNING.interval_rows, NEAR_USAGE)
    assert batches.timing.due() == MEMORY


def test_glances_at_the_library_grow_apart_while_nothing_comes_of_them() -> None:
    batches, glances = after_first_look(), []
    for n in range(1, 200):
        batches.feed(TUNING.interval_rows)
        if batches.timing.due(library=True) == GLANCE:
            glances.append(n)
            batches.timing.glanced()
        elif batches.timing.due():
            assert batches.looked() == ""
    gaps = [b - a for a, b in pairwise(glances)]
    assert max(gaps[-8:]) <= 2 * TUNING.longest_glance and gaps.count(TUNING.longest_glance) >= 8
    assert len(glances) < 200 / TUNING.longest_glance + 5


def test_a_glance_changes_nothing_about_looks() -> None:
    batches = after_first_look()
    batches.feed(TUNING.interval_rows)
    assert batches.looked() == ""
    batches.feed(TUNING.interval_rows)
    assert batches.timing.due() is None and batches.timing.due(library=True) == GLANCE
    batches.timing.glanced()
    assert batches.timing.due(library=True) is None
    batches.feed(TUNING.interval_rows)
    assert batches.timing.due(library=True) == "an interval has passed", "the grown interval, as without the library"
    memory = after_first_look()
    memory.timing = Timing(2.0, "memory")
    memory.timing.restore(batches.timing.saved())
    assert memory.timing.due(library=True) is None


def test_what_differs_is_not_a_look() -> None:
    batches = after_first_look()
    batches.feed(TUNING.interval_rows)
    assert (
        batches.timing.differs({**STILL, "rate 0": 20.0}) == "rate 0 10 -> 20" and batches.timing.differs(STILL) == ""
    )
    assert batches.looked({**STILL, "rate 0": 20.0}) == "rate 0 10 -> 20"


def test_a_new_plan_is_judged_by_what_it_takes_itself() -> None:
    batches = after_first_look()
    for _ in range(5):
        batches.feed(TUNING.interval_rows, OVER)
    assert batches.timing.due() == CPU and batches.timing.cpu > 5.0
    batches.timing.changed(STILL)
    batches.timing.new_plan()
    assert batches.timing.cpu == 0.0 and batches.timing.factor(1.0, 3.0) == 3.0
    batches.feed(TUNING.interval_rows, Usage(0.25, 0, None, 0.5))
    assert batches.timing.cpu == 0.25 and batches.timing.pressing is None


def test_selections_have_a_price_of_their_own() -> None:
    batches = Batches()
    batches.feed(1)
    batches.feed(1, Usage(8.0, 0, selecting=4.0), seconds=1)
    assert batches.timing.factor(1.0, 9.0) == 4.0 and batches.timing.cpu == 8.0


def test_cpu_is_per_second_of_event_time() -> None:
    """CPU of batches that did not advance event time counts when it advances."""
    batches = Batches()
    batches.feed(1)
    batches.timing.passed(batches.second * 1_000_000, 1, Usage(1.0, 0))
    batches.feed(1, Usage(1.0, 0), seconds=4)
    assert batches.timing.factor(0.25, 1.0) == 2.0
    assert Timing(1.0).factor(0.25, 7.0) == batches.timing.factor(0.0, 7.0) == 7.0, "no measurement or no prediction"


def test_how_long_statistics_stay_what_they_are() -> None:
    """As long as they have been stable; after a change, at least as long as they were stable before it."""
    batches = after_first_look()
    assert batches.timing.changes == 1 and batches.timing.stable == batches.timing.seconds == 3.0
    batches.feed(TUNING.interval_rows, seconds=5)
    assert batches.looked() == "" and batches.timing.stable == 5.0
    batches.feed(2 * TUNING.interval_rows, seconds=2)
    assert batches.looked({**STILL, "rate 0": 20.0}) and batches.timing.changes == 2
    assert batches.timing.stable == 7.0
    batches.feed(1, seconds=8)
    assert batches.timing.stable == 8.0


def test_saved_and_restored() -> None:
    batches = after_first_look()
    batches.feed(TUNING.interval_rows, Usage(1.5, 950, 1000, 0.1))
    again = Timing(2.0)
    again.restore(unpacked(packed(batches.timing.saved()), TimingSnapshot))
    assert again.saved() == batches.timing.saved()
    assert again.due() == batches.timing.due() == "memory is near its limit"
    assert again.looked and again.started and again.changed(STILL) == ""
