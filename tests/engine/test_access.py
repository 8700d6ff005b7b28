"""Tables that are asked: what is asked, once; rows that wait; failures. `fuzz --access` compares with DuckDB."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.engine.lookups.look_up import AnswersKept
from eddyline.engine.lookups.modules import AccessModules
from eddyline.errors import InternalError, SettingError
from eddyline.settings import Settings
from tests.support.asked import AskedJob

ONE = "SELECT a.v, t.x FROM a [RANGE 50 MICROSECONDS], t WHERE a.k = t.k"
TWO = (
    "SELECT a.v, b.v AS w, t.x FROM a [RANGE 9 MICROSECONDS], b [RANGE 9 MICROSECONDS], t WHERE a.v = b.v AND a.k = t.k"
)

BOTH = "a [RANGE 9 MICROSECONDS], b [RANGE 9 MICROSECONDS]"


def test_a_key_is_asked_once_however_often_it_comes() -> None:
    job = AskedJob(ONE, {"t": [(1, 10), (1, 11)]}, {"t": [("k",)]}, a="k v", t="k x")
    assert job.feed(a=[(1, 1, 5), (2, 1, 6)]) == [(5, 10), (5, 11), (6, 10), (6, 11)]
    assert job.feed(a=[(3, 1, 7), (4, 2, 8)]) == [(7, 10), (7, 11)]
    assert job.feed(a=[(5, 2, 9)]) == []  # that there is no row is an answer too
    assert job.asked_keys == [("t", (1,)), ("t", (2,))]


def test_a_key_is_not_asked_again_while_it_is_asked() -> None:
    job = AskedJob(ONE, {"t": [(1, 10)]}, {"t": [("k",)]}, a="k v", t="k x")
    job.lookups[0].holds = True
    assert job.feed(a=[(1, 1, 5)]) == [] and job.feed(a=[(2, 1, 6)]) == []
    job.lookups[0].holds = False
    assert job.feed(a=[(3, 1, 7)]) == [(5, 10), (6, 10), (7, 10)]
    assert job.asked_keys == [("t", (1,))]


def test_a_tuple_asks_only_after_it_has_joined() -> None:
    """With the fixed router the streams are joined first; rows that join with nothing ask for nothing."""
    job = AskedJob(
        TWO, {"t": [(1, 10)]}, {"t": [("k",)]}, Settings(check=True, router="fixed"), a="k v", b="v", t="k x"
    )
    assert job.feed(a=[(1, 1, 5)]) == [] and job.asked_keys == []
    assert job.feed(b=[(2, 5)]) == [(5, 5, 10)] and job.asked_keys == [("t", (1,))]


def test_rows_that_wait_outlive_their_window_and_the_batch() -> None:
    job = AskedJob(TWO, {"t": [(1, 10)]}, {"t": [("k",)]}, a="k v", b="v", t="k x")
    job.lookups[0].holds = True
    assert job.feed(a=[(1, 1, 5)], b=[(2, 5)]) == []
    assert job.feed(a=[(1000, 2, 6)], b=[(1000, 7)]) == []
    assert job.engine.slot.executor.held == 1
    job.lookups[0].holds = False
    assert job.feed(a=[(1001, 3, 6)]) == [(5, 5, 10)]
    assert job.engine.slot.executor.held is None
    assert job.engine.slot.executor.stems[0].held == 2, "rows expire again"


def test_a_slide_boundary_waits() -> None:
    select = "SELECT count(*) AS n FROM a [RANGE 10 MICROSECONDS SLIDE 10 MICROSECONDS], t WHERE a.k = t.k"
    job = AskedJob(select, {"t": [(1, 10)]}, {"t": [("k",)]}, a="k", t="k x")
    job.lookups[0].holds = True
    assert job.feed(a=[(5, 1)]) == [] and job.feed(a=[(25, 2)]) == []
    job.lookups[0].holds = False
    assert job.feed(a=[(26, 2)]) == [(1,)]


def test_a_batch_that_is_undone_asks_again() -> None:
    job = AskedJob(ONE, {"t": [(1, 10)]}, {"t": [("k",)]}, a="k v", t="k x")
    assert job.feed(commit=False, a=[(1, 1, 5)]) == [(5, 10)]
    job.engine.wind_back()
    assert job.feed(a=[(1, 1, 5)]) == [(5, 10)]
    assert job.asked_keys == [("t", (1,))] * 2


def test_rows_whose_lookup_failed_are_dead_and_later_ones_are_not() -> None:
    down = True
    job = AskedJob(TWO, {"t": [(1, 10)]}, {"t": [("k",)]}, None, lambda table, key: down, a="k v", b="v", t="k x")
    assert job.feed(a=[(1, 1, 5)], b=[(1, 5)]) == []
    assert [(f.table, f.keys.to_pylist(), f.reason) for f in job.failed] == [("t", [{"k": 1}], "it does not answer")]
    assert job.engine.counts.streams["t"].dead == 1 and job.engine.counts.streams["t"].reason == "it does not answer"
    assert job.engine.slot.executor.held is None
    assert job.feed(b=[(1, 7)]) == []
    down = False
    assert job.feed(b=[(2, 5)]) == [(5, 5, 10)], "the tuple with the new row; not that of the two rows that are dead"


def test_failures_are_remembered_as_long_as_rows_that_are_dead() -> None:
    job = AskedJob(ONE, {"t": [(1, 10)]}, {"t": [("k",)]}, None, lambda table, key: key == (1,), a="k v", t="k x")
    access = job.engine.slot.executor.access
    assert access is not None
    asked = access.tables["t"].indexes[0].asked
    job.feed(a=[(1, 1, 5)])
    assert asked.marks == {1}
    job.feed(a=[(10**9, 2, 6)])
    job.feed(a=[(2 * 10**9, 2, 6)])
    assert not asked.marks


def test_a_value_that_the_column_cannot_have_is_not_asked() -> None:
    narrow = pa.schema([("k", pa.int8()), ("x", pa.int64())])
    job = AskedJob(ONE, {"t": [(1, 10)]}, {"t": [("k",)]}, a="k v", t=narrow)
    assert job.feed(a=[(1, 1, 5), (1, 257, 6)]) == [(5, 10)]
    assert job.asked_keys == [("t", (1,))]


def test_a_scan_is_read_once_and_answers_everything() -> None:
    job = AskedJob(ONE, {"t": [(1, 10), (2, 20)]}, {"t": [()]}, a="k v", t="k x")
    assert job.feed(a=[(1, 1, 5)]) == [(5, 10)]
    assert job.feed(a=[(2, 2, 6), (3, 3, 7)]) == [(6, 20)]
    assert len(job.lookups[0].requests) == 1


def test_a_row_that_two_methods_answer_is_there_once() -> None:
    select = (
        "SELECT a.v, b.v AS w FROM a [RANGE 9 MICROSECONDS], b [RANGE 9 MICROSECONDS], t WHERE a.k = t.k AND b.k = t.x"
    )
    job = AskedJob(select, {"t": [(1, 10), (1, 10), (2, 10)]}, {"t": [("k",), ("x",)]}, a="k v", b="k v", t="k x")
    assert job.feed(a=[(1, 1, 5)]) == []
    assert job.feed(b=[(2, 10, 6)]) == [(5, 6), (5, 6)]
    assert job.feed(a=[(3, 2, 7)]) == [(7, 6)]


def test_a_plan_with_intermediate_states_is_refused() -> None:
    with pytest.raises(SettingError, match="has no intermediate states"):
        AskedJob(TWO, {"t": []}, {"t": [("k",)]}, Settings(plan="((a b) t)"), a="k v", b="v", t="k x")


def test_answers_are_forgotten_when_they_are_old() -> None:
    job = AskedJob(TWO, {"t": [(1, 10)]}, {"t": [("k",)]}, a="k v", b="v", t="k x")
    job.lookups[0].kept = {"t": AnswersKept(seconds=0.0)}
    assert job.feed(a=[(1, 1, 5)], b=[(1, 5)]) == [(5, 5, 10)]
    assert job.feed(b=[(2, 5)]) == [(5, 5, 10)], "the new tuple; not again that of the first batch"
    assert job.asked_keys == [("t", (1,))] * 2
    assert job.engine.slot.executor.stems[2].held == 1


def test_answers_are_forgotten_when_there_are_many() -> None:
    job = AskedJob(ONE, {"t": [(k, 10) for k in range(9)]}, {"t": [("k",)]}, a="k v", t="k x")
    job.lookups[0].kept = {"t": AnswersKept(rows=2)}
    for k in (0, 1, 2, 2, 0):
        assert job.feed(a=[(1, k, 5)]) == [(5, 10)]
    assert [key for _, (key,) in job.asked_keys] == [0, 1, 2, 0]


def test_an_answer_that_lacks_rows_of_a_forgotten_one_is_forgotten_too() -> None:
    select = f"SELECT a.v, b.v AS w FROM {BOTH}, t WHERE a.k = t.k AND b.k = t.x"
    job = AskedJob(select, {"t": [(1, 10)]}, {"t": [("k",), ("x",)]}, a="k v", b="k v", t="k x")
    job.feed(b=[(1, 10, 6)])  # the row comes by its x
    assert job.feed(a=[(1, 1, 5)]) == [(5, 6)]  # so the answer for its k brings no row
    job.lookups[0].kept = {"t": AnswersKept(rows=1)}
    job.feed(a=[(1, 2, 5)])
    assert job.feed(a=[(2, 1, 7)]) == [(7, 6)]


def test_a_lookup_that_fails_beside_a_scan_waits_for_the_scan() -> None:
    select, methods = ONE, {"t": [("k",), ()]}
    job = AskedJob(select, {"t": [(1, 10)]}, methods, None, lambda table, key: True, a="k v", t="k x")
    assert job.feed(a=[(1, 1, 5), (1, 2, 6)]) + job.end() == [(5, 10)]
    assert not job.failed, "nobody is dead: the scan has all rows"


def test_a_tuple_that_waits_for_one_table_asks_the_others() -> None:
    select = "SELECT a.v, t.x, u.y FROM a [RANGE 50 MICROSECONDS], t, u WHERE a.k = t.k AND a.v = u.v"
    job = AskedJob(select, {"t": [(1, 10)], "u": [(5, 20)]}, {"t": [("k",)], "u": [("v",)]}, a="k v", t="k x", u="v y")
    job.lookups[0].holds = True
    assert job.feed(a=[(1, 1, 5)]) == []
    assert sorted(job.asked_keys) == [("t", (1,)), ("u", (5,))]
    job.lookups[0].holds = False
    assert job.feed(a=[(2, 7, 5)]) == [(5, 10, 20)]


def test_other_tables_are_not_asked_ahead_if_most_keys_have_no_row() -> None:
    select = "SELECT a.v, t.x, u.y FROM a [RANGE 50 MICROSECONDS], t, u WHERE a.k = t.k AND a.v = u.v"
    settings = Settings(check=True, router="fixed")
    job = AskedJob(
        select, {"t": [(1, 10)], "u": [(5, 20)]}, {"t": [("k",)], "u": [("v",)]}, settings, a="k v", t="k x", u="v y"
    )
    assert job.feed(a=[(1, k, 5) for k in range(100, 300)]) == []
    assert job.feed(a=[(2, 400, 6)]) == []
    assert ("u", (5,)) in job.asked_keys and ("u", (6,)) not in job.asked_keys


def test_a_tuple_that_does_not_ask_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """ProbeCompletion is checked at every probe with check=True."""
    job = AskedJob(ONE, {"t": [(1, 10)]}, {"t": [("k",)]}, a="k v", t="k x")
    monkeypatch.setattr(AccessModules, "_ask_for", lambda *asked: None)
    with pytest.raises(InternalError, match="table t, and has not asked"):
        job.feed(a=[(1, 1, 5)])


def test_a_key_that_is_asked_although_it_is_answered_is_noticed() -> None:
    """BoundedRepetition is checked at every probe with check=True."""
    job = AskedJob(ONE, {"t": [(1, 10)]}, {"t": [("k",)]}, a="k v", t="k x")
    job.feed(a=[(1, 1, 5)])
    access = job.engine.slot.executor.access
    assert access is not None
    index = access.tables["t"].indexes[0]
    index.asked.add(index.asked.batch([(1,)]), np.zeros(1, np.int64), 0, 0)
    with pytest.raises(InternalError, match="table t is asked for a key that it has answered"):
        job.feed(a=[(2, 2, 5)])
