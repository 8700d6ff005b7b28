"""The baseline: index joins with a cache and a queue of their own."""

from __future__ import annotations

from lab.experiments.encapsulated import QUEUE, Cache, IndexJoin, joined
from lab.experiments.timed_lookups import Outage


def test_rows_in_the_cache_wait_behind_one_that_is_not() -> None:
    join = IndexJoin(1.0)
    assert joined([join], [1, 1, 2, 1], [0.0] * 4, lambda row: 0) == [1.0, 1.0, 2.0, 2.0]
    assert join.probes == [1.0, 2.0]


def test_a_stall_delays_all_rows_behind_it() -> None:
    assert joined([IndexJoin(1.0, Outage(1.5, 9.0))], [1, 2, 1], [0.0, 0.0, 3.0], lambda row: 0) == [1.0, 9.5, 9.5]


def test_a_full_queue_stops_the_source_for_other_joins_too() -> None:
    keys = [*range(QUEUE + 2), 100]
    done = joined([IndexJoin(5.0), IndexJoin(1.0)], keys, [0.0] * len(keys), lambda row: int(row == len(keys) - 1))
    assert done[:2] == [5.0, 10.0]
    assert done[-1] == 6.0, "its own join was free, but the row before it found room only at second 5"


def test_caches_are_private_or_shared() -> None:
    keys, arrivals = [1, 1], [0.0, 2.0]
    private = [IndexJoin(1.0), IndexJoin(1.0)]
    assert joined(private, keys, arrivals, lambda row: row) == [1.0, 3.0]
    one: Cache = {}
    shared = [IndexJoin(1.0, cache=one), IndexJoin(1.0, cache=one)]
    assert joined(shared, keys, arrivals, lambda row: row % 2) == [1.0, 2.0]
    assert [len(join.probes) for join in shared] == [1, 0]
