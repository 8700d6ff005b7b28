"""The sentences about bindings that are missing, and the lines of `explain` about access methods."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eddyline.plan.explain import access_lines, explain
from eddyline.plan.reachable import missing_binding, missing_join
from tests.plan.test_bindings import asked

_WITH = "with a constant or an expression over one other source, without user functions, or declare SCAN"


@pytest.mark.parametrize(
    ("where", "methods", "source", "sentence"),
    [
        (
            "a.k = b.k",
            "INDEX ON (id)",
            2,
            "table 't' is reached by its index on (id), and nothing in WHERE binds id; write t.id = ..., or declare"
            " SCAN",
        ),
        (
            "t.id = a.k",
            "INDEX ON (id, name)",
            2,
            "table 't' is reached by its index on (id, name), and nothing in WHERE binds name; write t.name = ..., or"
            " declare SCAN",
        ),
        (
            "t.id = a.k",
            "INDEX ON (name, x) INDEX ON (id, name)",
            2,
            "table 't' is reached by its indexes on (name, x) and (id, name), and nothing in WHERE binds name or x;"
            " write t.name = ..., or declare SCAN",
        ),
        (
            "t.x = 3",
            "INDEX ON (id, name)",
            2,
            "table 't' is reached by its index on (id, name), and nothing in WHERE binds id or name; write t.id = ..."
            " AND t.name = ..., or declare SCAN",
        ),
        (
            "t.id = a.k + b.k",
            "INDEX ON (id)",
            2,
            f"table 't' is reached by its index on (id), and no equality in WHERE binds id; write t.id = ... {_WITH}",
        ),
    ],
)
def test_the_binding_that_is_missing(where: str, methods: str, source: int, sentence: str) -> None:
    assert missing_binding(asked(where, methods)) == (source, sentence)


def test_tables_that_bind_only_each_other() -> None:
    assert missing_binding(asked("t.id = u.x AND u.id = t.x", more=", u")) == (
        2,
        "tables that are reached by an index bind only each other (t is bound by u, u is bound by t); bind one of them"
        " by a stream or a constant, or declare SCAN",
    )


def test_the_table_that_is_to_blame_is_named() -> None:
    """t is bound by u, but nothing binds u."""
    found = missing_binding(asked("t.id = u.x", more=", u"))
    assert found is not None and found[0] == 3 and "nothing in WHERE binds id; write u.id = ..." in found[1]


@pytest.mark.parametrize("methods", ["SCAN", "", "SCAN INDEX ON (id)"])
def test_a_scan_needs_no_binding(methods: str) -> None:
    assert missing_binding(asked("a.k = b.k", methods)) is None


@pytest.mark.parametrize(
    ("where", "refused"),
    [
        ("a.k = b.k AND t.id = a.k", False),
        ("a.k < b.k AND t.id = a.k", False),
        ("t.id = a.k AND t.id = b.k", False),  # so a.k = b.k
        ("t.id = a.k AND t.x = b.k", True),
        ("t.id = a.k AND a.k + b.k = t.x", True),
        ("t.id = a.k", False),  # nothing at all joins b
    ],
)
def test_streams_that_only_a_table_joins(where: str, refused: bool) -> None:
    query = asked(where)
    assert missing_join(query) is None
    sentence = (
        "SELECT PARTIAL joins b with a before a table has answered, and only tables that are asked join them in WHERE;"
        " add a condition over b and a, or leave PARTIAL out"
    )
    assert missing_join(replace(query, partial=True)) == ((1, sentence) if refused else None)


_METHODS = "SCAN INDEX ON (id) INDEX ON (name, x) INDEX ON (x)"


def test_a_line_for_each_method() -> None:
    query = asked("t.id = a.k AND t.id = b.k AND t.x = 3 AND u.x = t.id AND u.name = a.s", _METHODS, more=", u")
    assert access_lines(query) == [
        "t: scan",
        "t: index on (id), bound by a.k or b.k or u.x",
        "t: index on (name, x), not bound by this query",
        "t: index on (x), bound by 3",
        "u: scan",
        "u: index on (id), not bound by this query",
        "u: index on (name, x), bound by a.s and t.id or a.s and a.k or a.s and b.k",
        "u: index on (x), bound by t.id or a.k or b.k",
    ]


def test_options_of_a_method_are_shown_without_what_may_be_a_secret() -> None:
    own = "OPTIONS (url 'http://b/x?key=hidden', timeout 5)"
    query = asked("t.id = a.k", f"SCAN {own} INDEX ON (id) INDEX ON (id) {own}")
    assert [line for line in access_lines(query) if line.startswith("t:")] == [
        "t: scan OPTIONS (url 'http://b/x', timeout '5')",
        "t: index on (id), bound by a.k",
        "t: index on (id) OPTIONS (url 'http://b/x', timeout '5'), bound by a.k",
    ]
    assert "index on (id) OPTIONS (url 'http://b/x', timeout '5'), bound by a.k" in explain(query)
    assert "hidden" not in explain(query) and "http" not in repr(query)  # so state is found again


def test_the_plan_says_how_a_table_is_reached() -> None:
    told = explain(asked("t.id = a.k AND a.k = b.k AND t.x = 3", _METHODS, id="INTEGER"))
    assert (
        """\
t: table t
  access: scan
  access: index on (id), bound by a.k or b.k
  access: index on (name, x), not bound by this query
  access: index on (x), bound by 3
  filter t.x = 3
  hash index on CAST(t.id AS BIGINT)
  keeps no payload
"""
        in told
    )


def test_the_plan_says_that_there_are_partial_results() -> None:
    """The streams are joined before the table is probed, from wherever a tuple starts."""
    query = asked("t.id = a.k AND a.k < b.k")
    assert "partial results" not in explain(query) and "  a -> t by" in explain(query)
    told = explain(replace(query, partial=True))
    assert "partial results: at the end of a batch, rows whose tables have not answered yet" in told
    assert "  a -> b by" in told and "  t -> a by" in told
