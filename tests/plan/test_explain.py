"""The plan in words, word for word."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.model import BoundQuery
from eddyline.bound.udf import udf
from eddyline.cql.units import duration_text
from eddyline.plan.explain import explain, warnings
from eddyline.plan.tree import Tree, parse_tree
from eddyline.settings import from_mapping
from tests.support.jobs import bound


def test_a_join_of_three() -> None:
    query = bound(
        "SELECT o.k, p.x FROM o [RANGE 30 MINUTES], p [RANGE 30 MINUTES] AS p, s [RANGE 1 HOUR], t "
        "WHERE o.k = p.k AND p.x = s.x AND p.x > 100 AND t.k = o.k AND o.x < s.k + 2",
        tables=["t"], o="k x", p="k x", s="k x", t="k",
    )  # fmt: skip
    assert (
        explain(query)
        == """\
multi-way join of 4 sources

o: stream o, RANGE 30 minutes
  hash index on o.k
  keeps o.k, o.x
  expires 30 minutes behind p, 30 minutes behind s

p: stream p, RANGE 30 minutes
  filter p.x > 100
  hash index on p.k
  hash index on p.x
  keeps p.x
  expires 30 minutes behind o, 30 minutes behind s

s: stream s, RANGE 1 hour
  hash index on s.x
  keeps s.k
  expires 1 hour behind o, 1 hour behind p

t: table t
  hash index on t.k
  keeps no payload

routes, fixed order:
  o -> p by o.k = p.k -> s by p.x = s.x -> t by o.k = t.k   (3 probes by key)
  p -> o by p.k = o.k -> s by p.x = s.x -> t by o.k = t.k   (3 probes by key)
  s -> p by s.x = p.x -> o by p.k = o.k -> t by o.k = t.k   (3 probes by key)
  t -> o by t.k = o.k -> p by o.k = p.k -> s by p.x = s.x   (3 probes by key)"""
    )


def test_one_stream_and_tables() -> None:
    query = bound("SELECT a.x FROM a [RANGE 5 SECONDS], t WHERE a.k = t.k", tables="t", a="k x", t="k")
    assert explain(query) == (
        """\
multi-way join of 2 sources

a: stream a, RANGE 5 seconds
  no index: nothing probes it
  keeps a.x
  expires at once: no other stream joins it

t: table t
  hash index on t.k
  keeps no payload

routes, fixed order:
  a -> t by a.k = t.k   (1 probe by key)"""
    )


def test_ranges_lists_and_windows_of_rows() -> None:
    query = bound(
        "SELECT a.k FROM a [ROWS 10], b [RANGE 5 SECONDS], c [RANGE 5 SECONDS] WHERE a.x BETWEEN b.x - 3 AND b.x + 3",
        a="k x", b="k x", c="k x",
    )  # fmt: skip
    assert (
        explain(query)
        == """\
multi-way join of 3 sources

a: stream a, ROWS 10
  sorted index on a.x
  keeps a.k, a.x
  expires after 10 newer rows

b: stream b, RANGE 5 seconds
  sorted index on b.x
  keeps b.x
  expires 5 seconds behind a, 5 seconds behind c

c: stream c, RANGE 5 seconds
  keeps no payload
  expires 5 seconds behind a, 5 seconds behind b

routes, fixed order:
  a -> b by b.x <= a.x + 3 and b.x >= a.x - 3 -> c by list   (1 probe by range, 1 probe by list)
  b -> a by a.x >= b.x - 3 and a.x <= b.x + 3 -> c by list   (1 probe by range, 1 probe by list)
  c -> a by list -> b by b.x <= a.x + 3 and b.x >= a.x - 3   (1 probe by range, 1 probe by list)"""
    )


def test_a_binary_tree() -> None:
    query = bound(
        "SELECT o.k, p.x FROM o [RANGE 30 MINUTES], p [RANGE 30 MINUTES] AS p, s [RANGE 1 HOUR], t "
        "WHERE o.k = p.k AND p.x = s.x AND p.x > 100 AND t.k = o.k AND o.x < s.k + 2",
        tables=["t"], o="k x", p="k x", s="k x", t="k",
    )  # fmt: skip
    assert (
        explain(query, tree=parse_tree("(((o t) p) s)", list("opst")))
        == """\
binary tree (((o t) p) s) of 4 sources

o: stream o, RANGE 30 minutes
  hash index on o.k
  keeps o.k, o.x
  expires 30 minutes behind p, 30 minutes behind s

