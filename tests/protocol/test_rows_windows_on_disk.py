"""Queries with ROWS windows whose groups are on disk: examples, and random lives beside a job that never spills."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from eddyline.engine.tuning import DEFAULT
from eddyline.protocol.ledger import Moves
from lab.fuzz.simulation import MemorySink
from tests.support.durable_world import Row, World
from tests.support.spilling import group_of

OUT, IN = Moves(leave=(0, 1)), Moves(sweep=(0, 1))
COLD = Moves(leave=(0, 1), cool=(0, 1))


def times(world: World) -> list[tuple[int, int]]:
    """The times of both components of all results."""
    return sorted((row[0].microsecond, row[1].microsecond) for row in world.results)


def test_a_row_comes_when_the_watermark_passes_it(tmp_path: Path) -> None:
    """Row 5 arrives before the groups leave and is released afterwards, so it is in memory when row 6 comes."""
    world = World(tmp_path, ("ROWS 9", "UNBOUNDED"), groups=2)
    world.batch(a=[(1, 1), (5, 1)], b=[(2, 1), (4, 1)])
    assert times(world) == [(1, 2)]
    world.batch(then=OUT)
    world.batch(b=[(6, 1)])
    world.batch(a=[(8, 1)], b=[(8, 1)], then=IN)
    assert times(world) == [(1, 2), (5, 4), (5, 6)], "rows 1 and 2 are on disk"
    world.batch()
    assert times(world) == [(1, 2), (1, 4), (1, 6), (5, 2), (5, 4), (5, 6)]
    world.batch("end")
    assert len(world.results) == 3 * 4, "rows 1, 5 and 8 with rows 2, 4, 6 and 8"


def test_places_of_rows_on_disk(tmp_path: Path) -> None:
    """Rows 1, 2 and 3 are on disk; the last two rows of a are counted, whatever their keys and groups."""
    world = World(tmp_path, ("ROWS 2", "UNBOUNDED"), groups=2)
    world.batch(a=[(1, 1), (2, 2), (3, 1)], b=[(4, 9)], then=OUT)
    world.batch(a=[(4, 7)], b=[(3, 8), (4, 1)])
    world.batch(a=[(5, 7)], b=[(4, 2), (5, 9)], then=IN)
    world.batch()
    assert times(world) == [(3, 4)], "row 1 has left, and so has row 2"


@pytest.mark.parametrize("moves", [OUT, COLD])
def test_rows_that_wait_at_the_end_are_swept(moves: Moves, tmp_path: Path) -> None:
    world = World(tmp_path, ("ROWS 1", "ROWS 2"), groups=2)
    world.batch(a=[(1, 1)], b=[(1, 1), (2, 1)])
    world.batch(then=moves)
    world.batch(a=[(3, 1)], b=[(3, 1), (3, 2)])
    assert times(world) == ([(1, 1), (1, 2)] if moves is OUT else [])
    world.batch("end")
    assert times(world) == [(1, 1), (1, 2), (3, 3)], "rows 3 of b with keys 1 and 2 are the last two"


def test_waiting_rows_of_a_group_that_gets_warm_survive_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path, ("ROWS 9", "UNBOUNDED"), groups=2)
    world.batch(a=[(1, 1)], b=[(1, 1)], then=COLD)
    world.batch(a=[(5, 1)], b=[(4, 1)])
    world = World(tmp_path, ("ROWS 9", "UNBOUNDED"), groups=2, sink=world.sink, host="another")
    world.batch(then=Moves(sweep=(0, 1), warm=(0, 1)))
    world.batch(a=[(9, 1)], b=[(9, 1)])
    assert times(world) == [(1, 1), (5, 4)], "the sweep made the first, the watermark has passed the others"
    world.batch("end")
    assert times(world) == [(1, 1), (1, 4), (1, 9), (5, 1), (5, 4), (5, 9), (9, 1), (9, 4), (9, 9)]


def test_ties_of_rows_on_disk(tmp_path: Path) -> None:
    """Of rows of one time those with the greatest keys are the last ones; two are equal."""
    world = World(tmp_path, ("ROWS 3", "UNBOUNDED"), groups=2)
    world.batch(a=[(1, 3), (1, 1), (1, 2), (1, 2)], b=[(2, 9)])
    world.batch(a=[(2, 9)], b=[(2, 9)], then=OUT)
    world.batch(a=[(3, 0)], b=[(2, 1), (2, 2), (2, 3), (3, 9)], then=IN)
    world.batch()
    assert sorted(row[2] for row in world.results if row[0].microsecond == 1) == [2, 3], "row 2 of a has pushed one out"


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_a_slot_that_is_rebuilt_counts_a_stretch_of_time_after_the_other(rows: int, tmp_path: Path) -> None:
    """Rows of key 1 are on disk, those of key 2 in memory; both are counted."""
    leave = Moves(leave=(group_of(1, 2),))
    assert group_of(1, 2) != group_of(2, 2)
    world = World(tmp_path, ("ROWS 3", "UNBOUNDED"), groups=2)
    world.batch(a=[(1, 1), (2, 2), (3, 1), (4, 2), (4, 1), (5, 2)], b=[(6, 8)])
    world.batch(a=[(6, 9)], then=leave)
    world.batch(a=[(7, 9)], b=[(7, 8)])
    log = sum(file.bytes for file in world.coordinator.commit.log) / 10  # rows
    tuning = replace(DEFAULT, engine=replace(DEFAULT.engine, sweep_bytes=int(4 * rows * log)))
    world = World(tmp_path, ("ROWS 3", "UNBOUNDED"), groups=2, sink=world.sink, host="another", tuning=tuning)
    world.batch(b=[(8, 2), (8, 1), (9, 8)], a=[(9, 9)])
    world.batch("end")
    assert times(world) == [(5, 8)], "rows 5, 6 and 7 of a are the last three"


SLIDE = "RANGE 12 MICROSECONDS SLIDE 4 MICROSECONDS"
QUERIES: dict[str, tuple[tuple[str, str], tuple[str, ...], tuple[str, ...]]] = {
    "rows and range": (("ROWS 4", "RANGE 9 MICROSECONDS"), ("a.ts", "b.ts AS t", "a.k"), ()),
    "rows and rows": (("ROWS 5", "ROWS 3"), ("a.ts", "b.ts AS t", "a.k"), ()),
    "slide": (("ROWS 5", SLIDE), ("a.k", "COUNT(*) AS n", "window_end() AS e"), ("a.k",)),
    "at the end": (("ROWS 5", "ROWS 6"), ("a.k", "COUNT(*) AS n"), ("a.k",)),
}


def batches(rng: Random) -> list[dict[str, list[Row]]]:
    """Rows of both streams, none of them late, many of the same time."""
    found, start = [], 0
    for _ in range(14):
        some: dict[str, list[Row]] = {}
        for stream in "ab":
            if rows := [(start + rng.randrange(5), rng.randrange(4)) for _ in range(rng.randrange(5))]:
                some[stream] = rows
        start = max([start, *(time for rows in some.values() for time, _ in rows)])
        found.append(some)
    return found


@pytest.mark.share(6, 3)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", QUERIES)
def test_results_are_the_same_whatever_is_on_disk(name: str, seed: int, tmp_path: Path) -> None:
    """Groups leave, stay cold, get warm and are swept; the job is started again, with other slots, and its state is
    rebuilt."""
    rng, query = Random(f"{name} {seed}"), QUERIES[name]
    whole, sink = World(tmp_path / "whole", *query), MemorySink()
    tuning = replace(DEFAULT, engine=replace(DEFAULT.engine, sweep_bytes=rng.choice([1, 5000, 1 << 40])))
    world = World(tmp_path / "spilled", *query, groups=3, sink=sink, tuning=tuning)
    for batch in batches(rng):
        whole.batch(**batch)
        ledger = world.coordinator.commit.ledger
        leave = tuple(g for g in range(3) if rng.random() < 0.7) if rng.random() < 0.5 else ()
        cool = tuple(g for g in leave if g not in ledger.generations.cold and rng.random() < 0.5)
        sweep = tuple(g for g in range(3) if rng.random() < 0.8) if rng.random() < 0.4 else ()
        world.batch(then=Moves(leave, sweep, cool, sweep), **batch)
        if rng.random() < 0.3:
            others = {"slots": rng.choice([1, 2, 3]), "host": f"host-{rng.random()}"}
            world = World(tmp_path / "spilled", *query, groups=3, sink=sink, tuning=tuning, **others)
    for one in (whole, world):
        one.batch("end")
    assert sorted(world.results) == sorted(whole.results) and whole.results
