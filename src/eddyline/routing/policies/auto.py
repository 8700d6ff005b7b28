"""Auto: the step from which the whole rest of the route costs least.

The value of a signature is what a tuple of it costs until it is a result or gone:

    V(signature) = least over its steps of  cost(step) + selectivity(step) * V(signature after the step)

Costs and selectivities are those of the tuples of each signature, so correlated predicates are seen as what they are:
the selectivity of a step among tuples that came this way (see statistics.py). For a signature that no packet has had
lately the rest of the route is guessed from the modules alone, in the order of their rank.

Guesses may propose, only evidence may choose: a step that would win on a guess is first *tried* on a few tuples of the
next packet. Apart from that every step is tried now and then, the likeliest to win and the one seen longest ago first,
so that a selectivity that correlation or distance hides is found. What trials are expected to cost more than the route
of now is kept below `explore`, a share of all the work; the nearer a step is to winning, the less its trials cost and
the larger they may be. A step that costs more by itself than the whole route is not tried: it cannot win. A new step
must win by MARGIN, so that noise changes nothing. Thinking, too, is kept below a share of the work (THINK).
"""

from __future__ import annotations

from collections.abc import Callable

from eddyline.plan.explain import step_text
from eddyline.plan.plan import Plan, Probe, Signature, Step
from eddyline.routing.decisions import Decision, DecisionLog
from eddyline.routing.routing_arrays import SURE, Entry, RoutingArrays, Traffic
from eddyline.routing.statistics import Level, Work

MARGIN = 0.03
"""A step is left for one that makes the route cheaper by this share."""

EVIDENCE = 48.0
"""Tuples that a signature must have seen take a step before the step is chosen."""

TRIAL, LARGEST_TRIAL = 256, 1024
"""Tuples that try a step at a time at most: one that would win on a guess, and any other."""

FRESH = 131072
"""Rows built after which a signature that no packet had counts as never met."""

EVERY = 1024
"""Rows built between two trials at one signature."""

GRACE = 0.002
"""Seconds that trials may cost before there is much work to compare with."""

THINK = 100.0
"""What was thought holds for so many times the time it took to think it."""

PROBE_GUESS, SELECT_GUESS = (2e-7, 1.0), (1e-6, 0.5)
"""(cost, selectivity) of a module that nobody knows anything about."""


