"""The snapshots of slots after each turn add up to the work of their eddies, and stay small."""

from __future__ import annotations

from itertools import count

from eddyline.codec import packed, unpacked
from eddyline.plan.plan import Plan
from eddyline.routing.decisions import Decision
from eddyline.routing.gathered import DECISIONS, LETTERS, QUEUES, SIGNATURES, Gathered, TurnReport, snapshot
from eddyline.routing.report import Packets, Report, StepCount
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from tests.support.jobs import Row, batch_of, bound, schema

_JOIN = """SELECT a.k FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS], c [RANGE 5 SECONDS]
           WHERE a.k = b.k AND b.k = c.k"""
_QUERY = bound(_JOIN, a="k", b="k", c="k")


def _engine() -> BatchDriver:
    ticks = count()
    return BatchDriver(_QUERY, Settings(check=True), clock=lambda: next(ticks) * 1e-6)


def _feed(engine: BatchDriver, turn: int, slot: int) -> None:
    """At first few keys of c match, later few of b."""
    for name in "abc":
        rare = name == ("c" if turn < 3 else "b")
        rows: list[Row] = [
            (i, i % 4000 + (10_000 if rare and i % 20 else 0)) for i in range(turn * 4000, turn * 4000 + 4000)
        ]
        engine.batch([(name, batch_of(schema("k"), rows[slot::2]))])


def _told(turn: Report) -> TurnReport:
    """The snapshot of a turn after a round trip through bytes."""
    return unpacked(packed(snapshot(turn)), TurnReport)


def test_turns_of_slots_add_up() -> None:
    engines, gathered = [_engine(), _engine()], Gathered(Plan(_QUERY), 2)
    seen = [engine.report() for engine in engines]
    for turn in range(6):
        for slot, engine in enumerate(engines):
            _feed(engine, turn, slot)
            now = engine.report()
            gathered.add(slot, _told(now.since(seen[slot])))
            seen[slot] = now
    report = gathered.report(2.0)
    assert report.rows == tuple(x + y for x, y in zip(*(r.rows for r in seen), strict=True))
    for signature, counts in report.steps.items():
        slots = [r.steps[signature] for r in seen]
        for number, merged in enumerate(counts):
            assert merged.tuples == sum(s[number].tuples for s in slots)
            assert merged.produced == sum(s[number].produced for s in slots)
            assert (merged.step, merged.after) == (slots[0][number].step, slots[0][number].after)
        assert sum(c.chosen for c in counts) == bool(counts)
    assert sum(report.counts.values()) == sum(len(r.decisions) for r in seen) > 0
    told = [d.what for d in report.decisions]
    assert [w for w in told if w.startswith("slot 1: ")] == [f"slot 1: {d.what}" for d in seen[1].decisions]
    assert sum(p.tuples for p in report.packets) == sum(p.tuples for r in seen for p in r.packets)
    assert all(route.complete for route in report.routes)
    assert "routes now:" in report.text()


def test_a_slot_that_was_made_again_counts_on() -> None:
    gathered = Gathered(Plan(_QUERY), 1)
    for _ in range(2):
        engine = _engine()
        _feed(engine, 0, 0)
        gathered.add(0, _told(engine.report().since(_engine().report())))
    assert gathered.report(1.0).rows == (4000, 4000, 4000)
    assert not any(d.what.startswith("slot") for d in gathered.report(1.0).decisions)


def test_nothing_happened() -> None:
    empty = _engine().report()
    assert snapshot(empty.since(empty)) is None
    assert Gathered(Plan(_QUERY), 2).report(0.0).text() == ""


def test_a_snapshot_is_small_whatever_happened() -> None:
    engine = _engine()
    _feed(engine, 0, 0)
    (step, *_) = engine.report().steps[1, 0]
    many = range(1000)
    told = snapshot(
        Report(
            _QUERY,
            1.0,
            (1, 1, 1),
            {(n, 0): (StepCount(step.step, step.after, n + 1, n, 0.5, 1, True),) * 3 for n in many},
            tuple(Packets((n, 0), 1, n + 1, 0, 256, 0.1, 1) for n in many),
            {"reroute": 1000},
            tuple(Decision("reroute", n, "what " * 1000, "why " * 1000, {"expected": 1.0}) for n in many),
        )
    )
    assert told is not None
    assert [len(part) for part in (told.signatures, told.packets, told.decisions)] == [SIGNATURES, QUEUES, DECISIONS]
    assert told.counts == {"reroute": 1000} and told.decisions[-1].at == 999
    assert told.signatures[0].signature == (999, 0)
    assert len(packed(told)) < 200 * SIGNATURES + (2 * LETTERS + 100) * DECISIONS + 100 * QUEUES
