"""Which rows a preference means, and which preferences are refused."""

from __future__ import annotations

import pytest

from eddyline.bound.expr import sources_of
from eddyline.errors import SettingError
from eddyline.plan.explain import explain, text
from eddyline.plan.judges import Preferences, judges
from eddyline.plan.plan import Plan
from eddyline.plan.preference import NO_PREFERENCE, Preference
from tests.support.asked import asked
from tests.support.jobs import bound

SELECT = "SELECT a.v, t.x FROM a [RANGE 9 MICROSECONDS], b [RANGE 9 MICROSECONDS], t WHERE a.v = b.v AND a.k = t.k"
QUERY = asked(
    bound(SELECT, None, ["t"], a="k v u w:string", b="v z", t="k x"),
    {"t": [("k",)]},
)
PLAN = Plan(QUERY)


def judged(condition: str) -> dict[str, str]:
    """By alias, the condition as text."""
    found = judges(PLAN, condition)
    assert all(sources_of(expr) == {source} for source, expr in found.items())
    return {QUERY.sources[source].alias: text(expr, QUERY) for source, expr in found.items()}


def test_rows_of_one_source() -> None:
    assert judged("a.v > 3") == {"a": "a.v > 3"}
    assert judged("x % 20 = 0") == {"t": "(t.x % 20) = 0"}, "a name that one source has needs no alias"


def test_a_key_of_a_table_is_judged_on_the_rows_that_ask_for_it() -> None:
    assert judged("t.k % 20 = 0") == {"a": "(a.k % 20) = 0"}


def test_a_value_of_another_type_is_cast() -> None:
    query = asked(
        bound("SELECT a.k, t.k AS t FROM a, t WHERE a.k = t.k", None, ["t"], a="k:decimal", t="k"), {"t": [("k",)]}
    )
    found = judges(Plan(query), "t.k % 2 = 0")
    assert {query.sources[source].alias for source in found} == {"a", "t"}


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("a.v >", "nothing follows this '>'"),
        ("a.v", "prefer needs a condition, but this is BIGINT"),
        ("a.nothing = 1", "a has no column 'nothing'"),
        ("c.v = 1", "there is no 'c' in FROM"),
        ("1 = 1", "names no column"),
        ("a.k = b.z", "columns of several sources"),
        ("sum(a.v) > 1", "is an aggregate"),
        ("a.u = 1", "the query does not keep a.u; name it in SELECT"),
        ("a.v = 1; a.v = 2", "cannot be read as SQL"),
    ],
)
def test_one_line_for_a_wrong_preference(condition: str, says: str) -> None:
    with pytest.raises(SettingError) as error:
        judges(PLAN, condition)
    assert says in str(error.value) and "\n" not in str(error.value) and str(error.value).startswith("prefer: ")


def test_rows_of_a_table_that_is_read_whole_cannot_be_preferred() -> None:
    plan = Plan(bound("SELECT a.v, t.x FROM a, t WHERE a.k = t.k", None, ["t"], a="k v", t="k x"))
    with pytest.raises(SettingError, match="table t are read before the streams start"):
        judges(plan, "t.x = 1")


def test_a_change_holds_from_the_next_batch_on() -> None:
    preferences = Preferences(PLAN, None)
    assert preferences.at(0) == preferences.at(1) == NO_PREFERENCE
    preferences.change(" a.v = 1 ")
    assert preferences.at(2) == preferences.at(3) == Preference("a.v = 1", 2)
    with pytest.raises(SettingError):
        preferences.change("a.nothing = 1")
    assert preferences.at(4) == Preference("a.v = 1", 2), "the old one stays"
    preferences.change(None)
    assert preferences.at(5) == Preference("", 5)


def test_explain_tells_which_rows_come_first() -> None:
    assert "preferred rows come first: a with a.k > 1" in explain(QUERY, prefer="t.k > 1")
    assert "preferred" not in explain(QUERY)
