"""The work of an eddy is counted per signature, and reported as text and as JSON."""

from __future__ import annotations

import json
import math
from itertools import count

import numpy as np
import pytest
from numpy.typing import NDArray

from eddyline.bound.udf import udf
from eddyline.routing.report import Report, decision_text, measured, short_step
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from tests.support.jobs import Job, Row, batch_of, bound, schema


@udf(returns="BOOLEAN")
def report_most(k: NDArray[np.int64]) -> NDArray[np.bool_]:
    """True for nine in ten."""
    return k % 10 != 0


@udf(returns="BOOLEAN")
def report_few(k: NDArray[np.int64]) -> NDArray[np.bool_]:
    """True for one in ten."""
    return k % 10 == 1


_JOIN = "SELECT a.k FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k"
_CHECKED = f"{_JOIN} AND report_most(a.k) AND report_few(a.k)"


def _engine(select: str, **settings: object) -> BatchDriver:
    """Every reading of the clock takes a microsecond, so all decisions are reproducible."""
    ticks = count()
    query = bound(select, a="k", b="k")
    return BatchDriver(query, Settings(check=True, **settings), clock=lambda: next(ticks) * 1e-6)  # type: ignore[arg-type]


def _feed(engine: BatchDriver, name: str, rows: list[Row]) -> None:
    engine.batch([(name, batch_of(schema("k"), rows))])


def _rows(first: int, last: int) -> list[Row]:
    return [(i, i) for i in range(first, last)]


def _checked(router: str, batches: int = 6) -> Report:
    engine = _engine(_CHECKED, router=router)
    for n in range(batches):
        _feed(engine, "b", _rows(n * 5000, (n + 1) * 5000))
        _feed(engine, "a", _rows(n * 5000, (n + 1) * 5000))
    return engine.report(2.0)


def test_what_was_measured_is_said() -> None:
    job = Job(_JOIN, Settings(check=True, router="fixed"), a="k", b="k")
    assert "measured" not in job.engine.explain()
    assert job.engine.report().text() == ""
    job.feed(a=[(1, 1), (2, 2), (3, 3)])
    job.feed(b=[(1, 1), (2, 1)])
    said = job.engine.explain()
    assert said.endswith(measured(job.query, job.engine.slot.executor.eddy))
    lines = said[said.index("measured:") :].splitlines()
    assert lines[:4] == [
        "measured:",
        "  routes now:",
        "    a -> b by a.k = b.k   (100 % of its tuples)",
        "    b -> a by b.k = a.k   (100 % of its tuples)",
    ]
    assert "      -> b by a.k = b.k: 3 in, 0 out, selectivity 0, " in said
    assert "      -> a by b.k = a.k: 2 in, 2 out, selectivity 1, " in said
    assert "  packets:\n    a: 1 of 3 tuples each, " in said


@pytest.mark.parametrize("router", ["fixed", "random", "lottery", "rank", "benefit", "auto"])
def test_every_tuple_of_a_signature_took_one_step(router: str) -> None:
    report = _checked(router)
    assert report.rows == (30000, 30000)
    assert report.rate(0) == 15000
    starts = {signature: sum(c.tuples for c in report.steps[signature]) for signature in [(1, 0), (2, 0)]}
    assert starts == {(1, 0): 30000, (2, 0): 30000}
    arrived: dict[object, int] = {(1, 0): 30000, (2, 0): 30000}
    for counts in report.steps.values():
        for c in counts:
            arrived[c.after] = arrived.get(c.after, 0) + c.produced
            assert (c.selectivity is None) == (c.microseconds is None) == (c.tuples == 0)
            assert c.tuples == 0 or c.seconds > 0
    for signature, counts in report.steps.items():
        assert not counts or sum(c.tuples for c in counts) == arrived[signature]
    for p in report.packets:
        assert p.tuples == sum(c.tuples for c in report.steps[p.signature])
        assert p.mean is None or p.mean * p.packets == pytest.approx(p.tuples)
        assert p.occupancy == 0


