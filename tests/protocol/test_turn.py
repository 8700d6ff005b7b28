"""A slot's turn begins with the state of the commit, whatever other attempts did before."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from eddyline import faults
from eddyline.engine.watermarks import Silence, Watermarks
from eddyline.errors import JobError
from eddyline.optimizer.pressure import Pressure
from eddyline.plan.bounds import FOREVER
from eddyline.plan.plan import Plan
from eddyline.protocol import restoring
from eddyline.protocol import turn as module
from eddyline.protocol.home import horizon
from eddyline.protocol.ledger import Moves
from eddyline.protocol.outlet import RESULTS, Outlet
from eddyline.testing.clock import ManualClock
from tests.support.durable_world import Row, World

ONE, TWO, THREE = [(1, 1)], [(2, 1)], [(3, 1)]


def pairs(world: World) -> list[tuple[int, int]]:
    return [(a.microsecond, b.microsecond) for a, b, _ in world.results]  # type: ignore[attr-defined]


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The versions that were rebuilt from the log."""
    found: list[int] = []
    original = restoring.restore

    def restore(home: module.Home, slot: module.Slot, number: int, version: int, *moved: Any) -> bool:
        found.append(version)
        return original(home, slot, number, version, *moved)

    monkeypatch.setattr(restoring, "restore", restore)
    return found


@pytest.mark.parametrize("host", ["host", None])
def test_state_is_taken_up_where_it_was_left(host: str | None, tmp_path: Path, restored: list[int]) -> None:
    world = World(tmp_path, host=host)
    world.batch(a=ONE)
    world.batch(b=TWO)
    world.batch(a=THREE)
    assert pairs(world) == [(1, 2), (3, 2)] and restored == [0]


def test_a_turn_is_taken_again(tmp_path: Path, restored: list[int]) -> None:
    world = World(tmp_path)
    world.batch(a=ONE)
    decision = world.begin()
    world.turn(decision, b=TWO)
    done = world.turn(decision, b=TWO).record
    world.coordinator.finish(decision, [done])
    world.batch(a=THREE)
    assert pairs(world) == [(1, 2), (3, 2)] and restored == [0]


def test_a_record_says_whether_the_state_was_rebuilt(tmp_path: Path) -> None:
    world = World(tmp_path, host="one")
    world.batch()
    decision = world.begin()
    assert not world.turn(decision, a=ONE).record.rebuilt, "there was nothing to rebuild"
    done = world.turn(decision, a=ONE).record
    assert not done.rebuilt
    world.coordinator.finish(decision, [done])
    there = World(tmp_path, host="two", sink=world.sink)
    assert there.turn(there.begin(), b=TWO).record.rebuilt


def test_the_optimizer_of_a_slot_learns_of_the_pressure(tmp_path: Path) -> None:
    world = World(tmp_path, host=None)
    decision = world.coordinator.begin(0, "rows", 0, pressure=Pressure(70, 1.5))
    assert decision is not None
    world.turn(decision, a=ONE)
    assert world.home.keeper.open(0).pressure == Pressure(70, 1.5)


def test_rows_that_the_batch_itself_leaves_behind_expire_with_it(tmp_path: Path, restored: list[int]) -> None:
    world = World(tmp_path, host=None)
    decision, many = world.begin(), [(time, time) for time in range(1, 101)]
    world.turn(decision, a=many, b=many)
    slot = world.home.keeper.open(0)
    assert [slot.executor.stems[s].rows.times.values[slot.executor.stems[s].rows.min_live] for s in (0, 1)] == [80, 80]
    world.home.keeper.leave(0, slot)
    world.coordinator.finish(
        decision, [world.turn(decision, a=many, b=many).record]
    )  # wound back: they are there again
    world.batch(a=[(101, 100), (101, 79)])
    assert pairs(world) == [(time, time) for time in range(1, 101)] + [(101, 100)] and restored == [0]