class Auto:
    """Chooses by the value of signatures; tries steps within a budget."""

    def __init__(
        self,
        plan: Plan,
        routes: RoutingArrays,
        work: Work,
        decisions: DecisionLog,
        explore: float,
        clock: Callable[[], float],
    ) -> None:
        self._plan, self._routes, self._work, self._decisions = plan, routes, work, decisions
        self._explore, self._clock = explore, clock
        self._spent = 0.0
        self._epoch = 0
        self._began, self._thought = 0.0, 0.0
        self._modules: dict[int, tuple[Step, Level]] = {}

    # Deciding

    def decide(self, entry: Entry) -> Traffic:
        """The step of least value, if it wins clearly; notes the one that would win on a guess."""
        if len(entry.steps) == 1:
            return entry.steps[0]
        begin = self._clock()
        if self._work.seconds - self._began >= THINK * self._thought:
            self._epoch += 1
            self._began, self._thought = self._work.seconds, 0.0
            self._modules = self._routes.newest()
        chosen = self._choose(entry)
        self._thought += self._clock() - begin
        return chosen

    def _choose(self, entry: Entry) -> Traffic:
        values = [self._through(t) for t in entry.steps]
        best = min(range(len(values)), key=values.__getitem__)
        chosen, step = entry.chosen or entry.steps[0], entry.steps[best]
        now = values[entry.steps.index(chosen)]
        entry.value, entry.epoch = now, self._epoch
        if step is chosen or values[best] > (1.0 - MARGIN) * now:
            return chosen
        if step.recent.weight(self._work.moment) < EVIDENCE:
            entry.wanted = step
            return chosen
        entry.value = values[best]
        self._record(entry, chosen, now, step, values[best])
        return step

    def _through(self, traffic: Traffic) -> float:
        """What a tuple costs that takes this step."""
        cost, selectivity = self._estimate(traffic)
        return cost + selectivity * self._value(traffic.after)

    def _value(self, signature: Signature) -> float:
        """What a tuple of this signature costs from here on."""
        entry = self._routes.entries.get(signature)
        if entry is None or entry.moment < 0 or self._work.moment - entry.moment > FRESH:
            return self._guess(signature)
        if entry.epoch != self._epoch:
            entry.epoch = self._epoch
            entry.value = min((self._through(t) for t in entry.steps), default=0.0)
        return entry.value

    def _estimate(self, traffic: Traffic) -> tuple[float, float]:
        """(cost, selectivity) of a step for tuples of its signature."""
        cost, selectivity = _known(traffic.module, traffic.step)
        more, dearer = traffic.factors.of(traffic.module, SURE)
        selectivity *= more
        if not isinstance(traffic.step, Probe):
            selectivity = min(selectivity, 1.0)
        return cost * dearer, selectivity

    def _guess(self, signature: Signature) -> float:
        """The value of a signature from the modules alone: what is left, in the order of rank, whatever the joins
        allow."""
        reached = signature[0] | signature[1] << len(self._plan.query.sources)
        left = [_known(level, step) for bit, (step, level) in self._modules.items() if not reached >> bit & 1]
        left.sort(key=lambda known: (known[1] - 1.0) / known[0])
        value, reach = 0.0, 1.0
        for cost, selectivity in left:
            value += reach * cost
            reach *= selectivity
        return value

    # Trying

    def trial(self, entry: Entry, size: int) -> tuple[Traffic, int] | None:
        """The step that would win on a guess, or one that is worth a look if there is something left to spend."""
        wanted, entry.wanted = entry.wanted, None
        if wanted is not None:
            return wanted, min(TRIAL, size)
        moment = self._work.moment
        if len(entry.steps) < 2 or moment - entry.tried < EVERY:
            return None
        left = GRACE + self._explore * self._work.seconds - self._spent
        if left <= 0.0:
            return None
        entry.tried = moment
        step, worth, more = None, 0.0, 0.0
        for traffic in entry.steps:
            if traffic is not entry.chosen and self._estimate(traffic)[0] < entry.value:
                value = self._through(traffic)
                hope = (moment - traffic.recent.moment) * (entry.value / value) ** 4
                if hope > worth:
                    step, worth, more = traffic, hope, max(value - entry.value, 0.0)
        if step is None:
            return None
        tuples = min(LARGEST_TRIAL, max(size // 4, 1), int(left / more) if more else size)
        if tuples == 0:
            return None
        self._spent += tuples * more + 2.0 * self._work.fixed
        return step, tuples

    # Telling

    def _record(self, entry: Entry, before: Traffic, was: float, after: Traffic, will_be: float) -> None:
        query = self._plan.query
        cost, selectivity = self._estimate(after)
        old_cost, old_selectivity = self._estimate(before)
        came = " ".join(s.alias for i, s in enumerate(query.sources) if entry.signature[0] >> i & 1)
        done = entry.signature[1].bit_count()
        came += f" after {done} selection{'s' * (done > 1)}" if done else ""
        self._decisions.add(
            Decision(
                "reroute",
                self._work.moment,
                f"{came}: {step_text(after.step, query)} before {step_text(before.step, query)}",
                f"the rest of the route costs {will_be * 1e6:.3g} us a tuple instead of {was * 1e6:.3g}: "
                f"{selectivity:.3g} out for one in at {cost * 1e6:.3g} us "
                f"against {old_selectivity:.3g} at {old_cost * 1e6:.3g} us",
                {
                    "expected": will_be,
                    "instead_of": was,
                    "cost": cost,
                    "selectivity": selectivity,
                    "old_cost": old_cost,
                    "old_selectivity": old_selectivity,
                },
            )
        )


def _known(level: Level, step: Step) -> tuple[float, float]:
    """(cost, selectivity) of a module."""
    if level.tuples:
        return level.cost, level.selectivity
    return PROBE_GUESS if isinstance(step, Probe) else SELECT_GUESS
