"""Group numbers: equal rows and only equal rows share one, whatever the types and the size of the key space."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa

from eddyline.bound.group_ids import group_ids, plain, representatives


def check(columns: list[pa.Array], rows: list[tuple[object, ...]]) -> None:
    ids, count = group_ids([plain(c) for c in columns], len(rows))
    numbers: dict[tuple[object, ...], int] = {}
    for row, number in zip(rows, ids.tolist(), strict=True):
        assert numbers.setdefault(row, number) == number
    assert sorted(numbers.values()) == list(range(count)) == list(range(len(numbers)))
    assert ids[representatives(ids, count)].tolist() == list(range(count))


def test_floats_nan_and_zeros() -> None:
    odd_nan = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    values = pa.array([*odd_nan, math.nan, 0.0, -0.0, None, 1.0], pa.float64(), from_pandas=False)
    check([values], [("nan",), ("nan",), ("nan",), (0,), (0,), (None,), (1,)])
    for type_ in (pa.float16(), pa.float32()):
        narrow = pa.array(np.array([math.nan, 0.0, -0.0, 1.0], np.float64)).cast(pa.float32()).cast(type_)
        check([narrow], [("nan",), (0,), (0,), (1,)])


def test_no_columns_is_one_group() -> None:
    assert group_ids([], 0)[1] == 0
    check([], [(), (), ()])


def test_many_wide_columns_do_not_overflow() -> None:
    rng = random.Random(1)
    rows = [tuple(rng.choice([rng.randrange(-(2**63), 2**63), 5, None]) for _ in range(12)) for _ in range(400)]
    rows += rows[::3]
    check([pa.array(column, pa.int64()) for column in zip(*rows, strict=True)], rows)


def test_integers_far_apart_and_close() -> None:
    for values in ([-(2**63), 2**63 - 1, 0, 0], [2**62, 2**62 + 3, 2**62 + 3], [-7, -7, -6]):
        check([pa.array(values)] * 3, [(v,) for v in values])
        ids, count = group_ids([np.array(values)], len(values))
        assert count == len(set(values)) == len(set(ids.tolist()))
    check([pa.array([2**64 - 1, 0, 2**64 - 1], pa.uint64())], [(1,), (0,), (1,)])


def test_null_types_and_null_dictionaries() -> None:
    check([pa.nulls(3)], [(None,)] * 3)
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.int8()), pa.array(["a", None, "a"]))
    check([coded], [("a",), (None,), ("a",), (None,)])
