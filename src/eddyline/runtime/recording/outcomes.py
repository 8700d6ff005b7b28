"""The outcomes of decisions: verdicts of the engine, and measurements before and after a change of route or plan.

A verdict of the engine (`Decision.paid`) belongs to the newest earlier decision about the same thing.

For a new route we measure the microseconds per tuple of the rest of the route. The old route is measured in the last
`SHORT` seconds before the decision only, because a route is mostly left soon after the data has changed. The new one is
measured for `STRETCH` seconds. For a new plan we measure the CPU of the slots per row, for `STRETCH` seconds before the
decision and for `STRETCH` seconds after the migration. Later the optimizer's own trial of the plan may give a verdict.
It takes changes of the data into account, so it replaces the measurement. If the trial decides nothing, because the
data has changed, the measurement stays, and its text says so; but dearer data is no fault of the plan, so nobody can
tell where the measurement says that it did not pay. An outcome always has the rows per second before and after.

The rule: a change paid if it is cheaper than before by two standard errors of the measurements (over looks) and by 1 %.
It did not pay if it is dearer by as much, for a route also than what the old route would have cost by the estimate.
Otherwise nobody can tell.

If another decision about the same thing comes before the end of the measurement, the outcome says so. If the plan
changed while a route was measured, nobody can tell whether the route paid: the plan may be the reason.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from eddyline.engine.standing import Standing
from eddyline.plan.plan import Signature
from eddyline.routing.decisions import Decision
from eddyline.routing.report import Report, StepCount, number
from eddyline.runtime.recording.feed import Event
from eddyline.runtime.recording.sampling import since
from eddyline.runtime.recording.words import seconds

STRETCH, SHORT = 5.0, 1.5
"""Seconds before and after a change that are compared."""
FEW = 3
"""With fewer looks nobody can tell."""
ERRORS = 2.0
"""By how many standard errors two measurements differ clearly."""
LEAST = 0.01
"""The least share by which they do."""
KNOWN = 4096
"""The most things whose newest decision is remembered."""
_WATCHED = ("route ", "plan")
_UNDECIDED = "; the optimizer's own trial decided nothing: the data changed meanwhile"


@dataclass(frozen=True)
class Lap:
    """What happened between two looks."""

    t: float
    seconds: float
    rows: int
    cpu: float
    steps: Mapping[Signature, Sequence[StepCount]]


@dataclass
class _Pending:
    """A decision whose outcome is being measured. `begin` is None until the change has taken place."""

    id: int
    decided: float
    begin: float | None
    expected: Mapping[str, float]
    before: list[Lap] = field(default_factory=list)
    trial: str = ""
    """What is to be said of the trial of a plan."""


class Outcomes:
    """Measures one run."""

    def __init__(self) -> None:
        self._stretches: deque[Lap] = deque()
        self._reports: dict[str, Report] = {}
        self._last = 0.0, 0, 0.0
        self._newest: dict[tuple[int | None, str], int] = {}
        self._pending: dict[tuple[int | None, str], _Pending] = {}
        self._plans: dict[int | None, Event] = {}
        """The last outcome of a plan of each slot."""
        self._migrations: deque[float] = deque()
        """When the last migrations were over."""

    def measure(self, t: float, rows: int, report: Report, standing: Standing) -> Iterator[Event]:
        """Take a look into account, at which the run has had so many rows; gives the outcomes that are due."""
        cpu = sum(slot.cpu for slot in standing.slots)
        then, had, took = self._last
        steps = since(report, self._reports.get(report.tree))
        self._reports[report.tree], self._last = report, (t, rows, cpu)
        self._stretches.append(Lap(t, t - then, rows - had, max(0.0, cpu - took), steps))
        while self._stretches[0].t < t - 2 * STRETCH:
            self._stretches.popleft()
        while self._migrations and self._migrations[0] < self._stretches[0].t:
            self._migrations.popleft()
        due = [key for key, one in self._pending.items() if one.begin is not None and t >= one.begin + STRETCH]
        for key in due:
            yield self._outcome(t, key)

    def decided(self, t: float, id: int, decision: Decision) -> Iterator[Event]:
        """Take a decision into account; gives the outcomes of earlier ones that it settles."""
        key = decision.slot, decision.about
        if decision.paid is not None or decision.kind == "trial":
            of = self._newest.get(key)
            if of is not None and decision.paid is not None:
                self._pending.pop(key, None)
                yield _event(t, of, decision.paid, decision.why or decision.what, decision.measured)
            elif key in self._pending:
                self._pending[key].trial = _UNDECIDED
            elif (told := self._plans.get(decision.slot)) is not None and told["of"] == of:
                yield told | {"t": t, "paid": told["paid"] or None, "what": told["what"] + _UNDECIDED}
            return
        if decision.kind == "migration":
            self._migrations.append(t)
            if (moving := self._pending.get((decision.slot, "plan"))) is not None:
                moving.begin = t
        if not decision.about:
            return
        if key in self._pending:
            yield self._outcome(t, key, f"replaced at {seconds(t)}")
        self._newest[key] = id
        if len(self._newest) > KNOWN:
            del self._newest[next(iter(self._newest))]
        if decision.about.startswith(_WATCHED):
            begin = None if decision.about == "plan" else t
            known = [s for s in self._stretches if s.rows]
            before = [s for s in known if s.t > t - (STRETCH if begin is None else SHORT)] or known[-1:]
            self._pending[key] = _Pending(id, t, begin, decision.expected, before)

    def end(self, t: float) -> Iterator[Event]:
        """The run has ended: the outcomes that are not measured to their end."""
        for key in list(self._pending):
            yield self._outcome(t, key, "the run ended")

    def _outcome(self, t: float, key: tuple[int | None, str], cut: str = "") -> Event:
        one = self._pending.pop(key)
        if one.begin is None:
            return _event(t, one.id, None, f"{cut}, before the plan had changed", {})
        after = [s for s in self._stretches if one.begin < s.t <= one.begin + STRETCH and s.rows]
        if not after:
            return _event(t, one.id, None, f"{cut or 'no row came'}, before anything was measured", {})
        cut = f"{cut}, {t - one.begin:.3g} s after the change; " if cut else ""
        if key[1] == "plan":
            self._plans[key[0]] = self._of_plan(t, one, after, cut)
            return self._plans[key[0]]
        _, span, done = key[1].split()
        return self._of_route(t, one, after, (int(span), int(done)), cut, self._is_new_plan_in(one, after))

    def _is_new_plan_in(self, one: _Pending, after: Sequence[Lap]) -> bool:
        """Whether the plan of any slot changed in the time that is measured: steps are counted over all slots."""
        first, last = (one.before or after)[0], after[-1]
        return any(first.t - first.seconds < t <= last.t for t in self._migrations)

    def _of_route(
        self, t: float, one: _Pending, after: Sequence[Lap], signature: Signature, cut: str, is_new_plan: bool
    ) -> Event:
        (was, error_was), (now, error) = (
            _mean([(w, rest_cost(s.steps, signature)) for s in side if (w := _weight(s, signature))])
            for side in (one.before, after)
        )
        error_was = error_was if math.isfinite(error_was) else error
        paid, estimate = _paid(was, error_was, now, error), one.expected.get("us per tuple before", 0.0)
        doubt = _doubt(paid, error)
        if paid is False and not now - ERRORS * error > estimate:
            paid, doubt = None, f"; the old route was estimated at {_number(estimate)} when it was left"
        if is_new_plan:
            paid, doubt = None, "; the plan changed meanwhile"
        if not math.isfinite(now):
            return _event(t, one.id, None, f"{cut}no tuple took the route", {})
        measured = {"us per tuple before": was, "us per tuple": now, **_rates(one.before, after)}
        what = f"{cut}the rest of the route took {_number(now)} us a tuple, {_number(was)} before{doubt}"
        return _event(t, one.id, paid, what + _told(one.before, after), measured)

    def _of_plan(self, t: float, one: _Pending, after: Sequence[Lap], cut: str) -> Event:
        (was, error_was), (now, error) = (
            _mean([(float(s.rows), 1e6 * s.cpu / s.rows) for s in side]) for side in (one.before, after)
        )
        cheaper = _paid(was, error_was, now, error)
        paid = (cheaper or None) if one.trial else cheaper
        measured = {"cpu us per row before": was, "cpu us per row": now, **_rates(one.before, after)}
        verdict = {True: "cheaper than before: ", False: "dearer than before: ", None: ""}[cheaper]
        costs = f"{_number(now)} us of CPU a row with the new plan, {_number(was)} before{_doubt(cheaper, error)}"
        return _event(t, one.id, paid, f"{cut}{verdict}{costs}{_told(one.before, after)}{one.trial}", measured)


def rest_cost(steps: Mapping[Signature, Sequence[StepCount]], signature: Signature) -> float:
    """Microseconds for a tuple with this signature, from there to the end of its route, as it was measured."""
    known: dict[Signature, float] = {}

    def cost(at: Signature) -> float:
        if at not in known:
            known[at] = 0.0
            counts = steps.get(at, ())
            tuples = sum(c.tuples for c in counts)
            if tuples:
                known[at] = sum(1e6 * c.seconds + c.produced * cost(c.after) for c in counts if c.tuples) / tuples
        return known[at]

    return cost(signature)


def _weight(stretch: Lap, signature: Signature) -> float:
    return float(sum(c.tuples for c in stretch.steps.get(signature, ())))


def _mean(values: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The weighted mean and its standard error, which few values do not tell."""
    weight = sum(w for w, _ in values)
    if not weight:
        return math.nan, math.nan
    mean = sum(w * v for w, v in values) / weight
    if len(values) < FEW:
        return mean, math.nan
    spread = sum(w * (v - mean) ** 2 for w, v in values) / weight
    return mean, math.sqrt(spread / (len(values) - 1))


