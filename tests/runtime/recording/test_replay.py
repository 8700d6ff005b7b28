"""Replays keep the pace of the run, at any speed, and can be stopped."""

from __future__ import annotations

from eddyline.runtime.recording.replay import paced
from eddyline.testing.clock import ManualClock
from tests.support.events import RUN, sample


def test_events_come_in_the_pace_of_the_run() -> None:
    clock = ManualClock()
    begin, times = clock(), list[float]()
    for event in paced([RUN, sample(2), sample(3), sample(30)], 10.0, clock=clock, sleep=clock.advance):
        times.append(round(clock() - begin, 3))
        assert times[-1] >= event["t"] / 10
    assert times == [0.0, 0.2, 0.3, 3.0]


def test_a_replay_can_be_stopped_while_it_waits() -> None:
    clock = ManualClock()
    begin = clock()
    events = paced([RUN, sample(1000)], 1.0, lambda: clock() > begin + 5, clock, clock.advance)
    assert [event["type"] for event in events] == ["run"] and clock() < begin + 6
