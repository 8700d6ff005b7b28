"""The split of one task: every row is counted once, and goes where it belongs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from durable_world import World, rows

from eddyline.counts import Counts
from eddyline.engine.intake import NO_TIME
from eddyline.engine.tally import disorder
from eddyline.protocol.packing import REASON, Packer


@pytest.mark.parametrize("slots", [1, 3])
def test_rows_are_used_late_or_dead_and_counted(slots: int, tmp_path: Path) -> None:
    world = World(tmp_path, slots=slots)
    world.batch(a=[(100, 1)], b=[(100, 1)])
    packer = Packer(world.home, world.begin(), 5)
    found = [*packer.rows("a", rows((100, 1), (130, 2), (99, 3), (None, 4), (120, None))), *packer.finish()]
    parcels = {kind: [(slot, p) for slot, p in found if p.kind == kind] for kind in ("rows", "late", "dead", "counts")}
    ((to, late),), ((_, dead),) = parcels["late"], parcels["dead"]
    assert [slot for slot, _ in parcels["counts"]] == list(range(slots))  # all must know how far the streams have come
    assert all(p.head["newest"] == {"a": 130} for _, p in parcels["counts"])
    (counts,) = (p for _, p in parcels["counts"] if "counts" in p.head)
    assert to == 5 % slots and late.head == {"stream": "a"} and late.batch.column("k").to_pylist() == [3]
    assert dead.batch.column(REASON).to_pylist() == [f"{NO_TIME}: ts is NULL"]
    assert dead.batch.column("k").to_pylist() == [4]
    found_counts = Counts.of_json(counts.head["counts"])
    assert (found_counts.rows_in, found_counts.streams["a"].rows, found_counts.expression_errors) == (5, 5, 0)
    assert (found_counts.rows_used, found_counts.rows_late, found_counts.rows_dead) == (3, 1, 1)
    keys = sorted(k or 0 for _, p in parcels["rows"] for k in p.batch.column("k").to_pylist())
    assert keys == ([0, 1, 2] if slots == 1 else [1, 2])


def test_rows_that_could_not_be_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    packer = Packer(world.home, world.begin(), 0)
    ((slot, parcel),) = packer.dead("a", rows((1, 1), (2, 2)))
    assert (slot, parcel.kind, parcel.head) == (0, "dead", {"stream": "a"})
    ((_, found),) = packer.finish()
    counts = Counts.of_json(found.head["counts"])
    assert counts.rows_in == counts.rows_dead == 2 and found.head["newest"] == {}


def test_a_second_task_counts_only_its_own_errors(tmp_path: Path) -> None:
    """The split lives as long as its process."""
    world = World(tmp_path)
    world.home.split.errors.count = 7
    packer = Packer(world.home, world.begin(), 0)
    world.home.split.errors.count += 2
    ((_, counts),) = packer.finish()
    assert counts.head["counts"]["expression_errors"] == 2


def test_disorder_across_files_that_several_tasks_read(tmp_path: Path) -> None:
    """The files are put in order; whichever tasks had them."""
    world = World(tmp_path)
    world.batch(a=[(100, 1)], b=[(100, 1)])
    counts, spans = Counts(), []
    for files in ({1: [110, 120], 3: [125, 130]}, {2: [115, 124]}):
        packer = Packer(world.home, world.begin(), 0)
        for file, times in files.items():
            packer.at(((f"{file}",), 0))
            list(packer.rows("a", rows(*[(t, 1) for t in times])))
        ((_, told),) = packer.finish()
        counts += Counts.of_json(told.head["counts"])
        spans.append(told.head["spans"])
    found = (counts + disorder(spans, {"a": 100})).streams["a"]
    assert (found.rows, found.behind) == (6, 5)


def test_a_stream_that_the_others_overtook(tmp_path: Path) -> None:
    """Late for the query's watermark alone: the stream had never had a row, and was idle."""
    world = World(tmp_path)
    watermarks = world.home.watermarks({"newest": {"b": 200}, "ended": [], "idle": ["a"], "used": 200})
    decision = replace(world.begin(), watermarks=watermarks.saved())
    packer = Packer(world.home, decision, 0)
    list(packer.rows("a", rows((150, 1), (210, 2))))
    ((_, told),) = packer.finish()
    found = Counts.of_json(told.head["counts"]).streams["a"]
    assert (found.late, found.behind, found.late_by, found.overtaken) == (1, 0, 50, 50)