def test_the_oldest_rows_come_first_whichever_task_had_them(tmp_path: Path) -> None:
    world = World(tmp_path, host=None)
    decision = world.begin()
    tasks = [world.parcels(decision, a=[(time, 1)], b=[(time, 2)])[0] for time in (3, 1, 2)]
    module.take_turn(world.home, decision, 0, "one", [parcel for task in tasks for parcel in task])
    slot = world.home.keeper.open(0)
    assert [list(slot.executor.stems[s].rows.times.values[:3]) for s in (0, 1)] == [[1, 2, 3], [1, 2, 3]]


def test_lost_state_is_made_again(tmp_path: Path, restored: list[int]) -> None:
    world = World(tmp_path, host="one")
    world.batch(a=ONE)
    world = World(tmp_path, host="two", sink=world.sink)
    world.batch(b=TWO)
    world = World(tmp_path, host="one", sink=world.sink)
    world.batch(a=THREE)
    assert pairs(world) == [(1, 2), (3, 2)] and restored == [0, 1, 2]


@pytest.mark.parametrize(("kind", "rows"), [("rows", [(2, 1), (2, 1)]), ("rows", []), ("end", [])])
def test_state_of_an_attempt_with_other_rows_is_not_taken(
    kind: str, rows: list[Row], tmp_path: Path, restored: list[int]
) -> None:
    """Batch 1 is begun on one host, with other rows or as the end, and fails; another host finishes it. The first host
    must not continue with its own state."""
    one = World(tmp_path, host="one")
    one.batch(a=ONE)
    one.turn(one.begin(kind, offsets="false"), b=rows)
    other = World(tmp_path, host="two", sink=one.sink)
    other.batch(b=TWO)
    one = World(tmp_path, host="one", sink=one.sink)
    one.batch(a=THREE)
    assert pairs(one) == [(1, 2), (3, 2)] and restored == [0, 1, 2]