p: stream p, RANGE 30 minutes
  filter p.x > 100
  hash index on p.k
  keeps p.x
  expires 30 minutes behind o, 30 minutes behind s

s: stream s, RANGE 1 hour
  hash index on s.x
  keeps s.k
  expires 1 hour behind o, 1 hour behind p

t: table t
  hash index on t.k
  keeps no payload

(o t): intermediate results, kept until a row in them expires
  hash index on o.k
  hash index on t.k

(o p t): intermediate results, kept until a row in them expires
  hash index on p.x

routes, fixed order:
  o -> t by o.k = t.k -> p by o.k = p.k -> s by p.x = s.x   (3 probes by key)
  p -> (o t) by p.k = o.k -> s by p.x = s.x   (2 probes by key)
  s -> (o p t) by s.x = p.x   (1 probe by key)
  t -> o by t.k = o.k -> p by o.k = p.k -> s by p.x = s.x   (3 probes by key)"""
    )


def test_a_late_operator_says_what_waits() -> None:
    @udf(returns=pa.bool_(), name="explained_as_late")
    def late(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x > y

    query = bound(
        "SELECT a.k FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND explained_as_late(a.k, b.k)", a="k", b="k", c="k"
    )
    early, waits = (explain(query, tree=parse_tree(text, "abc")) for text in ("((a b) c)", "((a b)! c)"))
    assert early.splitlines()[0] == "binary tree ((a b) c) of 3 sources" and "not yet" not in early
    assert "a -> b by a.k = b.k -> [explained_as_late(a.k, b.k)] -> c by a.k = c.k" in early
    assert "c -> (a b) by c.k = a.k   (1 probe by key)" in early
    lines = waits.splitlines()
    assert lines[0] == "binary tree ((a b)! c) of 3 sources"
    at = lines.index("(a b): intermediate results, kept until a row in them expires")
    assert lines[at + 1 : at + 4] == [
        "  hash index on a.k",
        "  hash index on b.k",
        "  not yet selected by explained_as_late(a.k, b.k)",
    ]
    assert "c -> (a b) by c.k = a.k -> [explained_as_late(a.k, b.k)]" in waits


def test_a_hybrid_tree() -> None:
    window = "[RANGE 5 SECONDS]"
    query = bound(
        f"SELECT a.k FROM a {window}, b {window}, c {window}, d {window} "
        "WHERE a.k = b.k AND a.x BETWEEN c.x - 3 AND c.x + 3 AND d.k = c.k",
        a="k x", b="k x", c="k x", d="k",
    )  # fmt: skip
    assert (
        explain(query, tree=parse_tree("((a b) c d)", list("abcd")))
        == """\
hybrid tree ((a b) c d) of 4 sources

a: stream a, RANGE 5 seconds
  hash index on a.k
  sorted index on a.x
  keeps a.k, a.x
  expires 5 seconds behind b, 5 seconds behind c, 5 seconds behind d

b: stream b, RANGE 5 seconds
  hash index on b.k
  keeps no payload
  expires 5 seconds behind a, 5 seconds behind c, 5 seconds behind d

c: stream c, RANGE 5 seconds
  hash index on c.k
  sorted index on c.x
  keeps c.x
  expires 5 seconds behind a, 5 seconds behind b, 5 seconds behind d

d: stream d, RANGE 5 seconds
  hash index on d.k
  keeps no payload
  expires 5 seconds behind a, 5 seconds behind b, 5 seconds behind c

(a b): intermediate results, kept until a row in them expires
  sorted index on a.x

routes, fixed order:
  a -> b by a.k = b.k -> c by c.x <= a.x + 3 and c.x >= a.x - 3 -> d by c.k = d.k   (2 probes by key, 1 probe by range)
  b -> a by b.k = a.k -> c by c.x <= a.x + 3 and c.x >= a.x - 3 -> d by c.k = d.k   (2 probes by key, 1 probe by range)
  c -> d by c.k = d.k -> (a b) by a.x >= c.x - 3 and a.x <= c.x + 3   (1 probe by key, 1 probe by range)
  d -> c by d.k = c.k -> (a b) by a.x >= c.x - 3 and a.x <= c.x + 3   (1 probe by key, 1 probe by range)"""
    )


def test_aliases_that_are_not_plain() -> None:
    query = bound('SELECT "x y".k FROM a AS "x y", b, c WHERE "x y".k = b.k AND b.k = c.k', a="k", b="k", c="k")
    shape = explain(query, tree=Tree((Tree((0, 1)), 2))).splitlines()[0]
    assert shape == 'binary tree (("x y" b) c) of 3 sources'


def test_one_source_and_groups() -> None:
    query = bound(
        "SELECT k, SUM(x) AS t FROM a [RANGE 10 SECONDS SLIDE 5 SECONDS] WHERE k IS NOT NULL AND 1 = 2 GROUP BY k",
        a="k x",
    )
    assert (
        explain(query)
        == """\
