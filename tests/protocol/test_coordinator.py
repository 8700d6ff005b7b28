"""The coordinator goes from commit to commit, whatever the caller asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from eddyline.counts import Counts, StreamCounts
from eddyline.engine.plan_course import PlanCourse, Toward
from eddyline.engine.standing import StateSize
from eddyline.engine.tally import FilePlace, Span
from eddyline.engine.watermarks import Reached, Silence
from eddyline.errors import JobError
from eddyline.protocol.commit import LogFile
from eddyline.protocol.coordinator import least_counted, to_merge
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.protocol.log import EPOCH
from eddyline.protocol.outlet import RESULTS, Outlet, Staged
from eddyline.protocol.record import Record
from eddyline.spill.generations import Generations
from eddyline.state.tuning import DEFAULT
from eddyline.testing.clock import ManualClock
from lab.fuzz.simulation import leftovers
from tests.support.durable_world import World

MERGED = DEFAULT.merged_files


def test_a_batch_that_is_committed_is_not_run_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.batch(a=[(1, 1)], b=[(2, 1)])
    again = World(tmp_path, sink=world.sink)
    for coordinator in (world.coordinator, again.coordinator):
        assert coordinator.begin(0, "rows", [0]) is None
        assert coordinator.begin(0, "rows", (0,)) is None  # the form that JSON returns
        with pytest.raises(JobError, match="batch 0 cannot follow commit 0"):
            coordinator.begin(0, "rows", [1])
        with pytest.raises(JobError, match="batch 2 cannot follow commit 0"):
            coordinator.begin(2, "rows", [2])
        assert coordinator.begin(1, "rows", [1]) is not None


def test_every_slot_has_to_tell_once(tmp_path: Path) -> None:
    world = World(tmp_path, slots=2)
    decision = world.begin()
    records = [world.turn(decision, slot, a=[(1, 1)], b=[(1, 1)]).record for slot in (0, 1)]
    for some in ([], records[:1], [*records, records[0]]):
        with pytest.raises(JobError, match="not every slot returned its record"):
            world.coordinator.finish(decision, some)
    assert world.coordinator.finish(decision, records).rows_in == 2 and world.coordinator.commit.batch == 0


def test_watermarks_move_when_a_batch_is_committed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.batch(a=[(10, 1), (7, 1)], b=[(12, 1)])
    assert world.coordinator.commit.watermarks == Reached({"a": 10, "b": 12}, used=10)
    assert world.coordinator.commit.advanced.used == 10
    decision = world.batch(a=[(8, 1)], ended=["a"])
    assert decision.watermarks.used == 10
    commit = world.coordinator.commit
    assert commit.watermarks == Reached({"a": 10, "b": 12}, ended=("a",), used=12)
    assert commit.counts.rows_late == 1 and commit.counts.rows_in == 4 and commit.advanced.used == 12


def test_a_stream_that_is_idle_is_named_by_the_commit(tmp_path: Path) -> None:
    clock = ManualClock()

    def world() -> World:
        return World(tmp_path, silence=Silence("ab", 30.0, clock))

    first = world()
    first.batch("load")
    clock.advance(60.0)  # Spark took long to start
    first.batch(a=[(0, 1)])
    assert first.coordinator.commit.watermarks.idle == ()
    first.batch(b=[(0, 1)])
    for time in (10, 20, 30, 40):
        clock.advance(10.0)
        first.batch(a=[(time, 1)])
    assert first.coordinator.commit.watermarks == Reached({"a": 40, "b": 0}, idle=("b",), used=40)
    first.batch(a=[(41, 1)])
    slot = first.home.keeper.open(0)
    assert slot.state_rows == 3  # rows of a from 21 on: the next row of b has time 41 or more
    first.home.keeper.leave(0, slot)
    decision = first.begin()
    clock.advance(30.0)
    assert decision.quiet == ("b",) and first.begin().quiet == ("a", "b")
    assert first.begin().after != decision.after  # their states must not be mixed up
    later = world()  # a new run starts to wait again, and begins at the old watermark
    later.batch(b=[(39, 1), (40, 1)])
    commit = later.coordinator.commit
    assert commit.watermarks == Reached({"a": 41, "b": 40}, used=41)
    assert commit.counts.rows_late == 2


def test_results_of_a_batch_that_was_not_committed_are_forgotten(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.batch(a=[(1, 1)], b=[(1, 1)])
    world.sink.publish(1, {RESULTS: world.sink.stage(RESULTS, "x", world.sink.rows(RESULTS))})
    assert len(world.results) == 2
    assert len(World(tmp_path, sink=world.sink).results) == 1


def test_a_finished_job(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.batch(a=[(1, 1)], b=[(1, 1)])
    world.batch("end")
    assert world.coordinator.commit.finished and leftovers(str(tmp_path / "checkpoint")) == []
    again = World(tmp_path, sink=world.sink)
    assert again.coordinator.commit == world.coordinator.commit and len(again.results) == 1
    with pytest.raises(JobError, match="the job is finished"):
        again.coordinator.begin(2, "rows", [2])


def test_histories(tmp_path: Path) -> None:
    """The same decisions lead to the same history; any difference leads to another."""
    one, other = World(tmp_path / "one"), World(tmp_path / "other")
    first = one.begin()
    assert (first.before, first.after) == (one.checkpoint.history, one.begin().after)
    others = [one.begin("end"), one.begin(offsets=[1]), one.begin(ended=["a"]), other.begin()]
    assert len({first.before, first.after, *(decision.after for decision in others)}) == 6
    one.batch(a=[(1, 1)])
    assert one.coordinator.commit.history == first.after == World(tmp_path / "one").begin().before


def test_records_travel_as_bytes() -> None:
    record = Record(
        slot=1,
        counts=Counts({"a": StreamCounts(used=2, reason="no")}, 3, 1, "no"),
        staged=(Staged(RESULTS, ("f",)), Staged(Outlet("late", "a"), ("g", "h"))),
        newest={"a": 3},
        log=LogFile("log/x", 1, 5, {"a": 3, "b": None}),
        merged=("log/y",),
        small="small/x",
        counted={0: None, 1: 5},
        course=PlanCourse("(a b)", Toward("(b a)", True, 5)),
        held=StateSize(1, 2),
        waiting=3,
        spans=({"a": (Span(FilePlace((b"\xff",), 1), 2, 3),)},),
    )
    for some in (record, Record(0)):
        assert Record.unpacked(some.packed()) == some


def test_what_all_slots_have_counted() -> None:
    assert least_counted([]) == least_counted([{}]) == {}
    assert least_counted([{0: 5, 1: 7}, {0: 4, 1: None}, {}]) == {0: 4, 1: None}


# Merging


def segment(name: str, slot: int, rows: int) -> LogFile:
    return LogFile(name, slot, rows, {"a": 0})


def test_segments_of_like_size_are_merged() -> None:
    alike = [segment(f"s{i}", 0, 64 + i) for i in range(MERGED)]
    assert to_merge(alike, 0, 1, MERGED) == tuple(f"s{i}" for i in range(MERGED))
    assert to_merge(alike[1:], 0, 1, MERGED) == ()
    assert to_merge([*alike[1:], segment("large", 0, 5000)], 0, 1, MERGED) == ()
    assert to_merge([*alike[1:], segment("other", 1, 64)], 0, 2, MERGED) == ()
    assert to_merge([*alike[1:], segment("of a slot that is gone", 2, 64)], 0, 2, MERGED) != ()


@pytest.mark.parametrize("slots", [1, 2])
def test_a_long_job_has_few_segments_and_small_commits(slots: int, tmp_path: Path) -> None:
    """In one job rows never expire; in the other the log has no more than a window."""
    unbounded = World(tmp_path / "all", ("UNBOUNDED", "UNBOUNDED"), slots=slots, host=None)
    window = World(tmp_path / "few", slots=slots, host=None)
    most = {"all": 0, "few": 0}
    for batch in range(60):
        values = [(batch * 10 + i, i % 4) for i in range(3)]
        for name, world in (("all", unbounded), ("few", window)):
            world.batch(a=values, b=values[:1])
            most[name] = max(most[name], len(world.coordinator.commit.log))
    assert most["all"] <= slots * 2 * MERGED and most["few"] <= slots * MERGED
    assert sum(file.rows for file in unbounded.coordinator.commit.log) == 60 * 4
    assert sum(file.rows for file in window.coordinator.commit.log) < 60
    for world in (unbounded, window):
        commit = world.coordinator.commit
        names = {f"log/{name}" for name in world.checkpoint.store.names("log")}
        assert {file.name for file in commit.log} <= names and len(names) < 3 * slots * MERGED


def test_merging_drops_rows_that_expired(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.batch(a=[(1, 1), (1000, 1)], b=[(1000, 2)])
    for batch in range(2 * MERGED):
        world.batch(a=[(1000 + batch, 3)], b=[(1000 + batch, 4)])
    stored = [
        when
        for file in world.coordinator.commit.log
        for batch in world.checkpoint.segment(file.name).batches("a")
        for when in batch.column("ts").cast("int64").to_pylist()
    ]
    assert 1 not in stored and sorted(stored) == sorted([1000, *range(1000, 1000 + 2 * MERGED)])


def test_a_commit_names_only_what_is_needed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.batch(a=[(1, 1)], b=[(1, 1)])
    old = world.coordinator.commit.log
    world.batch(a=[(20, 1)], b=[(20, 1)])
    assert old[0] in world.coordinator.commit.log
    world.batch(a=[(100, 1)], b=[(100, 1)])
    assert old[0] not in world.coordinator.commit.log
    assert old[0].name not in {f"log/{n}" for n in world.checkpoint.store.names("log")}


# Partition groups that move

WINDOW = ("RANGE 20 MICROSECONDS",) * 2
OUT, IN = Moves(leave=(0, 1)), Moves(sweep=(0, 1))


def logged(world: World) -> list[int]:
    """The times of the rows in the log."""
    files = [world.checkpoint.segment(file.name) for file in world.coordinator.commit.log]
    batches = [batch for segment in files for stream in segment.names for batch in segment.batches(stream)]
    return sorted(time for batch in batches for time in batch.column("ts").cast("int64").to_pylist())


def test_moves_are_those_of_the_commit_before(tmp_path: Path) -> None:
    world = World(tmp_path, groups=2)
    world.batch(a=[(1, 1)], then=Moves(leave=(1,)))
    assert world.coordinator.commit.moves == Moves(leave=(1,)) and world.coordinator.commit.ledger == Ledger()
    decision = world.begin()
    assert decision.moves == Moves(leave=(1,))
    assert decision.ledger == Ledger(1, Generations({1: (1,)}, {1: 1}), {1: world.coordinator.commit.advanced})
    again = World(tmp_path, sink=world.sink, groups=2, slots=3).begin(offsets="other")
    assert (again.moves, again.ledger) == (decision.moves, decision.ledger)
    world.batch(b=[(2, 1)], then=Moves(sweep=(1,)))
    assert world.coordinator.commit.ledger == decision.ledger
    decision = world.begin()
    assert decision.ledger.clean == 2


def test_a_batch_without_moves_begins_no_epoch(tmp_path: Path) -> None:
    world = World(tmp_path, groups=2)
    for _ in range(3):
        assert world.batch(a=[(1, 1)]).ledger == Ledger()
    assert world.coordinator.commit.ledger == Ledger()


def test_at_the_end_all_that_is_on_disk_is_swept(tmp_path: Path) -> None:
    """Whatever the commit before wants to move; if it is not the end after all, that is done."""
    world = World(tmp_path, groups=2)
    world.batch(a=[(1, 1), (1, 2), (1, 3)], then=OUT)
    world.batch(b=[(2, 1), (2, 2), (2, 3)], then=Moves(leave=(0,)))
    assert world.results == []
    assert world.begin("end").moves == IN and world.begin().moves == Moves(leave=(0,))
    world.batch("end", then=OUT)
    commit = world.coordinator.commit
    assert [row[2] for row in world.results] == [1, 2, 3] and commit.finished
    assert commit.ledger == Ledger() and commit.moves == Moves() and commit.log == ()


def test_the_log_keeps_what_a_sweep_may_need(tmp_path: Path) -> None:
    """Rows from before the groups left that could join then, and all rows since; in the end only those of a window."""
    world = World(tmp_path, WINDOW, groups=2)
    world.batch(a=[(1, 1)], b=[(1, 1)])
    world.batch(a=[(50, 2)], b=[(50, 1)], then=OUT)
    for time in (60, 200, 400, 600):
        world.batch(a=[(time, 1)], b=[(time, 2)])
    assert logged(world) == [t for time in (50, 60, 200, 400, 600) for t in (time, time)]
    world.batch(a=[(601, 3)], then=IN)
    world.batch(a=[(700, 1)], b=[(700, 3)])
    assert world.coordinator.commit.ledger.held is None, "the groups are whole"
    assert logged(world) == [700, 700]
    assert len(world.results) == 1 + 2  # of time 1; of 50 and 60


def test_merging_leaves_out_only_rows_that_no_sweep_needs(tmp_path: Path) -> None:
    world = World(tmp_path, WINDOW, groups=2)
    world.batch(a=[(1, 1), (50, 2)], b=[(50, 1)], then=OUT)
    for number in range(2 * MERGED):
        world.batch(a=[(100 * number + 60, 1)], b=[(100 * number + 60, 1)])
    assert len(world.coordinator.commit.log) < 2 * MERGED
    assert logged(world)[:2] == [50, 50] and len(logged(world)) == 2 + 4 * MERGED


def test_merged_rows_keep_their_epochs(tmp_path: Path) -> None:
    """Rows from before the first group left have none in the log until they are merged; then they are of epoch 0."""
    world = World(tmp_path, ("UNBOUNDED", "UNBOUNDED"), groups=2)
    for time in range(MERGED - 2):
        world.batch(a=[(time, time)])
    world.batch(a=[(90, 90)], then=OUT)
    world.batch(b=[(91, 90)], then=Moves(leave=(0,)))
    world.batch(b=[(time, time) for time in range(92, 99)])
    (file,) = [file for file in world.coordinator.commit.log if file.rows > 1]
    segment = world.checkpoint.segment(file.name)
    came = [epoch for s in "ab" for batch in segment.batches(s) for epoch in batch.column(EPOCH).to_pylist()]
    assert came == [0] * (MERGED - 1) + [1] + [2] * 7
    world.batch("end")
    assert [row[2] for row in world.results] == [90]


@pytest.mark.parametrize("slots", [1, 2])
def test_boundaries_are_given_when_groups_are_clean(slots: int, tmp_path: Path) -> None:
    window = "RANGE 10 MICROSECONDS SLIDE 10 MICROSECONDS"
    world = World(tmp_path, (window, window), ("window_end() AS w", "COUNT(*) AS n"), slots=slots, groups=2)
    world.batch(a=[(1, key) for key in range(6)], then=OUT)
    world.batch(b=[(2, key) for key in range(6)])
    world.batch(a=[(35, 1)], b=[(35, 1)])
    assert world.results == [], "the boundary 10 is passed, but what counts in it is on disk"
    world.batch(a=[(36, 1)], then=IN)
    assert world.results == []
    world.batch(a=[(37, 1)])
    assert [row[1] for row in world.results] == [6]
    world.batch(a=[(55, 9)], b=[(55, 9)])
    assert [row[1] for row in world.results] == [6, 3], "at once: the groups are whole"
