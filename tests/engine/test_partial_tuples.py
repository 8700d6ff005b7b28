"""Partial results: rows whose tables have not answered yet. `fuzz --access` compares them with DuckDB."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eddyline.settings import Settings
from eddyline.testing import udfs
from tests.support.asked import AskedJob
from tests.support.jobs import Row

BOTH = "a [RANGE 9 MICROSECONDS], b [RANGE 9 MICROSECONDS]"
ONE = f"SELECT PARTIAL a.k, b.w, t.x FROM {BOTH}, t WHERE a.v = b.v AND a.k = t.k"
TWO = f"SELECT PARTIAL a.k, b.w, t.x, u.y FROM {BOTH}, t, u WHERE a.v = b.v AND a.k = t.k AND b.w = u.w"
TABLES = {"t": [(1, 10), (2, 20), (2, 21)], "u": [(7, 70), (8, 80)]}


def job(select: str, settings: Settings | None = None, **methods: Sequence[tuple[str, ...]]) -> AskedJob:
    found = AskedJob(
        select, TABLES, methods or {"t": [("k",)], "u": [("w",)]}, settings, a="k v", b="v w", t="k x", u="w y"
    )
    for lookups in found.lookups:
        lookups.holds = True
    return found


def let_answer(job: AskedJob, but: str = "") -> None:
    for lookups in job.lookups:
        lookups.holds, lookups.holds_table = False, but


def without_key(rows: Sequence[Row]) -> list[Row]:
    return sorted((row[:-1] for row in rows), key=str)


def test_a_row_is_given_without_its_table_and_again_with_it() -> None:
    asked = job(ONE)
    (first,) = asked.feed(a=[(1, 2, 5)], b=[(2, 5, 7)])
    assert first[:-1] == (2, 7, None, "t")
    assert asked.feed(a=[(3, 9, 9)]) == [], "it is given once"
    let_answer(asked)
    key = first[-1]
    assert asked.feed(a=[(4, 9, 9)]) == [(2, 7, 20, None, key), (2, 7, 21, None, key)]


def test_an_answer_within_the_batch_makes_no_partial_row() -> None:
    asked = job(ONE)
    let_answer(asked)
    assert without_key(asked.feed(a=[(1, 1, 5), (1, 4, 5)], b=[(2, 5, 7)])) == [(1, 7, 10, None)]


@pytest.mark.parametrize("router", ["auto", "random", "fixed"])
def test_streams_go_on_joining_while_tables_stall(router: str) -> None:
    """Every combination of the streams, once, although all conditions form a circle."""
    select = f"SELECT PARTIAL a.k, b.w FROM {BOTH}, t WHERE a.v = b.v AND a.k = t.k AND b.w = t.x"
    asked = job(select, Settings(check=True, router=router), t=[("k",), ("x",)], u=[("w",)])
    rows = asked.feed(a=[(1, 1, 5), (1, 2, 6)], b=[(2, 5, 10), (3, 6, 20), (3, 6, 20)])
    rows += asked.feed(a=[(4, 3, 5)])
    expected = [(1, 10, "t"), (2, 20, "t"), (2, 20, "t"), (3, 10, "t")]
    assert without_key(rows) == expected
    assert [row[:-2] for row in asked.end()] == [(1, 10), (2, 20), (2, 20)]


def test_a_table_that_answers_is_filled_in() -> None:
    asked = job(TWO)
    (first,) = asked.feed(a=[(1, 2, 5)], b=[(2, 5, 7)])
    assert first[:-1] == (2, 7, None, None, "t, u")
    let_answer(asked, but="u")
    rows = asked.feed(a=[(3, 9, 9)])
    assert without_key(rows) == [(2, 7, 20, None, "u"), (2, 7, 21, None, "u")]
    assert {row[-1] for row in rows} == {first[-1]}
    let_answer(asked)
    rows = asked.feed(a=[(4, 9, 9)])
    assert without_key(rows) == [(2, 7, 20, 70, None), (2, 7, 21, 70, None)]
    assert {row[-1] for row in rows} == {first[-1]}


@pytest.mark.parametrize("router", ["fixed", "random", "auto"])
@pytest.mark.parametrize("stalled", ["t", "u"])
def test_tables_that_have_answered_are_filled_in_whichever_is_asked_first(router: str, stalled: str) -> None:
    asked = job(TWO, Settings(check=True, router=router))
    let_answer(asked, but=stalled)
    other = "t" if stalled == "u" else "u"
    if other == "t":
        asked.feed(a=[(1, 2, 5), (1, 3, 5)], b=[(1, 5, 99)])  # t is known, u is not for what comes
        expected = [(2, 7, 20, None, "u"), (2, 7, 21, None, "u")]
    else:
        asked.feed(a=[(1, 99, 5)], b=[(1, 5, 7), (1, 5, 9)])
        expected = [(2, 7, None, 70, "t"), (3, 7, None, 70, "t")]
    rows = asked.feed(b=[(2, 5, 7)]) if other == "t" else asked.feed(a=[(2, 2, 5), (2, 3, 5)])
    assert without_key(rows) == expected
    let_answer(asked)
    assert {row[:4] for row in asked.feed(a=[(3, 9, 9)])} >= {(2, 7, 20, 70), (2, 7, 21, 70)}


def test_predicates_over_the_rows_that_are_there_hold() -> None:
    udfs.register()
    select = (
        f"SELECT PARTIAL a.k, b.w, t.x FROM {BOTH}, t, u "
        "WHERE a.v = b.v AND a.k = t.k AND b.w = u.w AND fuzz_mix(b.w) > 20 AND a.k <> 3 AND t.x > 20"
    )
    asked = job(select, Settings(check=True, router="fixed"))
    rows = asked.feed(a=[(1, 2, 5), (1, 3, 5)], b=[(2, 5, 8), (2, 5, 2)])
    assert without_key(rows) == [(2, 8, None, "t, u")]
    let_answer(asked, but="u")
    assert without_key(asked.feed(a=[(3, 9, 9)])) == [(2, 8, 21, "u")]


def test_tuples_wait_for_a_scan_until_it_ends() -> None:
    asked = job(ONE, t=[()], u=[("w",)])
    assert without_key(asked.feed(a=[(1, 2, 5)], b=[(2, 5, 7)])) == [(2, 7, None, "t")]
    let_answer(asked)
    assert without_key(asked.feed(a=[(3, 1, 5)])) == [(1, 7, 10, None), (2, 7, 20, None), (2, 7, 21, None)]


def test_a_batch_that_is_undone_leaves_nothing() -> None:
    asked = job(ONE)
    rows = {"a": [(1, 2, 5)], "b": [(2, 5, 7)]}
    given = asked.feed(commit=False, **rows)
    assert without_key(given) == [(2, 7, None, "t")]
    asked.engine.wind_back()
    asked.lookups[-1].fails = True  # after the tuples have asked
    with pytest.raises(RuntimeError):
        asked.feed(**rows)
    asked.engine.wind_back()
    asked.lookups[-1].holds = True
    assert asked.feed(a=[(1, 9, 9)]) == []
    assert asked.feed(**rows) == given


def test_a_tuple_whose_lookup_fails_does_not_wait() -> None:
    failing = AskedJob(
        ONE, TABLES, {"t": [("k",)]}, None, lambda table, key: key == (2,), a="k v", b="v w", t="k x", u="w y"
    )
    assert failing.feed(a=[(1, 2, 5)], b=[(2, 5, 7)]) == []
    failing.lookups[0].holds = True
    assert without_key(failing.feed(a=[(3, 2, 5), (3, 1, 5)])) == [(1, 7, None, "t"), (2, 7, None, "t")]
    failing.lookups[0].holds = False
    assert without_key(failing.feed(a=[(4, 9, 9)])) == [(1, 7, 10, None)]


def test_a_value_that_a_column_cannot_have_is_not_waited_for() -> None:
    select = f"SELECT PARTIAL a.k, t.x FROM {BOTH}, t WHERE a.v = b.v AND a.k * 0.5 = t.k"
    rows = job(select).feed(a=[(1, 2, 5), (1, 3, 5)], b=[(2, 5, 7)])
    assert without_key(rows) == [(2, None, "t")]


def test_errors_of_expressions_count_with_the_full_row() -> None:
    select = ONE.replace("a.k, b.w", "9223372036854775807 + a.k AS s")
    asked = job(select)
    assert without_key(asked.feed(a=[(1, 1, 5)], b=[(2, 5, 7)])) == [(None, None, "t")]
    assert asked.engine.counts.expression_errors == 0
    let_answer(asked)
    assert without_key(asked.feed(a=[(2, 9, 9)])) == [(None, 10, None)]
    assert asked.engine.counts.expression_errors == 1


@pytest.mark.parametrize("slots", [2, 3])
def test_slots_give_the_same_rows_with_the_same_keys(slots: int) -> None:
    """Also where only a table connects the keys of the streams, and their types differ."""
    select = f"SELECT PARTIAL a.k, b.w FROM {BOTH}, t WHERE a.v <= b.v AND a.k = t.k AND b.w * 1.0 = t.k * 1.0"
    rows = {"a": [(n, n % 3, 5) for n in range(9)], "b": [(n, 5, n % 4) for n in range(9)]}
    one, several = (job(select, Settings(check=True, slots=number)) for number in (1, slots))
    first, again = one.feed(**rows), several.feed(**rows)
    assert len(first) == 81 and sorted(first, key=str) == sorted(again, key=str)
    assert sorted(one.end(), key=str) == sorted(several.end(), key=str)


def test_the_key_is_that_of_the_rows_and_their_times() -> None:
    asked = job(ONE)
    rows = asked.feed(a=[(1, 2, 5), (2, 2, 5), (2, 2, 5)], b=[(2, 5, 7)])
    assert len(rows) == 3 and len({row[-1] for row in rows}) == 2
    other = job(ONE)
    assert other.feed(b=[(2, 5, 7)]) == []
    assert sorted(other.feed(a=[(2, 2, 5), (2, 2, 5), (1, 2, 5)])) == sorted(rows)