def test_the_route_of_a_fixed_router_is_the_order_of_the_script() -> None:
    report = _checked("fixed")
    a, b = report.routes
    assert [short_step(c.step, report.query) for c, _ in a.steps] == [
        "[report_most(a.k)]", "[report_few(a.k)]", "b",
    ]  # fmt: skip
    assert short_step(b.steps[0][0].step, report.query) == "a"
    assert a.share == b.share == 1
    assert [c.selectivity for c, _ in a.steps][:2] == [0.9, pytest.approx(1 / 9)]
    assert a.complete
    assert report.decisions == ()


def test_a_reroute_is_seen_in_routes_shares_and_decisions() -> None:
    report = _checked("auto")
    route = report.routes[0]
    names = [short_step(c.step, report.query) for c, _ in route.steps]
    assert names.index("[report_few(a.k)]") < names.index("[report_most(a.k)]")
    assert route.share is not None and 0 < route.share <= 1
    assert route.share == math.prod(share for _, share in route.steps if share is not None)
    assert report.counts["reroute"] == len(report.decisions) > 0
    assert report.text().endswith(decision_text(report.decisions[-1]))
    assert f"decisions: {len(report.decisions)} reroute" in report.text()


def test_the_difference_of_two_looks() -> None:
    engine = _engine(_CHECKED, router="random", packet=7)
    _feed(engine, "a", _rows(0, 500))
    first = engine.report(1.0)
    _feed(engine, "b", _rows(0, 500))
    _feed(engine, "a", _rows(500, 700))
    second = engine.report(3.0)
    last = second.since(first)
    assert (last.seconds, last.rows) == (2.0, (200, 500))
    assert sum(c.tuples for c in last.steps[1, 0]) == 200
    assert sum(c.tuples for c in last.steps[2, 0]) == 500
    for signature, counts in second.steps.items():
        before = first.steps.get(signature) or [None] * len(counts)
        for now, then, between in zip(counts, before, last.steps[signature], strict=True):
            assert now.tuples == between.tuples + (then.tuples if then else 0)
            assert now.produced == between.produced + (then.produced if then else 0)
            assert now.calls == between.calls + (then.calls if then else 0)
    assert all(p.tuples <= 7 * p.packets for p in last.packets)
    assert second.since(second).text() == ""
    assert second.since(second).decisions == ()


def test_decisions_since() -> None:
    engine = _engine(_CHECKED, router="auto")
    for n in range(6):
        before = engine.report()
        _feed(engine, "a", _rows(n * 5000, (n + 1) * 5000))
        after = engine.report()
        assert before.decisions + after.since(before).decisions == after.decisions
    assert after.decisions


def test_json_says_the_same() -> None:
    report = _checked("auto")
    told = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert set(told) == {"routes", "steps", "packets", "decisions_log"}
    assert [r["source"] for r in told["routes"]] == ["a", "b"]
    assert told["routes"][0]["rows"] == 30000
    assert told["routes"][0]["rows_per_second"] == 15000
    assert told["routes"][0]["share"] == report.routes[0].share
    assert len(told["routes"][0]["route"]) == len(told["routes"][0]["selectivities"]) == 3
    by_place = {(s["at"], s["step"]): s for s in told["steps"]}
    few = by_place["a", "[report_few(a.k)]"]
    assert few["chosen"]
    assert few["selectivity"] == few["produced"] / few["tuples"]
    assert sum(s["share"] for s in told["steps"] if s["at"] == "a") == pytest.approx(1)
    assert told["routes"][0]["selectivities"][0] == few["selectivity"]
    assert all(p["mean"] is None or p["mean"] >= 1 for p in told["packets"])
    assert len(told["decisions_log"]) == len(report.decisions)
    assert set(told["decisions_log"][0]) == {"kind", "at", "slot", "what", "why", "measured", "expected"}
    assert 0 < told["decisions_log"][0]["at"] <= 60000


def test_stats_count_decisions() -> None:
    engine = _engine(_CHECKED, router="auto")
    assert engine.decisions == {}
    for n in range(6):
        _feed(engine, "a", _rows(n * 5000, (n + 1) * 5000))
    assert engine.decisions == {"reroute": len(engine.report().decisions)}
