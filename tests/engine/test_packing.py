"""The split of one task: every row is counted once, and goes where it belongs."""

from __future__ import annotations

from pathlib import Path

import pytest
from durable_world import World, rows

from eddyline.engine.intake import NO_TIME
from eddyline.engine.packing import REASON, Packer


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
    assert dead.batch.column(REASON).to_pylist() == [f"{NO_TIME}: ts is NULL"] and dead.batch.column("k").to_pylist() == [4]
    assert counts.head["counts"] == {
        "rows_in": 5, "rows_used": 3, "rows_late": 1, "rows_dead": 1, "expression_errors": 0
    }  # fmt: skip
    keys = sorted(k or 0 for _, p in parcels["rows"] for k in p.batch.column("k").to_pylist())
    assert keys == ([0, 1, 2] if slots == 1 else [1, 2])


def test_rows_that_could_not_be_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    packer = Packer(world.home, world.begin(), 0)
    ((slot, parcel),) = packer.dead("a", rows((1, 1), (2, 2)))
    assert (slot, parcel.kind, parcel.head) == (0, "dead", {"stream": "a"})
    ((_, found),) = packer.finish()
    counts = found.head
    assert counts["counts"]["rows_in"] == counts["counts"]["rows_dead"] == 2 and counts["newest"] == {}


def test_a_second_task_counts_only_its_own_errors(tmp_path: Path) -> None:
    """The split lives as long as its process."""
    world = World(tmp_path)
    world.home.split.errors.count = 7
    packer = Packer(world.home, world.begin(), 0)
    world.home.split.errors.count += 2
    ((_, counts),) = packer.finish()
    assert counts.head["counts"]["expression_errors"] == 2
