"""Keys whose lookups fail: which tables may have some, and that what they cost is expected and told."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from eddyline.testing.case import Batch, Case, FromPart, SelectParts, StreamDecl
from eddyline.testing.oracle import Oracle
from lab.fuzz.generate import CaseKind, generate
from lab.fuzz.main import case_seed
from lab.fuzz.random_access import failing, without_failing
from lab.fuzz.reproduce import rows_of
from lab.fuzz.run import answered, check, expected_of, run, wrong
from tests.support.asked import asked
from tests.support.jobs import bound

SELECT = "SELECT a.v, t.x FROM a [RANGE 50 MICROSECONDS], t WHERE a.k = t.k"
ROWS = pa.record_batch({"k": list(range(100)), "x": list(range(100))})


def test_only_keys_of_tables_with_one_index_fail() -> None:
    query = bound(SELECT, None, ["t"], a="k v", t="k x")
    left = set()
    for methods in ([("k",)], [()], [("k",), ()], [("k",), ("x",)]):
        for seed in range(30):
            of = asked(query, {"t": methods})
            rows = without_failing(of, {"t": ROWS}, failing(of, seed))["t"].num_rows
            assert rows == 100 or methods == [("k",)]
            left.add(rows // 25)
    assert left >= {2, 3, 4}, "none, few and many keys fail"


def test_keys_that_are_equal_fail_together() -> None:
    query = asked(bound(SELECT, None, ["t"], a="k v", t="k x"), {"t": [("k",)]})
    fails = [failing(query, seed) for seed in range(30)]
    assert any(of("t", (0.0,)) for of in fails)
    assert all(of("t", (0.0,)) == of("t", (-0.0,)) for of in fails)


def test_failures_cost_rows_and_are_told() -> None:
    oracle, told = Oracle(), 0
    for index in range(40):
        case = generate(case_seed(77, index), CaseKind(access=True))
        if answered(case) is not case:
            outcome, expected = run(case), expected_of(case, oracle)
            assert wrong(outcome, expected) is None
            told += bool(outcome.failed)
            if expected.fails:
                silent = wrong(replace(outcome, failed=()), expected)
                assert silent == "lookups fail that cost rows, and none is told"
    assert told


def test_a_row_that_two_indexes_are_asked_for_joins_all_who_wait() -> None:
    """Found by the fuzzer: rows wait for a key of one index; a lookup fails; other tuples ask for the same row by the
    other index, whose answer comes first."""
    days = pa.date32()
    a = pa.schema([("k0", days), ("k1", pa.string()), ("z", pa.float32())])
    b = pa.schema([("k0", days), ("at", pa.timestamp("us"))])
    c = pa.schema([("k1", pa.string())])
    keys = [19700, 19700, 19701, 19762, 19700, 19701], ["", "", "A", "", "A", "a b"], [3.0, 7.0, 1.0, 5.0, 3.0, 8.0]
    select = SelectParts(
        ("COALESCE(SUM(a.z), 0) + COUNT(*) AS o1",),
        (FromPart("s0", "a"), FromPart("s1", "b", "UNBOUNDED SLIDE 1 MICROSECOND"), FromPart("s2", "c")),
        ("c.k1 = a.k1", "a.k0 = b.k0"),
    )
    batches = [rows_of(b, [[19701, 19700, 19762], [-19, -18, -16]]), rows_of(b, [[19700], [-13]])]
    case = Case(
        (StreamDecl("s0", a), StreamDecl("s1", b, "at", 2), StreamDecl("s2", c)),
        select,
        tuple(Batch((("s1", rows),)) for rows in batches),
        {"s0": rows_of(a, keys), "s2": rows_of(c, [["", "A", "A"]])},
        {"router": "fixed", "input_batch": 2, "reroute_every": 1000, "seed": 0, "check": True, "access": 434304},
    )
    assert check(case, Oracle()) is None