one source, no join

a: stream a, RANGE 10 seconds
  filter a.k IS NOT NULL
  keeps a.k, a.x
  expires at once: no other stream joins it

routes, fixed order:
  a

group by a.k: SUM(a.x), every 5 seconds

warning: a condition is constant and not true: there can be no result"""
    )


def test_what_never_expires_is_said() -> None:
    query = bound("SELECT a.k FROM a [RANGE 5 SECONDS], b WHERE a.k = b.k", a="k", b="k")
    assert warnings(query) == ["rows of b never expire: give it a RANGE or ROWS window, or bound its time in WHERE"]
    assert "warning: rows never expire" in explain(query)
    bounded = bound(
        "SELECT a.k FROM a [RANGE 5 SECONDS], b WHERE a.k = b.k AND a.ts - b.ts < INTERVAL '9' SECOND", a="k", b="k"
    )
    assert warnings(bounded) == []
    table = bound("SELECT a.k FROM a, t WHERE a.k = t.k", tables=["t"], a="k", t="k")
    assert warnings(table) == []


@pytest.mark.parametrize(
    ("micros", "words"),
    [
        (86_400_000_000, "1 day"),
        (5_400_000_000, "90 minutes"),
        (1500, "1500 microseconds"),
        (2_000, "2 milliseconds"),
        (-3_000_000, "-3 seconds"),
        (0, "0 seconds"),
    ],
)
def test_durations(micros: int, words: str) -> None:
    assert duration_text(micros) == words


@pytest.mark.parametrize(
    ("low", "high", "expiry"),
    [("0", "5", "5 seconds behind b"), ("-9", "0", "as soon as b has passed it"), ("-9", "-4", "4 seconds before b")],
)
def test_when_rows_expire_is_said_in_words(low: str, high: str, expiry: str) -> None:
    bounds = f"b.ts - a.ts BETWEEN INTERVAL '{low}' SECOND AND INTERVAL '{high}' SECOND"
    lines = explain(bound(f"SELECT a.k FROM a, b WHERE a.k = b.k AND {bounds}", a="k", b="k")).splitlines()
    assert next(line for line in lines if "expires" in line).startswith(f"  expires {expiry}")


def test_rows_that_leave_memory() -> None:
    def joined(text: str) -> BoundQuery:
        return bound(text, a="k v", b="k v", c="k v")

    def told(text: str) -> str:
        return explain(joined(text), settings=from_mapping({"memory": "1MB"})).splitlines()[-1]

    three = "SELECT a.k FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE], c [RANGE 1 MINUTE] WHERE a.k = b.k AND b.v = c.v"
    start = "groups of rows leave memory where it is full (1 MB for each slot): "
    assert told(three) == f"{start}a, b by k; c by v"
    assert told("SELECT a.k FROM a, b WHERE a.k = b.v") == f"{start}a, b by k = v"
    assert told("SELECT a.k FROM a, b WHERE a.k < b.k") == f"{start}a by row; b by row"
    assert told("SELECT k FROM a") == "no groups of rows leave memory: there is no join"
    assert told("SELECT a.k FROM a [ROWS 3], b WHERE a.k = b.k") == f"{start}a, b by k"
    assert "leave memory" not in explain(joined(three))


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("TUMBLE 1 MINUTE", "TUMBLE 1 minute"),
        ("HOP 1 MINUTE, 10 MINUTES OFFSET -45 SECONDS", "HOP 1 minute, 10 minutes OFFSET 15 seconds"),
        ("CUMULATE 1 MINUTE, 10 MINUTES OFFSET 5 MINUTES", "CUMULATE 1 minute, 10 minutes OFFSET 5 minutes"),
        ("RANGE 10 MINUTES SLIDE 1 MINUTE", "RANGE 10 minutes"),
    ],
)
def test_windows_with_borrowed_names_have_them(written: str, shown: str) -> None:
    query = bound(f"SELECT COUNT(*) FROM a [{written}]", a="k")
    assert f"a: stream a, {shown}\n" in explain(query)
