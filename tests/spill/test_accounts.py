"""The accounts of groups beside a count of the rows that a slot holds, whatever happens to the slot."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from eddyline.engine.slot import Slot
from eddyline.protocol.attach import close, open_slot, save
from eddyline.routing.packet import Packet
from eddyline.settings import Settings
from eddyline.spill.accounts import APART, ENOUGH, KEPT, Spillable
from tests.support.jobs import batch_of, bound, schema, tuples

W = "[RANGE 30 MICROSECONDS]"
QUERY = bound(
    f"SELECT a.k, b.x, c.x AS y FROM a {W}, b {W}, c {W} WHERE a.k = b.k AND c.x = b.x", a="k", b="k x", c="x"
)
SETTINGS = Settings(memory=10**6, groups=16, check=True)


def batch(slot: Slot, start: int, rows: int = 20, keys: int = 50) -> int:
    """A batch of rows from `start` on, not committed; returns the number of its results."""
    drawn = random.Random(start)
    for name, columns in (("a", "k"), ("b", "k x"), ("c", "x")):
        values = [(start + i % 10, *(drawn.randrange(keys) for _ in columns.split())) for i in range(rows)]
        slot.feed(name, batch_of(schema(columns), values))
    mark = start + 10
    slot.advance({"a": mark, "b": mark, "c": mark}, mark)
    return len(tuples(slot.drain()))


def held(slot: Slot) -> Counter[int]:
    """Rows in memory by group."""
    found: Counter[int] = Counter()
    for stem in slot.executor.source_stems:
        found.update(stem.rows.groups(slice(stem.rows.min_live, stem.built)).tolist())
    return found


def told(slot: Slot) -> dict[int, int]:
    table = slot.spillable.table
    return dict(zip(table["group"].tolist(), table["rows"].tolist(), strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_counted_whatever_happens_to_the_slot(seed: int, tmp_path: Path) -> None:
    drawn, slot = random.Random(seed), open_slot(QUERY, SETTINGS, str(tmp_path))
    for start in range(0, 400, 10):
        batch(slot, start)
        assert told(slot) == held(slot)
        if drawn.random() < 0.3:
            assert save(slot)
            close(slot)
            slot = open_slot(QUERY, SETTINGS, str(tmp_path))
            assert slot.version == start // 10 and told(slot) == held(slot)
        if drawn.random() < 0.3:
            slot.wind_back()
            assert told(slot) == held(slot)
            batch(slot, start)
        slot.commit(slot.version + 1)
        if drawn.random() < 0.3:
            groups = np.array(drawn.sample(range(16), 5))
            slot.forget(groups)
            assert not told(slot).keys() & set(groups.tolist())
            if drawn.random() < 0.5:  # the turn fails and is taken again
                batch(slot, start + 10)
                slot.wind_back()
                slot.forget(groups)
        assert told(slot) == held(slot)
    assert len(told(slot)) > 5


def test_rows_that_are_loaded_are_counted() -> None:
    slot = Slot(QUERY, SETTINGS)
    for start in (0, 10, 20, 30):
        slot.feed("a", batch_of(schema("k"), [(start + i, i) for i in range(10)]))
    slot.load({"a": 40, "b": 40, "c": 40}, 40, 3)
    assert told(slot) == held(slot) and sum(told(slot).values()) == 30
    assert set(slot.spillable.table["idle"]) == {0}


def test_the_bytes_of_groups_and_of_what_stays_are_those_of_the_slot() -> None:
    slot = Slot(QUERY, SETTINGS)
    for version in range(4):
        batch(slot, 10 * version, rows=500, keys=400)
        spillable = slot.spillable
        if version < 2:  # no row has expired
            assert sum(spillable.table["bytes"]) + spillable.stays == pytest.approx(slot.state_bytes, abs=20)
        slot.commit(version + 1)
    assert slot.spillable.stays == 0


def test_growth_is_what_a_batch_like_the_last_adds() -> None:
    slot, grown = Slot(QUERY, SETTINGS), []
    for version in range(6):
        before = slot.state_bytes
        batch(slot, 10 * version, rows=500, keys=400)
        grown.append((slot.spillable.growth, slot.peak_bytes - before))
        slot.commit(version + 1)
    first, added = grown[0]
    assert first == pytest.approx(added, rel=0.1)
    assert abs(grown[-1][0]) < 0.2 * added  # as many rows expire as come


def test_results_are_counted_and_decay() -> None:
    slot = Slot(QUERY, SETTINGS)
    made = batch(slot, 0, rows=200, keys=20)
    assert made > 1000
    counted = slot.spillable.table["results"].sum()
    assert counted == pytest.approx(KEPT * made, rel=0.001)
    slot.wind_back()
    assert slot.accounts is not None and not slot.accounts.table()["results"].any()
    batch(slot, 0, rows=200, keys=20)
    slot.commit(1)
    for version in range(2, 5):
        slot.advance({"a": 10, "b": 10, "c": 10}, 10)
        slot.commit(version)
    assert slot.spillable.table["results"].sum() == pytest.approx(KEPT**3 * counted, rel=0.001)
    assert set(slot.spillable.table["idle"]) == {3}


def test_results_leave_with_the_rows_that_made_them() -> None:
    slot = Slot(QUERY, SETTINGS)
    batch(slot, 0, rows=200, keys=20)
    slot.commit(1)
    some = slot.spillable.table[:2]
    slot.forget(some["group"].astype(np.int64))
    batch(slot, 10, rows=20, keys=20)
    again = slot.spillable.table[:2]
    assert again["group"].tolist() == some["group"].tolist() and again["rows"].all()
    assert (again["results"] < 0.2 * some["results"]).all()


class Results:
    """A packet as far as accounts need it: complete tuples whose rows of each source are the first ones."""

    def __init__(self, size: int, rows: int) -> None:
        self.size, self.carried = size, None
        self.rows = dict.fromkeys(range(3), np.arange(size) % rows)


def test_many_results_are_counted_on_a_smaller_sample() -> None:
    slot = Slot(QUERY, SETTINGS)
    batch(slot, 0, rows=500, keys=400)
    assert slot.accounts is not None
    before, size = slot.accounts.table()["results"].sum(), APART // 8 + 1
    given: list[float] = []
    for number in range(24):
        slot.accounts.count_results(cast(Packet, Results(size, 500)))
        given.append(slot.accounts.table()["results"].sum() - before - (number + 1) * size)
    early, late = ENOUGH // size - 1, [number for number in range(24) if abs(given[number]) < 1]
    assert late[:early] == list(range(early)) and late[-1] >= 16, "no result is forgotten"
    assert len(late) < early + 5, "most of them are looked at together with later ones"


def test_a_slot_that_cannot_spill_has_no_accounts() -> None:
    for settings in (Settings(), Settings(memory=10**6, spill="off")):
        slot = Slot(QUERY, settings)
        batch(slot, 0)
        assert slot.accounts is None and slot.spillable == Spillable() and not slot.spillable.table.size
