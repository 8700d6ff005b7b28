"""Self-joins with one SteM beside those with a SteM for each alias, with little data."""

from __future__ import annotations

from lab.bench.aliases import CASES, measure


def test_one_stem_takes_fewer_bytes() -> None:
    results = measure(rows=30_000, keys=2000, rounds=1)
    assert [r.case for r in results] == [case for case in CASES for _ in range(2)]
    size = {r.case: r.value for r in results if r.metric.startswith("bytes")}
    assert size["a.v <> b.v"] == 0.5 and abs(size["three aliases"] - 1 / 3) < 0.2
    assert all(0.2 < value < 1 for value in size.values())
    assert all(0.1 < r.value < 10 for r in results)
