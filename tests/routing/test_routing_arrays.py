"""Routing arrays: the steps of each signature, the signatures after them, and the work of steps and modules."""

from __future__ import annotations

import pytest

from eddyline.plan.plan import Plan
from eddyline.plan.steps import Probe
from eddyline.routing.routing_arrays import RoutingArrays
from tests.support.jobs import Job, bound
from tests.support.made_up import no_overhead, plan, routes, saw


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


def test_the_module_used_last_is_known_by_source_and_partner() -> None:
    select = (
        "SELECT a.x FROM a [RANGE 5 MICROSECONDS], b [RANGE 5 MICROSECONDS], c [RANGE 5 MICROSECONDS] "
        "WHERE made_up_small(b.x) AND a.k = b.k AND a.x = c.x AND b.x = c.k"
    )
    arrays, work = routes(select), no_overhead()
    steps = arrays.entry((0b011, 0)).steps
    assert [(t.bit, t.partner) for t in steps] == [(3, -1), (2, 0), (2, 1)]  # c by the key of a and by that of b
    assert work.levels == {}
    for traffic in steps:
        traffic.add(5, 5, 1.0, work)
    assert work.levels == {(t.bit, t.partner): t.module for t in steps}
    assert len(set(map(id, work.levels.values()))) == 3
    from_a = arrays.entry((0b001, 0)).steps[-1]
    assert (from_a.bit, from_a.partner) == (2, 0) and from_a.step != steps[1].step  # it verifies fewer equalities
    from_a.add(5, 5, 1.0, work)
    assert work.levels[2, 0] is from_a.module


def test_a_probe_costs_by_the_tuple_or_match_and_a_selection_by_the_tuple() -> None:
    work, entry = no_overhead(), routes().entry((0b001, 0))
    assert entry.steps[0].cost(100, 50, 1.0, work) == pytest.approx(0.01)
    assert entry.steps[-1].cost(100, 300, 1.0, work) == pytest.approx(1 / 400)


def test_a_surprise_is_told() -> None:
    work, (select, *_, probe) = no_overhead(), routes().entry((0b001, 0)).steps
    for traffic in (select, probe):
        for _ in range(20):
            work.moment += 1000
            work.slices += 1
            told = [traffic.add(1000, 300, 0.001, work)]
        assert told == [False]
        for _ in range(3):
            work.moment += 1000
            work.slices += 1
            told.append(traffic.add(1000, 600, 0.001, work))
        assert told == [False, *([True, False, False] if traffic is select else [False, True, False])]
    for _ in range(6):
        work.moment += 1000
        told.append(select.add(1000, 600, 0.1, work))
    assert sum(told[4:]) == 1  # the selection that became expensive


def test_bits_are_sources_then_selections() -> None:
    assert routes().entry((0b011, 0b101)).bits == 0b101_011


def test_the_components_that_bound_the_time_of_a_match() -> None:
    """`most[s][t]` is how much earlier t may be; a source without a bound to the target is ignored."""
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
    entries = job.engine.slot.executor.eddy.routes.entries
    [from_a], [from_b] = (entries[1 << s, 0].steps for s in (0, 1))
    assert (from_a.tuples, from_a.produced, from_a.calls) == (2, 0, 1)
    assert (from_b.tuples, from_b.produced, from_b.calls) == (3, 2, 1)
    assert isinstance(from_b.step, Probe) and from_b.step.target == 0
    assert entries[1, 0].chosen is from_a and entries[1, 0].left == 1000 - 2
    assert entries[0b11, 0].steps == [] and entries[0b11, 0].chosen is None
