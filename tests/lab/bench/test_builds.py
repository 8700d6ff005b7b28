"""Rows that nobody probes, with little data."""

from __future__ import annotations

from pathlib import Path

from lab.bench.builds import one_stream

HERE = Path(__file__).parents[3]


def test_one_stream_beside_itself() -> None:
    results = one_stream(str(HERE), rows=2000, keys=100, pairs=1, runs=2)
    found = {(r.case, r.metric): r.value for r in results}
    for tables, case in ((1, "one stream, 1 table"), (4, "one stream, 4 tables")):
        assert found[case, "this checkout: peak state, rows"] == 2000 + 100 * tables
        assert found[case, "the other checkout: state held, rows"] == 100 * tables
        assert 0.1 < found[case, "CPU time: this checkout / the other checkout"] < 10
