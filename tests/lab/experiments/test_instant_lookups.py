"""Lookups that answer at once."""

from __future__ import annotations

import pyarrow as pa

from eddyline.engine.lookups.look_up import Request
from lab.experiments.instant_lookups import InstantLookups


def test_requests_of_one_index_are_answered_together() -> None:
    lookups = InstantLookups({"t": pa.record_batch({"k": [2, 0, 1], "v": [20, 0, 10]})}, "k")
    lookups.ask([Request("t", 0, pa.record_batch({"k": [1]})), Request("t", 0, pa.record_batch({"k": [2, 0]}))])
    assert lookups.asked == 1
    (answer,) = lookups.answers(0.0)
    assert answer.keys.to_pylist() == [{"k": 1}, {"k": 2}, {"k": 0}]
    assert answer.rows.column("v").to_pylist() == [10, 20, 0]
    assert lookups.answers(0.0) == []
    lookups.ask([Request("t", 0, pa.record_batch({"k": [1]}))])
    lookups.close()
    assert lookups.asked == 0
