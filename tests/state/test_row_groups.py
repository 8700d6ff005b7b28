"""Partition groups that follow from a key, beside those of plan/partition.py."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.expr import SourceColumn
from eddyline.plan.partition_groups import key_groups
from eddyline.state.arena import Arena
from eddyline.state.layout import Layout
from eddyline.state.row_groups import RowGroups
from eddyline.state.stem import SteM

VALUES = {
    "int64": pa.array([0, 1, -1, 2**63 - 1, -(2**63), 7, 7, 12]),
    "int16": pa.array([0, 1, -1, 300, 5, 7, 7, 12], pa.int16()),
    "double": pa.array([0.0, -0.0, 1.5, float("nan"), float("inf"), 7, 7, 12]),
    "text": pa.array(["", "a", "b", "ab", "ba", "x", "x", "a longer text"]),
    "decimal": pa.array([0, 1, -1, 2**70, 5, 7, 7, 12], pa.decimal128(38, 0)),
    "dictionary": pa.array(["", "a", "b", "ab", "ba", "x", "x", "y"]).dictionary_encode(),
    "date": pa.array([0, 1, -1, 300, 5, 7, 7, 12], pa.date32()),
}


@pytest.mark.parametrize("size", [1, 5, 16])
@pytest.mark.parametrize("name", VALUES)
def test_the_groups_of_rows_follow_from_their_key(name: str, size: int) -> None:
    values = VALUES[name]
    key = SourceColumn(0, "k", values.type)
    stem = SteM(Arena(), Layout(True, False, (), (key,), ((key,),), ()), RowGroups(100, size, key))
    assert not stem.rows.stores_groups
    for at, some in enumerate((values, values.slice(3), values.slice(1, 4))):
        stem.rows.append({key: some}, np.full(len(some), at), None)
    stem.build(0, stem.rows.stored)
    stem.commit()
    wanted = np.concatenate([key_groups(some, size) for some in (values, values.slice(3), values.slice(1, 4))]) + 100
    assert stem.rows.groups(slice(0, stem.built)).tolist() == wanted.tolist()
    some = np.array([11, 2, 2, 5])
    assert stem.rows.groups(some).tolist() == wanted[some].tolist()
    kept = np.array([1, 4, 9])
    stem.retain(kept, {})
    assert stem.rows.groups(slice(stem.rows.min_live, stem.built)).tolist() == wanted[kept].tolist()


def test_groups_that_no_key_tells_come_with_the_rows() -> None:
    key = SourceColumn(0, "k", pa.int64())
    stem = SteM(Arena(), Layout(True, False, (), (key,), ((key,),), ()), RowGroups(100, 8, None))
    assert stem.rows.stores_groups
    stem.rows.append({key: pa.array([1, 2, 3])}, np.zeros(3, np.int64), None, np.array([105, 100, 107]))
    assert stem.rows.groups(slice(1, 3)).tolist() == [100, 107]
