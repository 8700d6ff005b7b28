"""Predicates in the scan keep the rows that WHERE keeps, however many rows are evaluated together."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lab.bench.streams import START, query_over
from lab.experiments.scanned import ScannedPredicates

ROWS = pa.record_batch(
    {
        "ts": pa.array([START + n for n in range(6)], pa.timestamp("us")),
        "a": pa.array([1, 2, 3, None, 5, 6]),
        "b": pa.array([0, 1, 0, 1, 0, 1]),
    }
)


@pytest.mark.parametrize("at_a_time", [1, 4, 100])
def test_rows_that_pass_all_predicates(at_a_time: int) -> None:
    query = query_over({"s": ROWS}, "SELECT a FROM s WHERE a > 1 AND b = 1")
    kept = ScannedPredicates(query.predicates, at_a_time)(ROWS)
    assert kept.column("a").to_pylist() == [2, 6]
    assert kept.schema == ROWS.schema
