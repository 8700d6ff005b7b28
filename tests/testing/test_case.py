"""Cases: generated from a seed alone, printed as files that rebuild them, made small."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from eddyline.cql.script import parse
from eddyline.settings import Settings
from eddyline.testing import clock, sources
from eddyline.testing.case import Case
from eddyline.testing.clock import ManualClock
from eddyline.testing.compare import difference
from eddyline.testing.oracle import Oracle
from lab.batch_driver import BatchDriver
from lab.fuzz import eager, reproduce, timeline
from lab.fuzz.generate import generate
from lab.fuzz.main import FuzzReport, case_seed, naive_of_checkout
from lab.fuzz.run import bound, expected_of, run
from lab.fuzz.shrink import shrink


def rebuilt(case: Case) -> Case:
    space: dict[str, Any] = {"__name__": "rebuilt"}
    exec(reproduce.reproduce(case), space)
    found: Case = space["case"]
    return found


@pytest.mark.parametrize("index", range(25))
def test_a_printed_case_is_the_case(index: int) -> None:
    case = generate(case_seed(1, index))
    again = rebuilt(case)
    assert again.script == case.script and again.settings == case.settings
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
    wanted += ",dead rows,nulls,skew,clique,cycle,star,cross,theta,8 sources,selections,check,eager,durable"
    wanted += ",router auto,router fixed,router random,router lottery,router rank,router benefit"
    wanted += ",packet None,packet 1,packet 3,packet 16,packet 1000"
    wanted += ",input_batch None,input_batch 1,input_batch 2,input_batch 7,input_batch 100,input_batch 65536"
    wanted += ",reroute_every 1,reroute_every 10,reroute_every 1000,explore 0.0,explore 0.02,explore 1.0"
    wanted += ",slots 1,slots 2,slots 3,slots 8,groups 1,groups 7,groups 256"
    assert not [feature for feature in wanted.split(",") if not seen[feature]]


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_oracle_and_naive_engine_agree(first: int) -> None:
    oracle, naive = Oracle(), naive_of_checkout()
    assert naive is not None
    for index in range(first, first + 25):
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

    small = shrink(case, fails, clock=ManualClock())
    assert small.row_count == 1
    assert len(small.select.sources) == 1 and not small.select.where and len(small.batches) == 1


@pytest.mark.parametrize(
    ("needed", "left"),
    [
        ({}, {}),
        ({"router": {"lottery"}}, {"router": "lottery"}),
        ({"router": {"lottery", "random"}}, {"router": "random"}),
        ({"packet": {3}, "input_batch": {2}}, {"packet": 3, "input_batch": 2}),
        ({"packet": {3, 1000}, "eager": {4}}, {"packet": 1000, "eager": 4}),
        ({"reroute_every": {1}, "explore": {1.0}, "seed": {77}}, {"reroute_every": 1, "explore": 1.0, "seed": 77}),
        ({"slots": {2, 8}, "groups": {7}}, {"slots": 2, "groups": 7}),
        ({"durable": {5}}, {"durable": 5}),
    ],
)
def test_shrinking_leaves_the_settings_that_matter(needed: dict[str, set[object]], left: dict[str, object]) -> None:
    """Everything else becomes what it is without being told."""
    settings: dict[str, object] = {"router": "lottery", "packet": 3, "input_batch": 2, "reroute_every": 1,
                                   "explore": 1.0, "seed": 77, "check": True, "eager": 4, "slots": 8,
                                   "groups": 7, "durable": 5}  # fmt: skip
    case = replace(next(c for c in map(generate, range(1000)) if len(c.select.sources) == 1), settings=settings)

    def fails(candidate: Case) -> bool:
        return all(candidate.settings.get(name) in values for name, values in needed.items())

    small = shrink(case, fails, clock=ManualClock())
    plain = {"router": "fixed", "packet": None, "input_batch": None, "reroute_every": 1000, "explore": 0.0, "seed": 0,
             "check": True, "eager": None, "slots": 1, "groups": 256, "durable": None}  # fmt: skip
    assert small.settings == {**plain, **left}
    run(replace(case, settings=small.settings))  # what was left out is no setting of the engine either


def test_an_eager_run_adapts_on_a_few_rows() -> None:
    case = next(
        c for c in map(generate, range(1000)) if len(c.select.sources) == 3 and c.row_count > 40 and not c.tables
    )
    rows = run(replace(case, settings={"check": True})).table
    engine = BatchDriver(bound(case), Settings(check=True), tuning=eager.eager(4))
    for batch in case.batches:
        engine.batch(batch.rows, batch.ended)
    queues = engine.slot.executor.eddy.scheduler.queues.values()
    assert all(q.packets == 0 or q.tuples <= 4 * q.packets for q in queues)
    assert {q.threshold for q in queues} != {1}
    assert difference(run(replace(case, settings={"check": True, "eager": 4})).table, rows, {}) is None


def test_reports_add_up() -> None:
    total = FuzzReport(cases=1, empty=1, features=Counter(a=1))
    total.add(FuzzReport(cases=2, features=Counter(a=1, b=2)))
    assert (total.cases, total.empty, total.features["a"]) == (3, 1, 2)
    assert "3 cases, 0 differences, 33.3 % with an empty result" in total.summary()


@pytest.mark.parametrize("module", [clock, sources, timeline, reproduce, eager])
def test_examples_in_the_documentation(module: Any) -> None:
    import doctest

    assert doctest.testmod(module).failed == 0


def test_a_clock_cannot_go_back() -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        clock.ManualClock().advance(-1)
