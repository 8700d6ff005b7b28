"""Which axes are chosen, what is one key class, and the hash that durable formats will have."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.model import BoundQuery
from eddyline.plan.explain import describe, explain, text
from eddyline.plan.graph import join_graph
from eddyline.plan.partition import Partitioning, key_classes, partition
from eddyline.plan.partition_groups import key_groups, row_groups
from eddyline.plan.plan import Plan
from eddyline.plan.spill_axis import spill_axis
from tests.support.jobs import bound

COLUMNS = "k x y:float s:string f:bool"


def query_of(where: str, sources: str = "a, b, c", select: str = "a.k", tail: str = "") -> BoundQuery:
    where = f" WHERE {where}" if where else ""
    return bound(f"SELECT {select} FROM {sources}{where}{tail}", **dict.fromkeys("abc", COLUMNS))


def chosen(query: BoundQuery, slots: int, **rows: float) -> Partitioning:
    return partition(Plan(query), slots, rows=rows)


def said(query: BoundQuery, slots: int, **rows: float) -> str:
    return describe(chosen(query, slots, **rows), query).partition(": ")[2]


# Key classes


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("a.k < b.k", []),
        ("a.k = b.k AND b.k = c.k", [{"a.k", "b.k", "c.k"}]),
        ("a.k = b.k AND b.x = c.x", [{"a.k", "b.k"}, {"b.x", "c.x"}]),
        ("a.k = b.k AND b.k = c.y", [{"a.k", "b.k"}, {"CAST(a.k AS DOUBLE)", "CAST(b.k AS DOUBLE)", "c.y"}]),
        ("a.k + 1 = b.k AND a.k = c.k", [{"a.k + 1", "b.k"}, {"a.k", "c.k"}]),
        ("a.k = b.k AND CAST(b.k AS VARCHAR) = c.s", [{"a.k", "b.k"}, {"CAST(b.k AS VARCHAR)", "c.s"}]),
    ],
)
def test_what_is_equal_in_every_result(where: str, wanted: list[set[str]]) -> None:
    query = query_of(where)
    assert [{text(e, query) for e in c.values()} for c in key_classes(join_graph(query))] == wanted


# Which axes


def test_one_slot_has_no_axes() -> None:
    query = query_of("a.k = b.k")
    assert chosen(query, 1).axes == () and "slot" not in explain(query, chosen(query, 1))


@pytest.mark.parametrize(
    ("where", "slots", "rows", "wanted"),
    [
        ("a.k = b.k AND b.k = c.x", 3, {}, "a, b by k; c by x"),
        ("a.k = b.k AND b.k = c.y", 3, {}, "a by CAST(a.k AS DOUBLE); b by CAST(b.k AS DOUBLE); c by y"),
        ("a.k = b.k AND b.x = c.x", 3, {}, "a, b by k; c to every slot"),
        ("a.k = b.k AND b.x = c.x", 3, {"c": 5}, "a to every slot; b, c by x"),
        ("a.k = b.k AND b.x = c.x", 8, {}, "a by k, to 4 slots each; b by k and x; c by x, to 2 slots each"),
        ("a.k = b.k AND b.x = c.x", 3, {"b": 1e6}, "a, b by k; c to every slot"),
        ("a.k = b.k AND a.k = 5", 3, {"c": 0}, "a by row; b, c to every slot"),
        ("a.f = b.f", 3, {"b": 9}, "a, c to every slot; b by row"),
        ("a.k < b.k", 3, {"c": 9}, "a, b to every slot; c by row"),
        ("", 4, {"a": 9, "b": 9}, "a, b by row, to 2 slots each; c to every slot"),
        ("a.k = b.k", 3, {"a": 1e-9, "b": 1e-9}, "a, b to every slot; c by row"),
    ],
)
def test_the_fewest_rows_shipped_and_stored(where: str, slots: int, rows: dict[str, float], wanted: str) -> None:
    assert said(query_of(where), slots, **rows).rpartition("; about")[0] == wanted


def test_estimates_count_what_a_self_join_shares_and_what_is_counted_everywhere() -> None:
    both = query_of("a.k = o.k", "a, a AS o")
    assert said(both, 4) == "a, o by k; about 1 rows shipped and 2 stored for each row read"
    two = query_of("a.k = o.x", "a, a AS o")
    assert said(two, 4) == "a by k; o by x; about 2 rows shipped and 2 stored for each row read"
    rows = query_of("a.k = b.k", "a [ROWS 3], b")
    assert said(rows, 4) == (
        "a by k, counted in every slot; b by k; about 2.5 rows shipped and 1 stored for each row read"
    )


@pytest.mark.parametrize(
    ("by", "slots", "whole"),
    [
        ("a.k", 3, True),
        ("b.k, a.s", 3, True),
        ("a.x", 3, False),
        ("a.k + 1", 3, False),
        ("b.x", 8, False),
        ("b.x, a.k", 8, True),
    ],
)
def test_groups_that_are_whole_in_their_slot(by: str, slots: int, whole: bool) -> None:
    query = query_of("a.k = b.k AND b.x = c.x", select="COUNT(*) AS n", tail=f" GROUP BY {by}")
    found = chosen(query, slots)
    assert found.keeps_groups_whole(query) is whole
    assert ("each group in one slot" in describe(found, query)) is whole


def test_a_group_key_tells_what_it_is_cast_to() -> None:
    query = query_of("a.k = b.y", "a, b", "COUNT(*) AS n", " GROUP BY a.k")
    assert chosen(query, 3).keeps_groups_whole(query)


def test_explained() -> None:
    query = query_of("a.k = b.k AND b.x = c.x")
    line = explain(query, chosen(query, 8)).splitlines()[-1]
    assert line == (
        "8 slots as 2 x 4, 256 groups: a by k, to 4 slots each; b by k and x; c by x, to 2 slots each; "
        "about 2.33 rows shipped and 2.33 stored for each row read"
    )


@pytest.mark.parametrize("slots", [1, 2, 6, 8, 12])
def test_every_slot_has_its_place(slots: int) -> None:
    found = chosen(query_of("a.k = b.k AND b.x = c.x"), slots)
    places = [found.coordinates(slot) for slot in range(slots)]
    assert len(set(places)) == slots and np.prod([axis.size for axis in found.axes]) == slots
    assert all(sorted(set(p.tolist())) == list(range(a.size)) for p, a in zip(found.places(), found.axes, strict=True))


# The axis along which groups leave memory


def leaving(query: BoundQuery) -> list[str]:
    """By source, how its rows get their groups."""
    axis = spill_axis(Plan(query), 7)
    assert axis is not None and axis.size == 7
    return ["by row" if n == axis.row else "stays" if e is None else text(e, query) for n, e in enumerate(axis.keys)]


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("a.k = b.k AND b.k = c.x", ["a.k", "b.k", "c.x"]),
        ("a.k = b.k AND b.x = c.x", ["a.k", "b.k", "stays"]),
        ("a.x = b.x AND a.k = b.k AND b.k = c.k", ["a.k", "b.k", "c.k"]),
        ("a.k = b.k AND b.k = c.y", ["CAST(a.k AS DOUBLE)", "CAST(b.k AS DOUBLE)", "c.y"]),
        ("a.k = b.k AND a.k = 5", ["by row", "stays", "stays"]),
        ("a.f = b.f AND b.k < c.k", ["by row", "stays", "stays"]),
        ("a.f = b.f AND b.s = c.s", ["stays", "b.s", "c.s"]),
        ("", ["by row", "stays", "stays"]),
    ],
)
def test_as_many_streams_as_possible_leave_memory(where: str, wanted: list[str]) -> None:
    assert leaving(query_of(where)) == wanted


def test_aliases_of_one_stream_leave_by_keys_of_their_own() -> None:
    assert leaving(query_of("p.k = q.x", "a AS p, a AS q", "p.k")) == ["p.k", "q.x"]


def test_streams_leave_rather_than_tables() -> None:
    def query(sources: str, where: str) -> BoundQuery:
        select = f"SELECT t.k FROM {sources} WHERE {where}"
        return bound(select, tables="tu", a="k x", b="k x", t="k x", u="k x")

    assert leaving(query("t, a", "t.k < a.k")) == ["stays", "by row"]
    assert leaving(query("t, a", "t.k = a.k")) == ["t.k", "a.k"]
    tables = query("t, u, a, b", "t.k = u.k AND u.k = a.k AND a.x = b.x")
    assert leaving(tables) == ["stays", "stays", "a.x", "b.x"]


def test_rows_that_are_counted_leave_too() -> None:
    assert leaving(query_of("a.k = b.k", "a [ROWS 3], b")) == ["a.k", "b.k"]


# Groups


def mixed(code: int, groups: int) -> int:
    """The finalizer of SplitMix64, in words of Python."""
    h = code % 2**64
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    h = (h ^ h >> 27) * 0x94D049BB133111EB % 2**64
    return (h ^ h >> 31) % groups


def test_the_hash_is_fixed() -> None:
    """A change of the hash would make every existing checkpoint unreadable."""
    numbers = [0, 1, 2, -1, 2**63 - 1]
    assert key_groups(pa.array(numbers), 256).tolist() == [mixed(n, 256) for n in numbers] == [0, 229, 138, 123, 189]
    assert key_groups(pa.array(["", "a", "z\u00fcrich"]), 256).tolist() == [203, 59, 70]
    assert key_groups(pa.array([0.5, 1.0, float("nan")]), 256).tolist() == [117, 38, 155]
    assert key_groups(pa.array([Decimal("1.50")], pa.decimal128(20, 2)), 256).tolist() == [59]
    columns = [pa.array([1, None]), pa.array(["a", None])]
    assert row_groups(columns, np.array([5, 6]), 2, 256).tolist() == [138, 208]
    assert row_groups(columns, None, 2, 7).tolist() == [1, 3]


def test_equal_values_have_one_group() -> None:
    words = pa.array(["x", "y", "x", "z"])
    assert key_groups(words, 256).tolist() == key_groups(words.dictionary_encode(), 256).tolist()
    assert key_groups(words.slice(2), 256).tolist() == key_groups(words, 256).tolist()[2:]
    zeros = key_groups(pa.array([0.0, -0.0, float("nan"), -float("nan")]), 1 << 16).tolist()
    assert zeros[0] == zeros[1] and zeros[2] == zeros[3]
    assert key_groups(pa.array([3], pa.int8()), 256) == key_groups(pa.array([3], pa.uint64()), 256)


def test_a_null_is_the_same_whatever_lies_under_it() -> None:
    dirty = pa.array([1, 2], pa.decimal128(9, 2))
    nulls = pa.Array.from_buffers(dirty.type, 2, [pa.py_buffer(b"\0"), dirty.buffers()[1]])
    one, other = row_groups([nulls], None, 2, 1 << 16).tolist()
    assert one == other


def test_columns_without_a_code_are_left_out() -> None:
    lists, numbers = pa.array([[1], [2]]), pa.array([1, 2])
    assert row_groups([lists, numbers], None, 2, 256).tolist() == row_groups([numbers], None, 2, 256).tolist()
    assert row_groups([lists], None, 2, 256).tolist() == [0, 0]


def test_groups_are_even() -> None:
    counts = np.bincount(key_groups(pa.array(range(100_000)), 256), minlength=256)
    assert counts.min() > 280 and counts.max() < 510
