"""Cases: generated from a seed alone, printed as files that rebuild them, made small."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from eddyline.cql.script import parse
from eddyline.testing import clock, reproduce, sources, timeline
from eddyline.testing.case import Case
from eddyline.testing.compare import difference
from eddyline.testing.fuzz import Report, case_seed, naive_of_checkout
from eddyline.testing.generate import generate
from eddyline.testing.oracle import Oracle
from eddyline.testing.run import bound, expected_of
from eddyline.testing.shrink import shrink


def rebuilt(case: Case) -> Case:
    space: dict[str, Any] = {"__name__": "rebuilt"}
    exec(reproduce.reproduce(case), space)
    found: Case = space["case"]
    return found


@pytest.mark.parametrize("index", range(25))
def test_a_printed_case_is_the_case(index: int) -> None:
    case = generate(case_seed(1, index))
    again = rebuilt(case)
    assert again.script == case.script
    assert len(again.batches) == len(case.batches)
    for mine, theirs in zip(case.batches, again.batches, strict=True):
        assert mine.ended == theirs.ended
        assert repr([(n, b.to_pylist()) for n, b in mine.rows]) == repr([(n, b.to_pylist()) for n, b in theirs.rows])
    assert repr({n: t.to_pylist() for n, t in case.tables.items()}) == repr(
        {n: t.to_pylist() for n, t in again.tables.items()}
    )


def test_a_seed_is_a_case() -> None:
    assert [generate(5).script for _ in range(2)] == [generate(5).script] * 2
    assert generate(5).script != generate(6).script


def test_scripts_are_scripts_and_cover_the_language() -> None:
    seen: Counter[str] = Counter()
    for index in range(300):
        case = generate(case_seed(2, index))
        parse(case.script)
        seen.update(case.features)
    wanted = (
        "window RANGE,window ROWS,window UNBOUNDED,slide,having,self-join,static table,late rows,wind back,time bound"
    )
    wanted += ",dead rows,nulls,skew,clique,cycle,star,cross,theta,8 sources"
    assert not [feature for feature in wanted.split(",") if not seen[feature]]


def test_oracle_and_naive_engine_agree() -> None:
    oracle, naive = Oracle(), naive_of_checkout()
    assert naive is not None
    for index in range(100):
        case = generate(case_seed(3, index))
        expected = expected_of(case, oracle)
        different = difference(naive(case, bound(case)), expected.table, expected.scale)
        assert different is None, f"case {index} of seed 3\n{case.script}\n{different}"


def test_shrinking_keeps_what_fails_and_little_else() -> None:
    case = next(
        c for c in map(generate, range(1000)) if len(c.select.sources) == 3 and len(c.select.where) > 2 and not c.tables
    )

    def fails(candidate: Case) -> bool:
        return any(rows.num_rows for batch in candidate.batches for _, rows in batch.rows)

    small = shrink(case, fails, seconds=5)
    assert small.row_count == 1
    assert len(small.select.sources) == 1 and not small.select.where and len(small.batches) == 1


def test_reports_add_up() -> None:
    total = Report(cases=1, empty=1, features=Counter(a=1))
    total.add(Report(cases=2, features=Counter(a=1, b=2)))
    assert (total.cases, total.empty, total.features["a"]) == (3, 1, 2)
    assert "3 cases, 0 differences, 33.3 % with an empty result" in total.summary()


@pytest.mark.parametrize("module", [clock, sources, timeline, reproduce])
def test_examples_in_the_documentation(module: Any) -> None:
    import doctest

    assert doctest.testmod(module).failed == 0


def test_a_clock_cannot_go_back() -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        clock.ManualClock().advance(-1)
