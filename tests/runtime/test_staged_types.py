"""Rows come back from our own parquet files in the types that they had."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddyline.bound.types import MONTHS
from eddyline.runtime.staged_types import restored, storable


@pytest.mark.parametrize(
    "column",
    [
        pa.array([(1, 2, 3), None, (-14, 0, -5)], MONTHS),
        pa.array([(1, 2, 3), None, (-14, 0, -5)], MONTHS).slice(1),
        pa.array([], MONTHS),
        pa.array([1, 2], pa.duration("s")),
        pa.array([1, None], pa.timestamp("s")),
        pa.array([7, 7, 8]).dictionary_encode(),
        pa.array(["a", None]).dictionary_encode(),
    ],
)
def test_there_and_back(column: pa.Array) -> None:
    rows, out = pa.table({"x": column}), pa.BufferOutputStream()
    pq.write_table(storable(rows), out)
    back = restored(pq.read_table(pa.BufferReader(out.getvalue())), rows.schema)
    assert back.schema == rows.schema and back["x"].to_pylist() == rows["x"].to_pylist()
