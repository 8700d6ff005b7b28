"""The number of slots changes between two batches: every result is made once, and slots that stay keep their state."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from eddyline.balance.slot_map import SlotMap
from eddyline.balance.spread import spread
from eddyline.protocol.ledger import Moves
from tests.protocol.test_relocation import BATCHES, GROUPS, expected, world
from tests.support.durable_world import World

NUMBERS = [3, 5, 5, 2, 2, 4, 3, 6, 2, 3]
"""The number of slots after each batch."""
AGGREGATE: dict[str, Any] = {
    "windows": ("RANGE 20 MICROSECONDS SLIDE 5 MICROSECONDS",) * 2,
    "outputs": ("a.k", "count(*) AS n", "max(b.ts) AS t", "window_end() AS w"),
    "keys": ("a.k",),
}
ROWS: dict[str, Any] = {"windows": ("ROWS 30", "RANGE 20 MICROSECONDS")}
SLIDING_ROWS: dict[str, Any] = {
    "windows": ("ROWS 30 SLIDE 5 MICROSECONDS", "RANGE 20 MICROSECONDS SLIDE 5 MICROSECONDS"),
    "outputs": AGGREGATE["outputs"],
    "keys": AGGREGATE["keys"],
}
QUERIES = {"join": {}, "aggregate": AGGREGATE, "rows": ROWS, "rows that slide": SLIDING_ROWS}


def maps() -> list[SlotMap]:
    """After each batch: groups of slots that are gone move to any other, and some of the others move too."""
    rng, found, places = Random(1), [], SlotMap(3, GROUPS).places.tolist()
    for slots in NUMBERS:
        places = [rng.randrange(slots) if p >= slots or rng.random() < 0.3 else p for p in places]
        found.append(SlotMap.of(slots, places))
    return found


def finished(job: World) -> list[tuple[object, ...]]:
    job.batch("end", ended=["a", "b"])
    return job.results


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("host", [None, "host"])
def test_slots_come_and_go(host: str | None, query: str, tmp_path: Path) -> None:
    job = world(tmp_path, host=host, **QUERIES[query])
    numbers = [job.batch(to=to, **batch).slots for batch, to in zip(BATCHES, maps(), strict=True)]
    assert numbers == [3, *NUMBERS[:-1]]
    found = finished(job)
    assert found == expected(tmp_path, **QUERIES[query]) and len(found) > 50


@pytest.mark.parametrize("query", QUERIES)
def test_a_turn_is_taken_again_while_slots_come_and_go(query: str, tmp_path: Path) -> None:
    job = world(tmp_path, **QUERIES[query])
    for batch, to in zip(BATCHES, maps(), strict=True):
        decision = job.begin()
        for slot in range(decision.slots):
            job.turn(decision, slot, **batch)  # the batch fails after it: its state is there and is wound back
        job.batch(to=to, **batch)
    assert finished(job) == expected(tmp_path, **QUERIES[query])


@pytest.mark.parametrize("query", QUERIES)
def test_state_is_lost_while_slots_come_and_go(query: str, tmp_path: Path) -> None:
    job = world(tmp_path, **QUERIES[query])
    for number, (batch, to) in enumerate(zip(BATCHES, maps(), strict=True)):
        host, slots = f"host{number // 2 % 2}", 3 if number == 0 else NUMBERS[number - 1]
        world(tmp_path, sink=job.sink, host=host, slots=slots, **QUERIES[query]).batch(to=to, **batch)
    assert finished(world(tmp_path, sink=job.sink, **QUERIES[query])) == expected(tmp_path, **QUERIES[query])


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("slots", [2, 4])
def test_an_attempt_with_another_number_of_slots_came_before(slots: int, query: str, tmp_path: Path) -> None:
    """The run died, and goes on with another number: what its slots have taken over is not what they have now."""
    job = world(tmp_path, **QUERIES[query])
    for batch, to in zip(BATCHES[:4], maps(), strict=False):
        job.batch(to=to, **batch)
    decision = job.begin()
    for slot in range(decision.slots):
        job.turn(decision, slot, **BATCHES[4])
    other = world(tmp_path, sink=job.sink, slots=slots, **QUERIES[query])
    for batch in BATCHES[4:]:
        other.batch(**batch)
    assert finished(other) == expected(tmp_path, **QUERIES[query])


def test_groups_on_disk_go_to_slots_that_come(tmp_path: Path) -> None:
    job = world(tmp_path)
    moves = [Moves(leave=(0, 1, 2)), Moves(), Moves(leave=(3, 4)), Moves(sweep=(0, 3)), Moves(leave=(0,), cool=(0,))]
    for batch, to, then in zip(BATCHES, maps(), moves * 2, strict=True):
        job.batch(to=to, then=then, **batch)
    assert finished(job) == expected(tmp_path)


@pytest.mark.parametrize("slots", [2, 4])
def test_tracks_are_given_up(slots: int, tmp_path: Path) -> None:
    job = world(tmp_path, balance="parallel-track")
    for number, batch in enumerate(BATCHES):
        now = job.coordinator.commit.next_map or SlotMap(3, GROUPS)
        to = now.tracked([0, 1, 5], to=2) if number == 2 else spread(now, slots) if number == 3 else None
        job.batch(to=to, **batch)
    last = job.coordinator.commit.slot_map
    assert last is not None and last.slots == slots and not last.tracks
    assert finished(job) == expected(tmp_path)


def test_slots_that_stay_keep_their_state(tmp_path: Path) -> None:
    """Only new slots are rebuilt; the arenas of slots that are gone are removed."""
    job = world(tmp_path)
    three, five = SlotMap(3, GROUPS), spread(SlotMap(3, GROUPS), 5)
    job.batch(to=three, **BATCHES[0])
    job.batch(to=five, **BATCHES[1])
    decision = job.begin()
    assert [job.turn(decision, slot).record.rebuilt for slot in range(5)] == [False, False, False, True, True]
    job.batch(to=spread(five, 2), **BATCHES[2])
    assert {path.name for path in (tmp_path / "host").iterdir()} == {"0", "1", "2", "3", "4"}
    decision = job.begin()
    assert {path.name for path in (tmp_path / "host").iterdir()} == {"0", "1"}
    assert [job.turn(decision, slot).record.rebuilt for slot in range(2)] == [False, False]


def test_cells_of_a_slot_that_is_gone_go_to_one_other(tmp_path: Path) -> None:
    job = world(tmp_path, **AGGREGATE)
    job.batch(**BATCHES[0])
    job.batch(to=spread(SlotMap(3, GROUPS), 2), **BATCHES[1])
    decision = job.begin()
    assert [job.turn(decision, slot).record.rebuilt for slot in range(2)] == [True, False]


def test_a_run_begins_with_the_number_that_it_is_told(tmp_path: Path) -> None:
    job = world(tmp_path)
    job.batch(to=spread(SlotMap(3, GROUPS), 5), **BATCHES[0])
    again = world(tmp_path, slots=5).begin()
    assert again.slots == 5 and again.slot_map == spread(SlotMap(3, GROUPS), 5)
    other = world(tmp_path).begin()
    assert other.slots == 3 and other.slot_map == SlotMap(3, GROUPS)
