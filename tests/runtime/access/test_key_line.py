"""The line of keys: by rank, then by time."""

from __future__ import annotations

import pyarrow as pa

from eddyline.runtime.access.key_line import KeyLine


def keys(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"k": pa.array(values, pa.int64())})


def taken(line: KeyLine, most: int) -> list[list[int]]:
    found = []
    while line:
        found.append(line.take(most).column(0).to_pylist())
    return found


def test_first_come_first_served() -> None:
    line = KeyLine()
    line.put(keys(1, 2, 3))
    line.put(keys(4, 5))
    assert taken(line, 2) == [[1, 2], [3, 4], [5]]
    assert not line


def test_a_larger_rank_goes_first() -> None:
    line = KeyLine()
    line.put(keys(1, 2))
    line.put(keys(3, 4), 1)
    line.put(keys(5), 2)
    line.put(keys(6), 1)
    assert taken(line, 3) == [[5, 3, 4], [6, 1, 2]]


def test_keys_in_line_move_forward_and_others_are_left_out() -> None:
    line = KeyLine()
    line.put(keys(1, 2, 3))
    line.put(keys(4), 1)
    line.put(keys(5), 3)
    line.forward(keys(5, 2, 99, 4), 2)
    assert taken(line, 10) == [[5, 2, 4, 1, 3]]


def test_all_keys_of_a_rank_move() -> None:
    line = KeyLine()
    line.put(keys(1))
    line.forward(keys(1), 1)
    line.put(keys(2))
    assert taken(line, 1) == [[1], [2]]


def test_keys_of_several_columns_in_a_long_line() -> None:
    line = KeyLine()
    both = pa.record_batch({"a": list(range(100)), "b": ["x", "y"] * 50})
    line.put(both)
    line.forward(both.slice(90, 2), 1)
    assert line.take(3).column("a").to_pylist() == [90, 91, 0]
