"""Several slots share a key: every result is made once, while it begins, lasts, changes and ends."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eddyline.balance.hot_key import HotKey
from eddyline.balance.slot_map import SlotMap
from eddyline.protocol.ledger import Moves
from tests.support.durable_world import Row, World, in_one_slot
from tests.support.spilling import group_of

GROUPS, HOT = 8, 7
"""HOT is the key that slots share; the code of an integer is the integer."""
EVEN = SlotMap(3, GROUPS)
BATCHES: list[dict[str, list[Row]]] = [
    {
        "a": [(t + n % 3, HOT if n % 2 else n) for n in range(40)],
        "b": [(t + n % 3, HOT if n % 5 == 0 else n) for n in range(20)],
    }
    for t in range(1, 60, 6)
]


def key(source: int, *slots: int) -> HotKey:
    group = group_of(HOT, GROUPS)
    home = EVEN.slot_of(group)
    return HotKey(HOT, group, source, (home, *((home + slot) % 3 for slot in slots)))


HOT_KEYS = [(), (key(0, 1, 2),), (key(0, 1, 2),), (key(1, 1),), (key(1, 1),), (key(0, 2),), (), (), (key(0, 1, 2),), ()]
"""The keys that are shared after each batch: by all slots, the other source spread, by other slots, by none, again."""
COURSE = [EVEN.shared(keys) for keys in HOT_KEYS]
"""The slot map after each batch."""


def world(folder: Path, **options: Any) -> World:
    return World(folder, **{"slots": 3, "groups": GROUPS, "balance": "moving-state", **options})


expected = partial(in_one_slot, BATCHES)


@pytest.mark.parametrize("host", [None, "host"])
def test_a_key_that_gets_hot_and_cools(host: str | None, tmp_path: Path) -> None:
    found = world(tmp_path, host=host).run(BATCHES, COURSE)
    assert found == expected(tmp_path) and len(found) > 1000


def test_rows_of_one_source_are_spread_and_those_of_the_other_are_everywhere(tmp_path: Path) -> None:
    job = world(tmp_path, host=None)
    for batch in BATCHES[:3]:
        job.batch(to=EVEN.shared((key(0, 1, 2),)), **batch)
    spread, other = ([job.slot(slot).executor.source_stems[source].held for slot in range(3)] for source in range(2))
    rows = {s: sum(len(batch[s]) for batch in BATCHES[:3]) for s in "ab"}
    hot = {s: sum(row[1] == HOT for batch in BATCHES[:3] for row in batch[s]) for s in "ab"}
    assert sum(spread) == rows["a"] and min(spread) > hot["a"] / 6
    assert sum(other) == rows["b"] + 2 * hot["b"]


def test_a_slot_whose_state_is_lost_has_its_share(tmp_path: Path) -> None:
    sink = world(tmp_path).sink
    for number, (batch, to) in enumerate(zip(BATCHES, COURSE, strict=True)):
        world(tmp_path, sink=sink, host=f"host{number // 2 % 2}").batch(to=to, **batch)
    job = world(tmp_path, sink=sink)
    job.batch("end", ended=["a", "b"])
    assert job.results == expected(tmp_path)


def test_a_turn_that_is_taken_again_shares_out_nothing_twice(tmp_path: Path) -> None:
    job = world(tmp_path)
    for batch, to in zip(BATCHES, COURSE, strict=True):
        decision = job.begin()
        for slot in range(3):
            job.turn(decision, slot, **batch)
        job.batch(to=to, **batch)
    job.batch("end", ended=["a", "b"])
    assert job.results == expected(tmp_path)


def test_a_shared_key_on_disk(tmp_path: Path) -> None:
    options: dict[str, Any] = {"windows": ("UNBOUNDED", "UNBOUNDED"), "memory": 1 << 30}
    job = world(tmp_path, **options)
    for number, (batch, to) in enumerate(zip(BATCHES, COURSE, strict=True)):
        then = {2: Moves(leave=tuple(range(GROUPS))), 4: Moves(sweep=tuple(range(GROUPS)))}.get(number, Moves())
        job.batch(to=to, then=then, **batch)
    job.batch("end", ended=["a", "b"])
    assert job.results == expected(tmp_path, windows=options["windows"])


def test_aggregates_of_a_shared_key(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "windows": ("RANGE 20 MICROSECONDS SLIDE 5 MICROSECONDS",) * 2,
        "outputs": ("a.k", "count(*) AS n", "max(b.ts) AS t", "window_end() AS w"),
        "keys": ("a.k",),
    }
    assert world(tmp_path, **options).run(BATCHES, COURSE) == expected(tmp_path, **options)
