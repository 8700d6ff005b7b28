"""Rows of a scan that cannot be read: each is told once, by one slot, whichever process ends the scan."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from eddyline.engine.lookups.answers import UnreadableRows
from eddyline.engine.lookups.look_up import DeadRows
from eddyline.engine.lookups.table import KnownTable


def dead(*keys: int) -> DeadRows:
    rows = pa.record_batch({"k": pa.array(keys, pa.int64()), "v": pa.nulls(len(keys), pa.int64())})
    texts = pa.record_batch({"k": pa.array(map(str, keys)), "v": pa.array(["x"] * len(keys))})
    return DeadRows(rows, texts, pa.array([f"no {key}" for key in keys]))


def known() -> KnownTable:
    nothing: Any = None
    return KnownTable(nothing, (), {}, 0, nothing)


def test_they_go_with_the_scan_to_another_process() -> None:
    one, other = known(), known()
    for part in (dead(1, 2), None, dead(3)):
        one.take_dead(part)
    other.restore(one.saved())
    assert other.dead == one.dead and len(one.dead) == 2


def test_a_scan_that_begins_again_brings_them_again() -> None:
    table = known()
    table.take_dead(dead(1))
    table.wind_back()
    assert table.dead == []


def test_a_scan_tells_them_in_the_first_slot_an_index_where_it_was_asked() -> None:
    told = [[UnreadableRows("t", dead(1), by_scan).is_told_by(slot) for slot in (0, 1)] for by_scan in (True, False)]
    assert told == [[True, False], [True, True]]
    counts = UnreadableRows("t", dead(7, 8), by_scan=True).counts
    assert (counts.dead, counts.reason) == (2, "no 7")
    some = dead(7, 8).having(pa.array([False, True]).to_numpy(zero_copy_only=False))
    assert some == dead(8)
