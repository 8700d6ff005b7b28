"""The compiled map from keys to integers, beside a dictionary."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.state.key_map import ABSENT, CodeMap, ValueMap, distinct, key_map
from tests.support.properties import examples

FIELD = pa.field("k", pa.int64())


def keys(some: list[int]) -> pa.RecordBatch:
    return pa.record_batch({"k": pa.array(some, pa.int64())})


def known(of: CodeMap | ValueMap) -> dict[int, int]:
    return dict(zip(of.keys.column(0).to_pylist(), of.values.tolist(), strict=True))


some_keys = st.lists(st.integers(-3, 300).map(lambda n: n * 7919), max_size=200)


@examples(100)
@given(st.lists(st.tuples(some_keys, some_keys), max_size=6))
def test_as_a_dictionary(turns: list[tuple[list[int], list[int]]]) -> None:
    coded, twin = CodeMap(FIELD), ValueMap([FIELD])
    for number, (added, taken) in enumerate(turns):
        values = np.arange(len(added))[::-1] - number
        assert coded.add(keys(added), values).tolist() == twin.add(keys(added), values).tolist()
        assert coded.find(keys(taken)).tolist() == twin.find(keys(taken)).tolist()
        copy = coded.copy()
        assert coded.take(keys(taken)).tolist() == twin.take(keys(taken)).tolist()
        assert known(coded) == known(twin) and len(coded) == len(twin)
        assert len(copy) == len(coded) + len(set(taken) & known(copy).keys())


def test_keys_that_lie_side_by_side_move_back_over_the_end() -> None:
    """All keys of a table that is full up to a half are taken out, in many orders."""
    numbers = np.arange(128) * 1_000_003
    for seed in range(20):
        coded = CodeMap(FIELD)
        coded.add(keys(numbers.tolist()), numbers)
        for key in np.random.default_rng(seed).permutation(numbers).tolist():
            assert coded.take(keys([key])).tolist() == [key]
            left = coded.find(keys(numbers.tolist()))
            assert sum(left != ABSENT) == len(coded) and set(left.tolist()) <= {ABSENT, *numbers.tolist()}
        assert not coded


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (pa.int8(), [-128, 127]),
        (pa.uint64(), [2**64 - 1, 2**63, 0]),
        (pa.date32(), [datetime.date(1969, 12, 31), datetime.date(2026, 1, 1)]),
        (pa.timestamp("us", "UTC"), [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)]),
        (pa.string(), ["", "x"]),
        (pa.float64(), [0.5, float("inf")]),
        (pa.decimal128(10, 2), []),
    ],
)
def test_keys_come_back_as_they_were(type: pa.DataType, values: list[object]) -> None:
    batch = pa.record_batch({"k": pa.array(values, type)})
    of = key_map(list(batch.schema))
    of.add(batch, np.arange(batch.num_rows))
    order = np.argsort(of.values)
    assert of.keys.take(pa.array(order)) == batch and of.find(batch).tolist() == list(range(batch.num_rows))


def test_each_key_once() -> None:
    two = pa.record_batch({"a": [1, 1, 2, 1], "b": ["x", "y", "x", "x"]})
    assert distinct(two) == two.slice(0, 3)
    assert distinct(keys([3, 1, 3])) == keys([3, 1]) and distinct(keys([2, 1])) == keys([2, 1])


def test_null_is_no_key() -> None:
    for of in (CodeMap(FIELD), ValueMap([FIELD])):
        of.add(keys([0, 1]), np.array([5, 6]))
        asked = pa.record_batch({"k": pa.array([1, None, 0], pa.int64())})
        assert of.find(asked).tolist() == [6, ABSENT, 5]
