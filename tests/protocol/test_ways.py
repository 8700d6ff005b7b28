"""The balancer moves groups by moving state or by parallel track, and leaves groups on a track alone."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eddyline.balance.decided import GroupMove, ended_tracks
from eddyline.balance.manager_state import ManagerState
from eddyline.balance.slot_map import SlotMap
from eddyline.balance.track import Track
from eddyline.balance.track_rules import check_tracks
from eddyline.balance.tuning import BalanceTuning
from eddyline.balance.way import BalanceMode
from eddyline.errors import InternalError
from eddyline.protocol.adapted import Adapted, AfterBatch, spilling_slots
from eddyline.protocol.balancer import Balancer
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.protocol.record import Record
from eddyline.protocol.ways import Ways, ways_of
from eddyline.spill.accounts import TABLE, Spillable
from tests.support.durable_world import World

GROUPS = 8
EVEN = SlotMap(2, GROUPS)


def records(slot_map: SlotMap, batch: int, arrived: float = 100.0, rows: int = 10_000) -> list[Record]:
    """Slot 0 has nine tenths of the CPU; an old row of a group on a track is in the sender too."""
    found = []
    for slot, cpu in enumerate((90.0, 10.0)):
        groups = np.flatnonzero((slot_map.places == slot) | (slot_map.senders == slot))
        table = np.array([(group, rows, 100 * rows, 10.0, 0, arrived) for group in groups], TABLE)
        found.append(
            Record(slot, cpu=cpu, rows_in=1000, newest={"a": batch * 10_000_000}, spillable=Spillable(table.tobytes()))
        )
    return found


class Job:
    """A balancer that sees the same load in every batch."""

    def __init__(self, mode: BalanceMode = "auto", window: float | None = 60.0, **load: Any) -> None:
        ticks = count(0.0, 100.0)
        self.balancer = Balancer(None, lambda: next(ticks), BalanceTuning(), ways=Ways(mode, window, "it must not"))
        self.map, self.state, self.load, self.batches = EVEN, ManagerState(), load, 0
        self.reports: list[Any] = []
        decide = self.balancer._manager.decide

        def seen(state: Any, slot_map: SlotMap, reports: Any, *rest: Any) -> Any:
            self.reports = list(reports)
            self.stay = rest[2]
            return decide(state, slot_map, reports, *rest)

        self.balancer._manager.decide = seen  # type: ignore[method-assign]

    def batch(self) -> list[Any]:
        told = AfterBatch(Ledger(), records(self.map, self.batches, **self.load))
        found = self.balancer(Adapted(Moves(), self.map, self.state), told)
        self.map, self.state, self.batches = found.slot_map.begun(1, {"a": 0}), found.balance, self.batches + 1
        return self.balancer.decisions()

    def until_groups_move(self) -> Any:
        for _ in range(20):
            for decision in self.batch():
                if decision.kind == "move":
                    return decision
        raise AssertionError("no group moves")


def test_much_state_and_few_rows_move_by_parallel_track() -> None:
    job = Job()
    decision = job.until_groups_move()
    assert " from slot 0 to slot 1 by parallel track, for cpu" in decision.what
    assert "; by parallel track: opening " in decision.why and " would be taken in twice" in decision.why
    (track,) = job.map.tracks
    assert track.sender == 0 and (job.map.places[list(track.groups)] == 1).all()


def test_many_rows_and_little_state_move_at_once() -> None:
    job = Job(arrived=100_000.0)
    decision = job.until_groups_move()
    assert " by moving state, for cpu" in decision.what and not job.map.tracks
    assert job.map != EVEN


@pytest.mark.parametrize(
    ("mode", "window", "arrived", "way", "why"),
    [
        ("moving-state", 60.0, 1.0, "moving state", "balance=moving-state"),
        ("parallel-track", 60.0, 1e6, "parallel track", "balance=parallel-track"),
        ("parallel-track", None, 1.0, "moving state", "it must not"),
        ("auto", None, 1.0, "moving state", "it must not"),
    ],
)
def test_the_setting_and_the_query_decide(
    mode: BalanceMode, window: float | None, arrived: float, way: str, why: str
) -> None:
    decision = Job(mode, window, arrived=arrived).until_groups_move()
    assert f" by {way}, for cpu" in decision.what and decision.why.endswith(f"; by {way}: {why}")


def test_groups_on_a_track_stay_and_are_reported_by_the_receiver() -> None:
    job = Job()
    job.until_groups_move()
    (track,) = job.map.tracks
    job.batch()
    assert job.stay == set(track.groups)
    sender, receiver = ({*report.table["group"].tolist()} for report in job.reports)
    assert not sender & {*track.groups} and {*track.groups} <= receiver


def test_the_trial_of_a_move_begins_when_its_track_is_over() -> None:
    job = Job()
    job.until_groups_move()
    before, trial = job.map, BalanceTuning().trial_batches
    for _ in range(3 * trial):
        assert not [d for d in job.batch() if d.kind in ("balance", "undo-move", "move")]
        assert job.map == before and job.state.watched
    job.map = job.map.ended(job.map.tracks[0].groups)
    verdicts = [d.what for _ in range(trial) for d in job.batch() if d.kind == "balance"]
    assert len(verdicts) == 1 and "did not pay" in verdicts[0]


def test_the_end_of_a_track_is_a_decision() -> None:
    before = EVEN.tracked([0, 1], to=1).tracked([7], to=0).begun(3, {})
    (decision,) = ended_tracks(before, before.ended([0, 1]))
    assert decision.kind == "track-over" and decision.measured == {"groups": 2.0} and decision.why
    assert decision.what == "the parallel track of 2 groups from slot 0 to slot 1 is over"
    assert ended_tracks(before, before) == []


@pytest.mark.parametrize(
    ("windows", "window", "refusal"),
    [
        (("RANGE 20 SECONDS", "RANGE 30 SECONDS"), 30.0, ""),
        (("RANGE 20 SECONDS", "UNBOUNDED"), None, "a parallel track would never end: rows of b do not expire"),
        (("ROWS 3", "RANGE 20 SECONDS"), None, "rows of a query with a ROWS window wait to be counted"),
    ],
)
def test_the_windows_say_how_long_a_track_takes(
    windows: tuple[str, str], window: float | None, refusal: str, tmp_path: Path
) -> None:
    home = World(tmp_path, windows=windows, slots=3, groups=GROUPS, balance="parallel-track").home
    ways = ways_of(home)
    move = GroupMove((0,), 0, 1, "cpu", 1.0, "")
    chosen = ways.choose(move, records(EVEN, 0))
    assert chosen.way == ("moving-state" if refusal else "parallel-track")
    assert chosen.why == (refusal or "balance=parallel-track") and ways._window == window


def test_a_move_for_memory_never_makes_a_track() -> None:
    ways = Ways("parallel-track", 60.0)
    chosen = ways.choose(GroupMove((0,), 0, 1, "memory", 1.0, ""), records(EVEN, 0))
    assert (chosen.way, chosen.why) == ("moving-state", "memory must be free soon")


def test_the_sender_of_a_track_spills_with_the_group() -> None:
    assert spilling_slots(Moves(leave=(0,)), SlotMap(3, 6).tracked([0], to=1)).tolist() == [True, True, False]


def test_slot_maps_with_tracks_refuse_to_exist_wrong() -> None:
    both = EVEN.tracked([0, 1], to=1)
    with pytest.raises(ValueError, match="on two tracks"):
        both.tracked([0], to=0)
    with pytest.raises(ValueError, match="not from one slot to another"):
        EVEN.tracked([0], to=0)
    with pytest.raises(ValueError, match="a track of 0 groups"):
        Track((), 0)


def test_what_slots_have_while_a_track_lasts() -> None:
    both = EVEN.tracked([0, 1], to=1).begun(5, {"a": 7})
    never = np.iinfo(np.int64).max
    assert both.since(0).tolist() == [0, 0, 0, 0, never, never, never, never]
    assert both.since(1).tolist() == [5, 5, never, never, 0, 0, 0, 0]
    assert both.as_of(4) == EVEN and both.as_of(5) is both
    assert both.begun(6, {}) == both, "a track begins once"
    assert both.ended([0]).since(1).tolist() == [0, 5, never, never, 0, 0, 0, 0]
    assert both.moved([0, 1], to=0) == EVEN


def test_a_track_goes_on_as_it_is() -> None:
    both = EVEN.tracked([0, 1], to=1).begun(5, {})
    for after in (both, both.ended([0]), both.moved([1], to=0), both.tracked([7], to=0).begun(6, {})):
        check_tracks(both, after, 6)
    for after in (SlotMap.of(2, both.places, (Track((0, 1), 0, 4),)), EVEN.tracked([2], to=1).begun(5, {})):
        with pytest.raises(InternalError, match="a parallel track changes"):
            check_tracks(both, after, 6)
