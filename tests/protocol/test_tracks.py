"""Partition groups move from one slot to another by parallel track: every result is made once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eddyline.balance.slot_map import SlotMap
from tests.support.durable_world import Row, World

GROUPS = 8
KEYS = range(24)
BATCHES: list[dict[str, list[Row]]] = [
    {"a": [(t, key) for key in KEYS], "b": [(t + 1, key) for key in KEYS if key % 3]} for t in range(1, 90, 6)
]
"""A window of 20 is a little more than three batches."""
EVEN = SlotMap(3, GROUPS)
FIRST = EVEN.tracked([0, 1, 2], to=1)
SLIDES: dict[str, Any] = {
    "windows": ("RANGE 20 MICROSECONDS SLIDE 5 MICROSECONDS",) * 2,
    "outputs": ("a.k % 4 AS k", "count(*) AS n", "sum(b.ts - a.ts) AS d", "window_end() AS w"),
    "keys": ("a.k % 4",),
}


def world(folder: Path, **options: Any) -> World:
    return World(folder, **{"slots": 3, "groups": GROUPS, "balance": "parallel-track", **options})


def expected(folder: Path, **options: Any) -> list[tuple[object, ...]]:
    job = World(folder / "one", **{"slots": 1, **options})
    for batch in BATCHES:
        job.batch(**batch)
    job.batch("end", ended=["a", "b"])
    return job.results


def track(job: World, number: int) -> SlotMap | None:
    """The map that the placer is asked for after a batch: a track of slot 0 begins early, one of slot 1 later."""
    now = job.coordinator.commit.next_map or EVEN
    if number == 2:
        return now.tracked([0, 1, 2], to=1)
    if number == 4:
        return now.tracked([5], to=0)
    return None


def run(job: World) -> list[SlotMap]:
    maps = []
    for number, batch in enumerate(BATCHES):
        maps.append(job.batch(to=track(job, number), **batch).slot_map)
    job.batch("end", ended=["a", "b"])
    return maps


@pytest.mark.parametrize("host", [None, "host"])
def test_tracks_begin_and_end(host: str | None, tmp_path: Path) -> None:
    job = world(tmp_path, host=host)
    maps = run(job)
    assert job.results == expected(tmp_path) and len(job.results) > 100
    assert [len(m.tracks) for m in maps] == [0, 0, 0, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0]
    assert maps[-1].places.tolist() == [1, 1, 1, 1, 1, 0, 2, 2]
