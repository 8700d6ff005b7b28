from __future__ import annotations

from time import thread_time

import pytest

from eddyline.optimizer.calibrate_call import calibrate_call
from eddyline.routing.tuning import DEFAULT
from eddyline.state.stem import SteM
from eddyline.testing.clock import ManualClock


def test_a_call_costs_microseconds() -> None:
    assert 1e-7 < calibrate_call(thread_time) < 1e-2


def test_a_clock_that_shows_nothing_leaves_the_default() -> None:
    assert calibrate_call(ManualClock()) == DEFAULT.call


def test_only_the_number_of_calls_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build costs a second, and a millisecond for each of its rows; half of the calls are builds."""
    clock, build = ManualClock(), SteM.build

    def slow(self: SteM, number: int, rows: int) -> tuple[int, int]:
        clock.advance(1.0 + rows / 1000)
        return build(self, number, rows)

    monkeypatch.setattr(SteM, "build", slow)
    assert calibrate_call(clock) == pytest.approx(0.5, rel=0.01)