def test_state_of_a_checkpoint_that_was_deleted_is_not_taken(tmp_path: Path) -> None:
    old = World(tmp_path)
    old.batch(a=ONE)
    for file in sorted((tmp_path / "checkpoint").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    elsewhere = World(tmp_path, host="two")
    elsewhere.batch(a=[(1, 7)])
    new = World(tmp_path, sink=elsewhere.sink)
    new.batch(b=[(2, 1), (2, 7)])
    assert [k for _, _, k in new.results] == [7]


def test_a_zombie_does_no_harm(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.batch(a=ONE)
    decision = world.begin()
    world.coordinator.finish(decision, [world.turn(decision, b=TWO).record])
    world.turn(decision, b=TWO)
    world.batch(a=THREE)
    with pytest.raises(JobError, match=r"the checkpoint is damaged: commits/.* is missing"):
        world.turn(decision, b=TWO)  # the files that it began with are deleted
    world.batch(a=[(4, 1)])
    assert pairs(world) == [(1, 2), (3, 2), (4, 2)]


@pytest.mark.parametrize(
    "where", ["turn: results are there", "arena: before the header is written", "arena: the header is taken"]
)
def test_a_turn_that_fails_leaves_no_state_and_no_lock(where: str, tmp_path: Path, restored: list[int]) -> None:
    def fail(point: str) -> None:
        if point == where:
            raise MemoryError

    world = World(tmp_path)
    world.batch(a=ONE)
    decision = world.begin()
    faults.inject(fail)
    try:
        with pytest.raises(MemoryError):
            world.turn(decision, b=TWO)
    finally:
        faults.inject(None)
    world.batch(b=TWO)
    assert pairs(world) == [(1, 2)] and restored[-1] == 1


@pytest.mark.parametrize("windows", [("RANGE 20 MICROSECONDS", "ROWS 3"), ("ROWS 2", "ROWS 4")])
@pytest.mark.parametrize("then", [1, 2, 3])
def test_another_number_of_slots_goes_on(windows: tuple[str, str], then: int, tmp_path: Path) -> None:
    def world(slots: int, folder: str, before: World | None = None) -> World:
        sink = None if before is None else before.sink
        return World(tmp_path / folder, windows, slots=slots, host=None, sink=sink)

    rng = Random(then)
    batches = [
        {s: [(10 * i + rng.randrange(10), rng.randrange(3)) for _ in range(5)] + [(10 * i + 9, 0)] for s in "ab"}
        for i in range(8)
    ]
    plain, moving = world(1, "plain"), world(2, "moving")
    for i, batch in enumerate(batches):
        moving = world((2, then)[i % 2], "moving", moving)
        for each in (plain, moving):
            each.batch(**batch)  # type: ignore[arg-type]
    for each in (plain, moving):
        each.batch("end")
    assert plain.results == moving.results and len(plain.results) > 20


# What is needed of the log


def test_the_log_of_rows_windows_is_trimmed(tmp_path: Path) -> None:
    """The log has about a window of rows, and a slot that starts from it counts as if it had all rows."""
    whole, lossy = World(tmp_path / "a", ("ROWS 5", "ROWS 7")), World(tmp_path / "b", ("ROWS 5", "ROWS 7"))
    for batch in range(40):
        values = {"a": [(batch * 10 + i, i % 2) for i in range(2)], "b": [(batch * 10, 1), (batch * 10 + 1, 0)]}
        lossy = World(tmp_path / "b", ("ROWS 5", "ROWS 7"), host=f"host-{batch}", sink=lossy.sink)
        for world in (whole, lossy):
            world.batch(**values)  # type: ignore[arg-type]
            assert sum(file.rows for file in world.coordinator.commit.log) < 80
    assert whole.results == lossy.results and len(whole.results) > 150


@pytest.mark.parametrize("slots", [1, 3])
def test_of_a_long_batch_only_the_end_is_logged(slots: int, tmp_path: Path) -> None:
    """Rows that the next batch cannot join are not in the log, and a slot that starts from the log misses nothing. A
    stream that is behind keeps the rows of the others in the log."""
    random, whole, sink = Random(slots), World(tmp_path / "a", slots=slots), None
    for batch in range(6):
        start = batch * 400
        values: dict[str, list[Row]] = {
            stream: sorted((start + random.randrange(400 - behind), random.randrange(4)) for _ in range(200))
            for stream, behind in (("a", 0), ("b", 300 if batch == 3 else 0))
        }
        lossy = World(tmp_path / "b", host=f"host-{batch}", slots=slots, sink=sink)
        sink = lossy.sink
        for world in (whole, lossy):
            world.batch(**values)
            rows = sum(file.rows for file in world.coordinator.commit.log if int(file.name[4:12]) == batch)
            assert rows == 200 if batch == 3 else 10 < rows < 100  # in batch 3 all rows of a and none of b
    assert whole.results == lossy.results and len(whole.results) > 1000


def horizons(windows: tuple[str, str], watermark: int | None, counted: dict[int, int | None], path: Path) -> object:
    plan = Plan(World(path, windows).home.query)
    marks = Watermarks([s.stream for s in plan.query.sources])
    newest = {} if watermark is None else {"a": watermark, "b": watermark}
    marks.finish_batch(newest, ())
    return horizon(plan, marks, counted)


def test_rows_that_wait_or_may_be_counted_are_needed(tmp_path: Path) -> None:
    rows, range_ = "ROWS 2", "RANGE 20 MICROSECONDS"
    assert horizons((rows, rows), 100, {0: 80, 1: None}, tmp_path / "1") == {"a": 80, "b": -FOREVER}
    assert horizons((rows, range_), 100, {0: 80}, tmp_path / "2") == {"a": 80, "b": 80}
    assert horizons((rows, range_), None, {0: None}, tmp_path / "3") == {"a": -FOREVER, "b": -FOREVER}
    assert horizons((range_, range_), 100, {}, tmp_path / "4") == {"a": 80, "b": 80}


def test_records_say_what_was_done(tmp_path: Path) -> None:
    world = World(tmp_path, ("RANGE 20 MICROSECONDS", "ROWS 3"))
    world.batch(a=ONE, b=ONE)
    record = world.turn(world.begin(), a=[(0, 1), (2, 1)], b=TWO).record
    assert record.counts.rows_late == 1 and record.counts.rows_used == 2 and record.newest == {"a": 2, "b": 2}
    assert record.log is not None and record.log.rows == 2 and record.log.newest == {"a": 2, "b": 2}
    outlets = [some.outlet for some in record.staged]
    assert outlets == [Outlet("late", "a"), RESULTS]  # results of rows below the watermark after this batch
    assert record.small is not None and record.counted == {1: None}


@pytest.mark.parametrize("slots", [1, 3])
def test_what_a_batch_releases_leaves_with_it(slots: int, tmp_path: Path) -> None:
    """A result waits for a watermark only until rows move it, whichever slot has those rows."""
    world = World(tmp_path, ("ROWS 3", "ROWS 3"), slots=slots)
    world.batch(a=[(1, 1), (2, 2)], b=[(1, 1), (2, 2)])
    assert [row[2] for row in world.results] == [1]
    world.batch(a=[(9, 3)], b=[(9, 3)])
    assert sorted(row[2] for row in world.results) == [1, 2]


# Partition groups that move

SLIDE = ("RANGE 20 MICROSECONDS SLIDE 10 MICROSECONDS",) * 2
COUNTED = ("window_end() AS w", "a.k", "COUNT(*) AS n", "MAX(b.ts) AS m")


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_groups_on_disk_change_no_result(seed: int, grouped: bool, tmp_path: Path) -> None:
    """Groups leave and are swept, turns are taken twice, states are lost, and slots come and go."""
    rng, more = Random(seed), {"windows": SLIDE, "outputs": COUNTED, "keys": ("a.k",)} if grouped else {}
    plain, moving = World(tmp_path / "plain", **more), World(tmp_path / "moving", groups=4, **more)
    for batch in range(16):
        rows = {s: [(10 * batch + rng.randrange(10), rng.randrange(8)) for _ in range(6)] for s in "ab"}
        plain.batch(**rows)  # type: ignore[arg-type]
        if rng.random() < 0.3:
            where = {"host": f"host-{rng.randrange(2)}", "slots": rng.choice([1, 1, 3])}
            moving = World(tmp_path / "moving", groups=4, sink=moving.sink, **where, **more)
        if rng.random() < 0.3:  # a false start, with other rows or as the end
            false = moving.begin(rng.choice(["rows", "end"]), offsets="false")
            moving.turn(false, rng.randrange(false.slots), a=[(10 * batch, rng.randrange(8))])
        leave = tuple(group for group in range(4) if rng.random() < 0.4)
        sweep = tuple(group for group in range(4) if rng.random() < 0.3)
        moving.batch(then=Moves(leave, sweep), **rows)  # type: ignore[arg-type]
    for world in (plain, moving):
        world.batch("end")
    assert moving.results == plain.results and len(plain.results) > 20


@pytest.mark.parametrize("seed", range(4))
def test_streams_that_are_idle_or_end_while_groups_are_on_disk(seed: int, tmp_path: Path) -> None:
    """What is held back is how far slots had advanced, whichever streams had a say in that."""
    rng, clock, missing = Random(seed), ManualClock(), set[str]()

    def world(name: str, groups: int | None = None) -> World:
        return World(tmp_path / name, SLIDE, COUNTED, ["a.k"], silence=Silence("ab", 30.0, clock), groups=groups)

    plain, moving = world("plain"), world("moving", 4)
    for batch in range(24):
        clock.advance(20.0)
        if batch % 3 == 0 and batch < 18:
            missing = {rng.choice("ab")} if rng.random() < 0.5 else set()
        some = {
            s: [(10 * batch + rng.randrange(10), rng.randrange(6)) for _ in range(5)] for s in sorted({*"ab"} - missing)
        }
        ended = [*some][:1] if batch == 18 else []
        missing |= {*ended}
        moves = [tuple(group for group in range(4) if rng.random() < 0.4) for _ in range(2)]
        plain.batch(ended=ended, **some)  # type: ignore[arg-type]
        moving.batch(ended=ended, then=Moves(*moves), **some)  # type: ignore[arg-type]
    for each in (plain, moving):
        each.batch("end")
    assert moving.results == plain.results and len(plain.results) > 10
    assert moving.coordinator.commit.counts.streams == plain.coordinator.commit.counts.streams


@pytest.mark.parametrize(("times", "in_order"), [(2.0, False), (1.4, True)])
def test_rows_are_logged_in_the_order_of_groups_only_where_groups_may_leave_soon(
    times: float, in_order: bool, tmp_path: Path
) -> None:
    """A job with twice the memory that it needs does not pay for the order."""
    many: list[Row] = [(time, time % 97) for time in range(1, 2000)]

    def turn(world: World) -> module.Turn:
        return world.turn(world.begin(), a=many, b=many)

    size = turn(World(tmp_path / "any", groups=4)).record.held.bytes
    world = World(tmp_path / "limited", groups=4, memory=round(times * size))
    logged = turn(world).record.log
    assert logged is not None
    sections = [section for stream in "ab" for section in world.checkpoint.segment(logged.name).sections(stream)]
    assert len(sections) >= 2 and all((section.first is not None) == in_order for section in sections)


def held(world: World, slot: int = 0) -> list[int]:
    """The rows that a slot holds in memory, by source."""
    opened = world.home.keeper.open(slot)
    rows = [stem.held for stem in opened.executor.stems]
    world.home.keeper.leave(slot, opened)
    return rows


def test_a_state_that_is_made_again_has_no_row_that_is_on_disk(tmp_path: Path, restored: list[int]) -> None:
    world = World(tmp_path, host="one", groups=1)
    world.batch(a=[(1, 1), (1, 2)], b=[(1, 3)], then=Moves(leave=(0,)))
    world.batch(a=[(2, 1)])
    assert held(world) == [1, 0] and restored == [0]
    world = World(tmp_path, host="two", groups=1, sink=world.sink)
    world.batch(b=[(3, 2)], then=Moves(leave=(0,)))
    assert held(world) == [1, 1] and restored == [0, 2], "the row of time 2, and that of time 3"
    world = World(tmp_path, host="three", groups=1, sink=world.sink)
    world.batch(b=[(4, 1)], then=Moves(sweep=(0,)))
    assert held(world) == [0, 1] and restored == [0, 2, 3], "all that had come leaves at the beginning of this batch"
    assert pairs(world) == []
    world.batch()
    assert pairs(world) == [(1, 3), (1, 4), (2, 4)]


def test_rows_that_follow_are_made_again_without_those_on_disk(tmp_path: Path, restored: list[int]) -> None:
    """Rows of `a` lead, with group 0; those of `b` follow, with group 1."""
    world = World(tmp_path, host="one", groups=1, where="a.k < b.k")
    world.batch(a=[(1, 1)], b=[(1, 2)], then=Moves(leave=(1,)))
    world = World(tmp_path, host="two", groups=1, where="a.k < b.k", sink=world.sink)
    world.batch(a=[(2, 0)], b=[(2, 1)])
    assert held(world) == [2, 1] and restored == [0, 1] and pairs(world) == [(1, 1), (2, 2)]
    world = World(tmp_path, host="three", groups=1, where="a.k < b.k", sink=world.sink)
    world.batch(a=[(3, 1)], then=Moves(leave=(1,), sweep=(0,)))
    assert held(world) == [3, 1] and restored == [0, 1, 2] and pairs(world) == [(1, 1), (2, 2)]
    world = World(tmp_path, host="four", groups=1, where="a.k < b.k", sink=world.sink)
    world.batch()
    assert held(world) == [3, 0] and pairs(world) == [(1, 1), (2, 1), (2, 2), (3, 1)]


def test_a_turn_that_is_taken_again_sweeps_again(tmp_path: Path) -> None:
    world = World(tmp_path, groups=1)
    world.batch(a=ONE, then=Moves(leave=(0,)))
    world.batch(b=TWO, then=Moves(leave=(0,), sweep=(0,)))
    decision = world.begin()
    for _ in range(2):
        assert [some.outlet for some in world.turn(decision, a=THREE).record.staged] == [RESULTS]
    world.coordinator.finish(decision, [world.turn(decision, a=THREE).record])
    world.batch("end")
    assert pairs(world) == [(1, 2), (3, 2)]
