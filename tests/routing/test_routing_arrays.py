"""Routing arrays: the steps of each signature, where they lead, and what they did, there and anywhere."""

from __future__ import annotations

import pytest
from made_up import plan, routes, saw

from eddyline.plan.plan import Plan, Probe, Select
from eddyline.routing.routing_arrays import SURE, RoutingArrays, Traffic
from jobs import Job, bound


def test_an_entry_has_the_steps_of_the_plan_and_where_they_lead() -> None:
    made = plan()
    arrays = RoutingArrays(made)
    for signature in [(0b001, 0), (0b001, 0b101), (0b011, 0b001), (0b110, 0), (0b111, 0b111)]:
        entry = arrays.entry(signature)
        assert arrays.entry(signature) is entry is arrays.entries[signature]
        assert tuple(t.step for t in entry.steps) == made.steps(signature)
        assert (entry.chosen, entry.left, entry.sources) == (None, 0, 3)
        for traffic in entry.steps:
            span, done = signature
            if isinstance(traffic.step, Probe):
                assert traffic.after == (span | 1 << traffic.step.target, done)
            else:
                assert traffic.after == (span, done | 1 << traffic.step.selection)
    assert arrays.entry((0b111, 0b111)).steps == []


def test_what_a_step_did_is_counted_for_its_signature_and_for_its_module() -> None:
    arrays = routes()
    here, there = arrays.entry((0b001, 0)).steps[0], arrays.entry((0b001, 0b100)).steps[0]
    assert here.step == there.step and here.module is there.module
    assert here.module is not arrays.entry((0b001, 0)).steps[1].module
    saw(here, 100, 10, 0.5, moment=7)
    saw(there, 20, 20, 0.25, moment=7)
    saw(here, 1, 0, 0.25, moment=8)
    assert (here.tuples, here.produced, here.seconds, here.calls) == (101, 10, 0.75, 2)
    assert (there.tuples, there.produced, there.seconds, there.calls) == (20, 20, 0.25, 1)
    assert there.recent.tuples == 20 and 100 < here.recent.tuples <= 101 and 120 < here.module.tuples <= 121
    assert here.module.moment == 8


def selectivity(traffic: Traffic) -> float:
    return traffic.module.selectivity * traffic.factors.of(traffic.module, SURE)[0]


def test_when_a_module_drifts_what_is_known_of_it_drifts_along_in_signatures_that_nobody_visits() -> None:
    arrays = routes()
    one, other = arrays.entry((0b001, 0)).steps[0], arrays.entry((0b001, 0b100)).steps[0]
    moment = 0
    for _ in range(200):
        moment += 500
        saw(one, 500, 100, 0.001, moment)
        saw(other, 100, 60, 0.001, moment)
    assert selectivity(one) == pytest.approx(0.2, rel=0.25)
    assert selectivity(other) == pytest.approx(0.6, rel=0.25)
    for _ in range(100):
        moment += 500
        saw(one, 500, 50, 0.001, moment)
    assert selectivity(one) == pytest.approx(0.1, rel=0.1)
    assert selectivity(other) == pytest.approx(0.3, rel=0.3)


def test_the_newest_module_of_each_source_and_selection() -> None:
    arrays = routes(
        "SELECT a.x FROM a [RANGE 5 MICROSECONDS], b [RANGE 5 MICROSECONDS], c [RANGE 5 MICROSECONDS] "
        "WHERE made_up_small(b.x) AND a.k = b.k AND a.x = c.x AND b.x = c.k"
    )
    arrays.entry((0b001, 0))
    to_c = [t for t in arrays.entry((0b011, 0)).steps if isinstance(t.step, Probe)]
    assert [t.step.target for t in to_c] == [2, 2]  # by the key of a and by that of b
    saw(to_c[0], 5, 5, 1.0, moment=10)
    saw(to_c[1], 5, 5, 1.0, moment=11)
    newest = arrays.newest()
    assert set(newest) == {1, 2, 3}
    assert newest[2] == (to_c[1].step, to_c[1].module)
    saw(to_c[0], 5, 5, 1.0, moment=12)
    assert arrays.newest()[2][1] is to_c[0].module
    assert isinstance(newest[3][0], Select)


def test_the_components_that_bound_the_time_of_a_match() -> None:
    """`most[s][t]` is how much earlier t may be; a source without a bound to the target is not looked at."""
    query = bound(
        "SELECT a.k FROM a, b, c WHERE a.k = b.k AND b.k = c.k "
        "AND b.ts - a.ts BETWEEN INTERVAL '-2' MICROSECOND AND INTERVAL '7' MICROSECOND",
        a="k", b="k", c="k",
    )  # fmt: skip
    arrays = RoutingArrays(Plan(query))
    by_target = {t.step.target: t.within for t in arrays.entry((0b001, 0)).steps if isinstance(t.step, Probe)}
    assert by_target[1] == ((0, 2, 7),)
    assert by_target[2] == ()
    from_b = {t.step.target: t.within for t in arrays.entry((0b110, 0)).steps if isinstance(t.step, Probe)}
    assert from_b == {0: ((1, 7, 2),)}


def test_entries_count_what_went_through() -> None:
    job = Job("SELECT a.k FROM a, b WHERE a.k = b.k AND a.x = 1", a="k x", b="k x")
    job.feed(a=[(1, 5, 1), (1, 6, 1), (1, 5, 2)])
    job.feed(b=[(1, 5, 0), (1, 5, 0), (1, 9, 0)])
    entries = job.engine.slot.eddy.routes.entries
    [from_a], [from_b] = (entries[1 << s, 0].steps for s in (0, 1))
    assert (from_a.tuples, from_a.produced, from_a.calls) == (2, 0, 1)
    assert (from_b.tuples, from_b.produced, from_b.calls) == (3, 2, 1)
    assert isinstance(from_b.step, Probe) and from_b.step.target == 0
    assert entries[1, 0].chosen is from_a and entries[1, 0].left == 1000 - 2
    assert entries[0b11, 0].steps == [] and entries[0b11, 0].chosen is None
