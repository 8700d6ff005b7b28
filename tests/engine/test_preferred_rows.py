"""Preferred rows come first; the results are the same. `fuzz --access` changes preferences at random."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eddyline.engine.lookups.look_up import Request
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from tests.support.asked import AskedJob
from tests.support.jobs import batch_of, bound, schema

ONE = "SELECT a.v, t.x FROM a [RANGE 50 MICROSECONDS], t WHERE a.k = t.k"
CHAIN = "SELECT a.v, t.x, u.y FROM a [RANGE 50 MICROSECONDS], t, u WHERE a.k = t.k AND t.x = u.x"


def job_of(select: str = ONE, **settings: str) -> AskedJob:
    tables = {"t": [(k, k + 10) for k in range(9)], "u": [(x, x) for x in range(20)]}
    columns = {"a": "k v", "t": "k x", "u": "x y"}
    used = {name: of for name, of in columns.items() if name == "a" or f" {name}" in select}
    methods = {"t": [("k",)], "u": [("x",)]}
    given = {name: rows for name, rows in tables.items() if name in used}
    return AskedJob(select, given, methods, Settings(check=True, **settings), **used)  # type: ignore[arg-type]


def ranks(requests: list[Request]) -> list[tuple[int, list[int]]]:
    return [(request.rank, request.keys.column(0).to_pylist()) for request in requests]


def asked_of(job: AskedJob) -> dict[tuple[str, int], int]:
    """The rank of each key that was asked."""
    requests = job.lookups[0].requests
    return {(one.table, key): one.rank for one in requests for key in one.keys.column(0).to_pylist()}


def test_preferred_rows_of_a_batch_are_processed_first() -> None:
    query = bound("SELECT s.v FROM s", s="v")
    engine = BatchDriver(query, Settings(check=True, prefer="v >= 5", input_batch=1))
    columns = schema("v")
    rows = [("s", batch_of(columns, some)) for some in ([(1, 1), (2, 7), (3, 2)], [(4, 3), (5, 9)])]
    found = [v for batch in engine.batch(rows).results for v in batch.column("v").to_pylist()]
    assert found == [7, 9, 1, 2, 3]
    engine.preferences.change(None)
    later = engine.batch([("s", batch_of(columns, [(6, 1), (7, 9)]))]).results
    assert [v for batch in later for v in batch.column("v").to_pylist()] == [1, 9]
    assert engine.decisions["preference"] == 2


@pytest.mark.parametrize(
    "select, settings", [("SELECT s.v FROM s", {"execution": "total"}), ("SELECT s.v FROM s [ROWS 9]", {})]
)
def test_rows_that_have_an_order_keep_it(select: str, settings: dict[str, str]) -> None:
    engine = BatchDriver(bound(select, s="v"), Settings(check=True, prefer="v >= 5", **settings))  # type: ignore[arg-type]
    found = engine.batch([("s", batch_of(schema("v"), [(1, 1), (2, 7), (3, 2)]))]).results + engine.end().results
    assert [v for batch in found for v in batch.column("v").to_pylist()] == [1, 7, 2]


def test_keys_that_preferred_rows_ask_for_have_a_rank() -> None:
    job = job_of(prefer="a.v > 5")
    job.lookups[0].holds = True
    job.feed(a=[(1, 1, 1), (2, 2, 9), (3, 3, 1)])
    assert sorted(ranks(job.lookups[0].requests)) == [(0, [1, 3]), (1, [2])]
    job.feed(a=[(4, 3, 9), (5, 1, 1)])
    assert ranks(job.lookups[0].requests)[2:] == [(1, [3])], "3 is asked already: it moves forward"
    job.lookups[0].holds = False
    assert job.feed(a=[(6, 4, 0)]) == [(0, 14), (1, 11), (1, 11), (1, 13), (9, 12), (9, 13)]


def test_a_key_of_the_table_is_preferred_by_the_rows_that_ask_for_it() -> None:
    job = job_of(prefer="t.k % 2 = 0")
    job.lookups[0].holds = True
    job.feed(a=[(1, 1, 1), (2, 2, 9), (3, 4, 1), (4, 2, 1)])
    assert sorted((rank, sorted(keys)) for rank, keys in ranks(job.lookups[0].requests)) == [(0, [1]), (1, [2, 4])]


def test_another_preference_moves_keys_that_are_asked() -> None:
    job = job_of()
    job.lookups[0].holds = True
    job.feed(a=[(1, 1, 1), (2, 2, 9), (3, 3, 1)])
    job.engine.preferences.change("a.v > 5")
    job.feed(a=[])
    job.engine.preferences.change("a.v = 1")
    job.feed(a=[])
    job.feed(a=[])
    first, second, third = ranks(job.lookups[0].requests)
    assert (first, second) == ((0, [1, 2, 3]), (second[0], [2])) and second[0] > 0
    assert third[0] > second[0] and sorted(third[1]) == [1, 3], "a later preference goes before an earlier one"
    job.lookups[0].holds = False
    assert job.feed(a=[(9, 5, 0)]) == [(0, 15), (1, 11), (1, 13), (9, 12)]


def test_everything_that_is_asked_again_is_ranked_again() -> None:
    job = job_of(prefer="a.v > 5")
    job.lookups[0].holds = True
    job.feed(a=[(1, 1, 1), (2, 2, 9)])
    job.engine.batch([], commit=False)
    job.engine.wind_back()
    job.feed(a=[])
    again = ranks(job.lookups[1].requests)
    assert (again[0][0], sorted(again[0][1])) == (0, [1, 2]) and again[1:] == [(1, [2])]


def test_a_tuple_is_preferred_for_each_table_that_it_asks() -> None:
    job = job_of(CHAIN, prefer="a.v > 5")
    job.feed(a=[(1, 1, 1), (2, 2, 9)])
    asked = asked_of(job)
    assert asked == {("t", 1): 0, ("t", 2): 1, ("u", 11): 0, ("u", 12): 1}


def test_rows_of_an_answer_are_in_order() -> None:
    job = job_of(CHAIN, prefer="t.x > 12")
    job.feed(a=[(1, 1, 1), (2, 4, 9)])
    asked = asked_of(job)
    assert asked == {("t", 1): 0, ("t", 4): 0, ("u", 11): 0, ("u", 14): 1}
    preferred = job.engine.slot.preferred
    assert preferred is not None
    rows = pa.record_batch({"k": [1, 2, 3, 4], "x": [1, 20, 2, 13]})
    assert preferred.in_order("t", rows).column("k").to_pylist() == [2, 4, 1, 3]
