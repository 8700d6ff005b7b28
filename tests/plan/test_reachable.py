"""The sentences about bindings that are missing, and the lines of `explain` about access methods."""

from __future__ import annotations

import pytest

from eddyline.plan.explain import access_lines, explain
from eddyline.plan.reachable import missing_binding
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