def _paid(old: float, old_error: float, new: float, new_error: float) -> bool | None:
    """Whether the new cost is clearly below the old one (True) or above it (False)."""
    margin = max(ERRORS * math.hypot(old_error, new_error), LEAST * old)
    if not math.isfinite(margin + new) or abs(old - new) <= margin:
        return None
    return new < old


def _doubt(paid: bool | None, error: float) -> str:
    """Why nobody can tell whether a change paid."""
    if paid is not None:
        return ""
    return "; the difference is within the noise" if math.isfinite(error) else "; too few measurements"


def _number(value: float) -> str:
    return number(value if math.isfinite(value) else None)


def _rates(before: Sequence[Lap], after: Sequence[Lap]) -> dict[str, float]:
    """Rows per second, and the lengths of the stretches."""
    return {
        "rows/s before": _rate(before),
        "rows/s": _rate(after),
        "seconds before": sum(s.seconds for s in before),
        "seconds": sum(s.seconds for s in after),
    }


def _rate(side: Sequence[Lap]) -> float:
    seconds = sum(s.seconds for s in side)
    return sum(s.rows for s in side) / seconds if seconds > 0 else math.nan


def _told(before: Sequence[Lap], after: Sequence[Lap]) -> str:
    sides: list[str] = []
    length: Callable[[Sequence[Lap]], str] = lambda side: f"{sum(s.seconds for s in side):.3g} s"  # noqa: E731
    for side, name in ((before, "before"), (after, "after")):
        if side:
            sides.append(f"{number(_rate(side))} rows/s in the {length(side)} {name}")
    return f" ({', '.join(sides)})" if sides else ""


def _event(t: float, of: int, paid: bool | None, what: str, measured: Mapping[str, float]) -> Event:
    known = {name: value for name, value in measured.items() if math.isfinite(value)}
    return {"type": "outcome", "t": t, "of": of, "paid": paid, "what": what, "measured": known}
