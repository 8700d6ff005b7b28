"""The keys that are asked, beside a dictionary that takes one key at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.lookups.pending_keys import AskedKeys
from eddyline.state.key_values import values
from tests.support.properties import examples

FIELDS = [pa.field("k", pa.int64())]


def keys(*some: int) -> pa.RecordBatch:
    return pa.record_batch({"k": pa.array(some, pa.int64())})


def add(asked: AskedKeys, some: Sequence[tuple[int, int]], mark: int = 0, batch: int = 9) -> list[int]:
    """Keys and times; returns the new keys."""
    found = asked.add(keys(*(key for key, _ in some)), np.array([time for _, time in some], np.int64), mark, batch)
    new: list[int] = found.column(0).to_pylist()
    return new


pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=8)


@examples(100)
@given(st.lists(st.tuples(pairs, st.integers(0, 2), st.lists(st.integers(0, 5), max_size=4)), max_size=5))
def test_as_one_key_at_a_time(turns: list[tuple[list[tuple[int, int]], int, list[int]]]) -> None:
    asked, twin = AskedKeys(FIELDS), dict[int, tuple[int, int]]()
    for some, mark, answered in turns:
        new = {key for key, _ in some} - twin.keys()
        found = add(asked, some, mark)
        assert len(found) == len(new) and set(found) == new
        for key, time in some:
            since, first = twin.get(key, (time, mark))
            twin[key] = min(since, time), first
        waited = asked.take(keys(*answered))
        gone = {key: twin.pop(key) for key in dict.fromkeys(answered) if key in twin}
        assert waited.keys.column(0).to_pylist() == [key for (key,) in waited.values] == list(gone)
        assert not gone or waited.since == min(since for since, _ in gone.values())
        assert waited.marks_of(waited.keys).tolist() == [mark for _, mark in gone.values()]
        assert len(asked) == len(twin)
        assert asked.oldest == min((since for since, _ in twin.values()), default=None)
        again = AskedKeys(FIELDS)
        again.restore(asked.saved())
        assert again.saved().sort_by("k") == asked.saved().sort_by("k")
        assert {row["k"]: (row["\0since"], row["\0mark"]) for row in asked.saved().to_pylist()} == twin


def test_marks_of_keys() -> None:
    asked = AskedKeys(FIELDS)
    add(asked, [(1, 5)], mark=3)
    add(asked, [(2, 5)])
    assert asked.take(keys(1, 2)).marks_of(keys(1, 2, 1)).tolist() == [3, 0, 3]
    add(asked, [(1, 5)], mark=2)
    add(asked, [(2, 5)])
    assert asked.marks == {2}
    assert asked.least_marks(keys(1, 1, 2, 3), np.array([1, 3, 3, 3])).tolist() == [1, 2, 0, 3]


def test_what_another_slot_saved_waits_too_at_the_first_mark() -> None:
    here, there = AskedKeys(FIELDS), AskedKeys(FIELDS)
    add(here, [(1, 5), (3, 5)], mark=1)
    add(there, [(1, 3), (2, 7)], mark=2)
    add(there, [(3, 6)])
    here.merge(there.saved())
    assert {tuple(row.values()) for row in here.saved().to_pylist()} == {(3, 5, 0), (1, 3, 1), (2, 7, 2)}


def test_a_key_that_failed_is_asked_again_in_a_later_batch() -> None:
    asked = AskedKeys(FIELDS)
    asked.fail(keys(1), 4)
    assert add(asked, [(1, 5), (2, 5)], batch=3) == [2]
    again = AskedKeys(FIELDS)
    again.merge(asked.saved())
    assert add(again, [(1, 5), (2, 5)], batch=4) == [1]
    assert again.take(keys(1)).marks_of(keys(1)).tolist() == [4], "it joins what came after its failure"


def test_a_copy_is_one_of_its_own() -> None:
    asked = AskedKeys(FIELDS)
    add(asked, [(1, 5)])
    copy = asked.copy()
    asked.clear()
    assert (len(asked), asked.oldest, len(copy), copy.keys) == (0, None, 1, keys(1))


def test_keys_of_several_columns_and_not_a_number() -> None:
    fields = [pa.field("a", pa.float64()), pa.field("b", pa.string())]
    asked = AskedKeys(fields)
    some = pa.record_batch([[np.nan, 0.0, np.nan, -0.0], ["x", "y", "x", "y"]], names=["a", "b"])
    assert asked.add(some, np.arange(4), 0, 0).num_rows == 2
    assert list(values(asked.keys)) == [("NaN", "x"), (0.0, "y")]
    assert asked.add(some, np.arange(4), 0, 0).num_rows == 0
    assert asked.take(some).keys.num_rows == 2 and len(asked) == 0
    assert asked.saved().num_rows == 0
