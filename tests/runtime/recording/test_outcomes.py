"""What came of decisions: who gets a verdict, the rule by which a change paid, and what cuts a measurement short."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import pytest

from eddyline.engine.standing import SlotStanding, Standing
from eddyline.plan.plan import Plan, Signature
from eddyline.routing.decisions import Decision
from eddyline.routing.report import Report, StepCount
from eddyline.runtime.recording.feed import Event
from eddyline.runtime.recording.outcomes import Outcomes, rest_cost
from tests.support.jobs import bound

A, AB, ABC = (1, 0), (3, 0), (7, 0)
_FROM = "a [RANGE 1 SECOND], b [RANGE 1 SECOND], c [RANGE 1 SECOND]"
QUERY = bound(f"SELECT a.x FROM {_FROM} WHERE a.x = b.x AND b.x = c.x", a="x", b="x", c="x")
PLAN = Plan(QUERY)
ROUTE = Decision(
    "reroute", 0, "a: c, b instead of b, c", "it is cheaper", {}, {"us per tuple before": 5.0}, about="route 1 0"
)
NEW_PLAN = Decision("plan", 0, "(a b c) -> ((a b) c)", "it is cheaper", about="plan")


class World:
    """A run whose looks are made up: each takes a second, with some microseconds for each of 1000 rows."""

    def __init__(self) -> None:
        self.outcomes, self.t, self.rows, self.us, self.cpu = Outcomes(), 0.0, 0, 0.0, 0.0
        self.events: list[Event] = []

    def look(self, us: float, cpu: float = 1.0) -> None:
        self.t, self.rows, self.us, self.cpu = self.t + 1, self.rows + 1000, self.us + 1000 * us, self.cpu + 1e-3 * cpu
        step = StepCount(PLAN.steps(A)[0], AB, self.rows, 0, self.us / 1e6, 1, True)
        report = Report(QUERY, self.t, (self.rows, 0, 0), {A: (step,)}, (), {}, (), tree="(a b c)")
        standing = Standing(slots=(SlotStanding(0, 1, 1, self.cpu),))
        self.events += self.outcomes.measure(self.t, self.rows, report, standing)

    def looks(self, *us: float, cpu: float = 1.0) -> None:
        for each in us:
            self.look(each, cpu)

    def decide(self, id: int, decision: Decision) -> None:
        self.events += self.outcomes.decided(self.t, id, decision)

    def end(self) -> None:
        self.events += self.outcomes.end(self.t)

    @property
    def verdicts(self) -> list[tuple[int, bool | None]]:
        return [(event["of"], event["paid"]) for event in self.events]


@pytest.mark.parametrize(
    ("after", "paid"),
    [
        ((1.0, 1.1, 0.9, 1.0, 1.0), True),
        ((9.0, 9.1, 8.9, 9.0, 9.0), False),
        ((4.5, 4.6, 4.4, 4.5, 4.5), None),  # dearer than before, and not than the old route would be by the estimate
        ((3.0, 1.0, 9.0, 1.0, 2.0), None),  # too noisy
        ((4.0, 4.0, 4.0, 4.0, 4.0), None),  # the same
    ],
)
def test_a_route_paid_if_the_rest_of_it_is_clearly_cheaper(after: tuple[float, ...], paid: bool | None) -> None:
    world = World()
    world.looks(4.0, 4.0, 4.0)
    world.decide(1, ROUTE)
    world.looks(*after[:4])
    assert world.events == []
    world.look(after[4])
    assert world.verdicts == [(1, paid)]
    (outcome,) = world.events
    assert outcome["measured"]["us per tuple"] == pytest.approx(sum(after) / 5) and outcome["t"] == world.t
    assert outcome["measured"]["us per tuple before"] == 4.0 and outcome["measured"]["rows/s"] == 1000.0
    assert ("; the difference is within the noise" in outcome["what"]) == (paid is None and after[0] != 4.5)
    assert ("; the old route was estimated at 5 when it was left" in outcome["what"]) == (after[0] == 4.5)
    assert "(1,000 rows/s in the 2 s before, 1,000 rows/s in the 5 s after)" in outcome["what"]


def test_a_route_that_is_replaced_soon_says_when() -> None:
    world = World()
    world.looks(4.0, 4.0)
    world.decide(1, ROUTE)
    world.decide(2, ROUTE)
    world.look(4.0)
    world.decide(3, ROUTE)
    world.decide(4, replace(ROUTE, about="route 2 0"))
    world.end()
    first, second, third, fourth = world.events
    assert first["what"] == "replaced at 2.0 s, before anything was measured"
    assert second["what"].startswith(
        "replaced at 3.0 s, 1 s after the change; the rest of the route took 4 us a tuple, 4 before;"
        " too few measurements"
    )
    assert third["what"] == "the run ended, before anything was measured"
    assert world.verdicts == [(1, None), (2, None), (3, None), (4, None)] and fourth["of"] == 4


def test_a_plan_is_measured_once_its_migration_is_over() -> None:
    world = World()
    world.looks(1.0, 1.0, 1.0, 1.0, cpu=8.0)
    world.decide(1, NEW_PLAN)
    world.looks(1.0, 1.0, cpu=20.0)
    world.decide(2, Decision("migration", 0, "done", ""))
    world.looks(1.0, 1.0, 1.0, 1.0, 1.0, cpu=2.0)
    assert world.verdicts == [(1, True)]
    assert world.events[0]["what"].startswith("cheaper than before: 2 us of CPU a row with the new plan, 8 before (")
    world.decide(3, NEW_PLAN)
    world.end()
    assert world.events[1]["what"] == "the run ended, before the plan had changed"


def test_a_verdict_of_the_engine_is_the_outcome_of_the_newest_decision_about_the_same_thing() -> None:
    world = World()
    world.decide(1, NEW_PLAN)
    world.decide(2, replace(NEW_PLAN, slot=1))
    world.decide(3, NEW_PLAN)
    verdict = Decision("trial", 0, "the trial is over", "it stays", {"cpu": 0.1}, about="plan", paid=True)
    world.decide(4, verdict)
    world.decide(5, replace(verdict, slot=1, paid=False))
    world.decide(6, replace(verdict, about="something else"))
    world.end()
    assert world.verdicts == [(1, None), (3, True), (2, False)]
    assert world.events[1]["what"] == "it stays" and world.events[1]["measured"] == {"cpu": 0.1}


@pytest.mark.parametrize("looks", [2, 5])
@pytest.mark.parametrize(
    ("before", "after", "paid", "words"),
    [(8.0, 2.0, True, "cheaper than before: 2"), (2.0, 8.0, None, "dearer than before: 8")],
)
def test_a_trial_that_decides_nothing_leaves_the_measurement(
    looks: int, before: float, after: float, paid: bool | None, words: str
) -> None:
    """Whether it ends before the measurement or after it; the text says so. Dearer data is no fault of the plan."""
    world = World()
    world.looks(1.0, 1.0, 1.0, cpu=before)
    world.decide(1, NEW_PLAN)
    world.decide(2, Decision("migration", 0, "done", ""))
    world.looks(*[1.0] * looks, cpu=after)
    world.decide(3, Decision("trial", 0, "over", "the data has changed", about="plan"))
    world.looks(*[1.0] * (5 - looks), cpu=after)
    assert world.verdicts[-1] == (1, paid) and len(world.events) == (2 if looks == 5 else 1)
    said = world.events[-1]["what"]
    assert said.startswith(f"{words} us of CPU a row with the new plan, {before:g} before (1,000 rows/s in the 3")
    assert said.endswith("; the optimizer's own trial decided nothing: the data changed meanwhile")


@pytest.mark.parametrize(("migration", "paid"), [("before", None), ("after", None), ("earlier", True), ("later", True)])
def test_nobody_can_tell_of_a_route_if_the_plan_changed_meanwhile(migration: str, paid: bool | None) -> None:
    world, done = World(), Decision("migration", 0, "done", "")
    world.looks(4.0, 4.0)
    if migration == "earlier":
        world.decide(1, done)
    world.looks(4.0, 4.0)
    if migration == "before":
        world.decide(1, done)
    world.decide(2, ROUTE)
    world.looks(1.0, 1.0)
    if migration == "after":
        world.decide(3, done)
    world.looks(1.0, 1.0, 1.0)
    if migration == "later":
        world.decide(3, done)
    assert world.verdicts == [(2, paid)]
    assert ("; the plan changed meanwhile (" in world.events[0]["what"]) == (paid is None)


def steps() -> Iterator[tuple[Signature, tuple[StepCount, ...]]]:
    """100 of 150 tuples of a go to b, each finds 2; the others go to c first."""
    to_b, to_c = PLAN.steps(A)
    yield A, (StepCount(to_b, AB, 100, 200, 1e-3, 1, True), StepCount(to_c, (5, 0), 50, 0, 5e-3, 1, False))
    yield AB, (StepCount(PLAN.steps(AB)[0], ABC, 200, 20, 4e-3, 1, True),)
    yield ABC, ()


def test_the_cost_of_the_rest_of_a_route_is_that_of_its_steps() -> None:
    assert rest_cost(dict(steps()), AB) == pytest.approx(20.0)
    assert rest_cost(dict(steps()), A) == pytest.approx((1000 + 5000 + 200 * 20) / 150)
    assert rest_cost({}, A) == 0.0 and math.isfinite(rest_cost(dict(steps()), ABC))
