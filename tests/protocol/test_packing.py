"""The split in one task: every row is counted once and goes to the right slots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from eddyline.counts import Counts
from eddyline.engine.intake import NO_TIME
from eddyline.engine.tally import FilePlace, disorder
from eddyline.engine.watermarks import Reached
from eddyline.protocol.outlet import Outlet
from eddyline.protocol.packing import REASON, Packed, Packer
from eddyline.protocol.parcel import CountsHead, RejectedHead, RowsHead
from tests.support.durable_world import World, rows


def counted(found: Iterable[Packed]) -> list[CountsHead]:
    return [parcel.head for _, parcel in found if isinstance(parcel.head, CountsHead)]


@pytest.mark.parametrize("slots", [1, 3])
def test_rows_are_used_late_or_dead_and_counted(slots: int, tmp_path: Path) -> None:
    world = World(tmp_path, slots=slots)
    world.batch(a=[(100, 1)], b=[(100, 1)])
    packer = Packer(world.home, world.begin(), 5)
    found = [*packer.rows("a", rows((100, 1), (130, 2), (99, 3), (None, 4), (120, None))), *packer.finish()]
    (to, late), (_, dead) = [(slot, p) for slot, p in found if isinstance(p.head, RejectedHead)]
    told = [slot for slot, p in found if isinstance(p.head, CountsHead)]
    assert told == list(range(slots))  # all slots must know how far the streams have come
    assert all(head.newest == {"a": 130} for head in counted(found))
    (counts,) = (head for head in counted(found) if head.counts != Counts())
    assert to == 5 % slots and late.batch.column("k").to_pylist() == [3]
    assert (late.head, dead.head) == (RejectedHead(Outlet("late", "a")), RejectedHead(Outlet("dead", "a")))
    assert dead.batch.column(REASON).to_pylist() == [f"{NO_TIME}: ts is NULL"]
    assert dead.batch.column("k").to_pylist() == [4]
    found_counts = counts.counts
    assert (found_counts.rows_in, found_counts.streams["a"].rows, found_counts.expression_errors) == (5, 5, 0)
    assert (found_counts.rows_used, found_counts.rows_late, found_counts.rows_dead) == (3, 1, 1)
    keys = sorted(k or 0 for _, p in found if isinstance(p.head, RowsHead) for k in p.batch.column("k").to_pylist())
    assert keys == ([0, 1, 2] if slots == 1 else [1, 2])


def test_rows_that_could_not_be_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    packer = Packer(world.home, world.begin(), 0)
    ((slot, parcel),) = packer.dead("a", rows((1, 1), (2, 2)))
    assert (slot, parcel.head) == (0, RejectedHead(Outlet("dead", "a")))
    (head,) = counted(packer.finish())
    assert head.counts.rows_in == head.counts.rows_dead == 2 and head.newest == {}


def test_a_second_task_counts_only_its_own_errors(tmp_path: Path) -> None:
    """The split is shared by all tasks of a process."""
    world = World(tmp_path)
    world.home.split.errors.count = 7
    packer = Packer(world.home, world.begin(), 0)
    world.home.split.errors.count += 2
    (head,) = counted(packer.finish())
    assert head.counts.expression_errors == 2


def test_disorder_across_files_that_several_tasks_read(tmp_path: Path) -> None:
    """Files are put in order, whichever tasks read them."""
    world = World(tmp_path)
    world.batch(a=[(100, 1)], b=[(100, 1)])
    counts, spans = Counts(), []
    for files in ({1: [110, 120], 3: [125, 130]}, {2: [115, 124]}):
        packer = Packer(world.home, world.begin(), 0)
        for file, times in files.items():
            packer.at(FilePlace((b"%d" % file,)))
            list(packer.rows("a", rows(*[(t, 1) for t in times])))
        (head,) = counted(packer.finish())
        counts += head.counts
        spans.append(head.spans)
    found = (counts + disorder(spans, {"a": 100})).streams["a"]
    assert (found.rows, found.behind) == (6, 5)


def test_a_stream_that_the_others_overtook(tmp_path: Path) -> None:
    """Its rows are late only for the query's watermark: the stream had no row before, and was idle."""
    world = World(tmp_path)
    decision = replace(world.begin(), watermarks=Reached({"b": 200}, idle=("a",), used=200))
    packer = Packer(world.home, decision, 0)
    list(packer.rows("a", rows((150, 1), (210, 2))))
    (head,) = counted(packer.finish())
    found = head.counts.streams["a"]
    assert (found.late, found.behind, found.late_by, found.overtaken) == (1, 0, 50, 50)
