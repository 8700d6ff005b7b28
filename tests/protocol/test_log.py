"""The log by partition groups: what a segment has, what a sweep reads of it, and that merging keeps the order."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.plan.spill_axis import spill_axis
from eddyline.protocol.ledger import Moves
from eddyline.protocol.slot_log import EPOCH, SlotLog
from eddyline.settings import Settings
from eddyline.state.log.segment import Section, Segment, SegmentPart, written
from eddyline.state.tuning import StateTuning
from lab.bench.stepped_job import SteppedJob
from lab.bench.streams import query_over
from tests.support.durable_world import Row, World
from tests.support.spilling import group_of

LONG = ("RANGE 1000 MICROSECONDS", "RANGE 1000 MICROSECONDS")
SMALL = replace(DEFAULT, state=StateTuning(section_bytes=1, merged_bytes=1 << 10))
OUT = Moves(leave=(0, 1, 2, 3))


def some(time: int) -> list[Row]:
    return [(time, key) for key in range(40)]


def world(folder: Path, tuning: Tuning = SMALL) -> World:
    return World(folder, LONG, groups=4, tuning=tuning)


def segments(world: World) -> list[Segment]:
    return [world.checkpoint.segment(file.name) for file in world.coordinator.commit.log]


def sections(world: World) -> list[Section]:
    return [section for segment in segments(world) for name in segment.names for section in segment.sections(name)]


def test_before_groups_may_leave_rows_are_as_they_came(tmp_path: Path) -> None:
    job = world(tmp_path)
    job.batch(a=some(1), b=some(1))
    assert [(s.name, s.first, s.last) for s in sections(job)] == [("a", None, None), ("b", None, None)]
    [segment] = segments(job)
    [batch] = segment.batches("a")
    assert batch.column("k").to_pylist() == list(range(40)) and EPOCH not in batch.schema.names


def test_a_job_that_cannot_spill_writes_no_groups(tmp_path: Path) -> None:
    job = World(tmp_path, LONG)
    for time in range(1, 12):  # some are merged
        job.batch(a=some(time), b=some(time))
    assert all(section.first is None for section in sections(job))


@pytest.mark.parametrize("tuning", [SMALL, DEFAULT])
def test_once_groups_have_left_rows_are_in_the_order_of_groups(tuning: Tuning, tmp_path: Path) -> None:
    job = world(tmp_path, tuning)
    job.batch(a=some(1), then=OUT)
    job.batch(a=some(2), b=some(2))
    for section in sections(job)[1:]:
        assert section.first is not None and section.last is not None
    [_, segment] = segments(job)
    for name in segment.names:
        keys = [key for batch in segment.batches(name) for key in batch.column("k").to_pylist()]
        assert sorted(keys) == list(range(40))
        groups = [group_of(key, 4) for key in keys]
        assert groups == sorted(groups)
    assert len(segment.sections("a")) == (4 if tuning is SMALL else 1)


def test_rows_are_in_order_before_groups_leave_if_they_may_soon(tmp_path: Path) -> None:
    job = world(tmp_path)
    job.home.settings = replace(job.home.settings, memory=1000)
    job.batch(a=some(1))
    job.batch(a=some(2))
    assert all(section.first is not None for section in sections(job))


def test_merging_keeps_the_order_and_the_epochs(tmp_path: Path) -> None:
    job = world(tmp_path)
    job.batch(a=some(1), b=some(1))  # not by groups
    job.batch(a=some(2), then=OUT)
    for time in range(3, 12):
        job.batch(a=some(time), b=some(time))
    merged = max(segments(job), key=lambda segment: sum(s.rows for s in segment.sections("a")))
    assert len(segments(job)) < 5 and sum(s.rows for s in merged.sections("a")) >= 7 * 40
    batches = list(merged.batches("a"))
    groups = [group_of(key, 4) for batch in batches for key in batch.column("k").to_pylist()]
    assert groups == sorted(groups)
    for batch in batches:
        times = batch.column("ts").cast("int64").to_numpy()
        assert batch.column(EPOCH).to_pylist() == np.where(times < 3, 0, 1).tolist()
    job.batch("end")
    pairs = sum(1 for a in range(1, 12) for b in range(1, 12) if b != 2)
    assert len(job.results) == 40 * pairs


def test_a_sweep_reads_the_sections_of_its_groups(tmp_path: Path) -> None:
    job = world(tmp_path)
    job.batch(a=some(1), then=OUT)
    job.batch(a=some(2), b=some(2))
    commit, asked = job.coordinator.commit, np.array([1, 3])
    log = job.home.log.of_commit(commit, 0, {})
    for source, times in ((0, 2), (1, 1)):
        found = list(log.rows(source, asked))
        keys = [key for rows in found for key in rows.batch.column("k").to_pylist()]
        assert sorted(keys) == sorted([key for key in range(40) if group_of(key, 4) in (1, 3)] * times)
        assert [group for rows in found for group in rows.groups] == [group_of(key, 4) for key in keys]
        assert {epoch for rows in found for epoch in rows.came} == set(range(2 - times, 2)), "one is not in order"
        assert (log.sizes(source) > 0).all()


@pytest.mark.long
def test_a_section_with_few_of_many_groups_takes_little_memory(tmp_path: Path) -> None:
    job = World(tmp_path, LONG, groups=1 << 16, tuning=SMALL)
    job.batch(a=some(1), then=Moves(leave=(0,)))
    for time in range(2, 6):
        job.batch(a=some(time), b=some(time))
    log = job.home.log.of_commit(job.coordinator.commit, 0, {})
    log.sizes(0)  # the first time imports modules
    tracemalloc.start(25)
    try:
        log = job.home.log.of_commit(job.coordinator.commit, 0, {})
        for source, times in ((0, 5), (1, 4)):
            found = list(log.rows(source, np.arange(1 << 16)))
            groups = [group for rows in found for group in rows.groups.tolist()]
            keys = [key for rows in found for key in rows.batch.column("k").to_pylist()]
            assert sorted(keys) == sorted([*range(40)] * times)
            assert groups == [group_of(key, 1 << 16) for key in keys]
            assert np.flatnonzero(log.sizes(source)).tolist() == sorted({*groups})
        taken = tracemalloc.take_snapshot().filter_traces(
            [tracemalloc.Filter(True, "*/protocol/slot_log.py", None, True)]
        )
        kept = sum(trace.size for trace in taken.traces)
        assert kept < 8 << 16, "one number for each group would be that much"
    finally:
        tracemalloc.stop()


def test_a_section_that_is_not_in_order_is_read_whole(tmp_path: Path) -> None:
    """The group of a NULL may differ from one reading to the next, so what a section says is not relied on."""
    home = world(tmp_path).home
    keys = [key for key in range(40) if group_of(key, 4) == 2] + [key for key in range(40) if group_of(key, 4) == 1]
    batch = pa.record_batch({"ts": pa.array([1] * len(keys), pa.timestamp("us")), "k": keys})
    data = b"".join(bytes(memoryview(part)) for part in written([SegmentPart("a", [batch], 1, 2)], {}))
    segment = Segment("x", len(data), lambda offset, length: pa.py_buffer(data).slice(offset, length))
    axis = spill_axis(home.plan, 4)
    assert axis is not None
    log = SlotLog([segment], home.split, axis, {"a": 0, "b": 1}, 0, {})
    for group in range(4):
        found = [key for rows in log.rows(0, np.array([group])) for key in rows.batch.column("k").to_pylist()]
        assert found == [key for key in keys if group_of(key, 4) == group]
    assert (log.sizes(0) > 0).tolist() == [False, True, True, False]
    assert list(log.rows(0, np.empty(0, np.int64))) == [] and list(log.rows(1, np.arange(4))) == []


def test_rows_are_read_back_in_the_order_of_time_without_those_on_disk(tmp_path: Path) -> None:
    job = world(tmp_path)
    job.batch(a=some(1), then=Moves(leave=(0,)))
    job.batch(a=[(time, key) for time in range(2, 40) for key in range(8)], then=Moves(leave=(1, 2)))
    commit = job.coordinator.commit
    moved = commit.ledger.begin(commit.moves, commit.advanced, 4)
    read = dict(job.home.log.by_epoch(commit, moved))
    assert list(read) == [0, 1]
    for epoch, on_disk in ((0, (0, 1, 2)), (1, (1, 2))):
        rows = [row for _, batch in read[epoch] for row in batch.to_pylist()]
        keys = range(40) if epoch == 0 else range(8)
        assert {row["k"] for row in rows} == {key for key in keys if group_of(key, 4) not in on_disk}
        times = [row["ts"] for row in rows]
        assert times == sorted(times) and set(rows[0]) == {"ts", "k"}


def test_a_source_that_follows_finds_its_rows_in_a_section_that_another_one_orders() -> None:
    """Rows of s are in the order of the groups of p. The groups of q are those of the same key, with other numbers."""
    random, rows = np.random.default_rng(5), 3000
    times = pa.array(np.arange(rows) + 1, pa.timestamp("us"))
    data = {name: pa.record_batch({"ts": times, "k": random.integers(0, 500, rows)}) for name in "st"}
    data["t"] = data["t"].append_column("m", pa.array(random.integers(0, 500, rows)))
    text = "SELECT p.ts AS x, t.ts AS y, q.ts AS z FROM s p, t, s q WHERE p.k = t.k AND q.k = t.m"
    found = []
    for memory in (None, 400_000):
        with SteppedJob(query_over(data, text), Settings(slots=1, memory=memory)) as job:
            left = 0
            for first in range(0, rows, 300):
                left += job.batch((name, batch.slice(first, 300)) for name, batch in data.items()).left
            job.end()
            found.append(job.digest)
            assert bool(left) == (memory is not None)
    assert found[0] == found[1] and found[0][0] > 10_000


def test_a_slot_that_is_rebuilt_reads_the_log_of_its_own_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = World(tmp_path, LONG, groups=8, slots=4, balance="moving-state", host="one")
    for time in range(1, 100, 10):
        first.batch(a=some(time), b=some(time))
    read = []
    original = Segment.read

    def counted(segment: Segment, section: Section) -> list[pa.RecordBatch]:
        read.append(section.rows)
        return original(segment, section)

    monkeypatch.setattr(Segment, "read", counted)
    other = World(tmp_path, LONG, groups=8, slots=4, balance="moving-state", host="two", sink=first.sink)
    decision = other.begin()
    other.turn(decision, 2)
    own = sum(file.rows for file in first.coordinator.commit.log if file.slot == 2)
    assert sum(read) == own < sum(file.rows for file in first.coordinator.commit.log) / 2
