"""The optimiser of a slot: watches what the query does, and proposes a plan when it is time and when it pays.

`watch` is told after every batch what happened; `propose` gives another tree, or None. Memory is there to be used: of
the plans within the limits the one with the least CPU is wanted, unless memory is said to be what is scarce. Prices are
those of this machine (calibrate.py), corrected by one factor: what the plan of now took over what was predicted for it,
without selections, whose price is measured. A plan is left only for one that is cheaper by a good share, or when it is over a limit
and the other is not; so noise does not cause thrashing. Every proposal, taken or not, is a record. What a search found
is remembered (library.py), and taken at once, if it pays, when statistics come back to where they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eddyline.optimizer.calibrate import calibrate
from eddyline.optimizer.conditions import Condition, conditions, sources_span
from eddyline.optimizer.cost_model import Model
from eddyline.optimizer.costs import Costs
from eddyline.optimizer.dominating import choose, dominating
from eddyline.optimizer.exhaustive import exhaustive
from eddyline.optimizer.library import Library
from eddyline.optimizer.observed import FEW, Observed
from eddyline.optimizer.plans import Considered, Cost, Limits, Orderings, Planned
from eddyline.optimizer.shapes import Pricing, shape_of
from eddyline.optimizer.strategies import bjtree_init, mjoin_init
from eddyline.optimizer.timing import GLANCE, Timing, Usage
from eddyline.optimizer.workload import Access, Edge, Selection, Source, Workload
from eddyline.plan.bounds import UNBOUND
from eddyline.plan.plan import Plan
from eddyline.plan.tree import Tree
from eddyline.query.model import WindowKind
from eddyline.settings import Settings
from eddyline.state.shelf import Saved

GAIN = 0.3
"""A plan is left for one that takes less CPU by this share."""

SEARCH = 0.05
"""Seconds of searching where there are too many plans to look at all."""

MICROS = 1e6

_calibrated: list[Costs] = []
"""Of this process: measured once, when a slot first wants to know."""


@dataclass(frozen=True)
class Held:
    """What the SteM of a source holds."""

    rows: int
    row_bytes: float


@dataclass(frozen=True)
class Proposal:
    """A tree that was found, beside the one of now, with what both are predicted to cost."""

    tree: Tree
    cost: Cost
    now: Cost
    taken: bool
    why: str
    measured: Mapping[str, float]


class Optimiser:
    """For one query; the plan of now is told at every call."""

    def __init__(self, plan: Plan, settings: Settings, clock: Callable[[], float]) -> None:
        sources, most = plan.query.sources, plan.graph.bounds.most
        self._query, self._settings, self._clock = plan.query, settings, clock
        self._conditions = conditions(plan)
        streams = [i for i, s in enumerate(sources) if not s.stream.is_table]
        self._windows: list[float | None] = []
        """Seconds that a row lives; None where that is not what ends it."""
        for number, source in enumerate(sources):
            life = max((most[other][number] for other in streams if other != number), default=0)
            timed = number in streams and source.window.kind is not WindowKind.ROWS and life < UNBOUND
            self._windows.append(max(life, 1) / MICROS if timed else None)
        self._longest = max((w for w in self._windows if w is not None), default=0.0)
        self._limits = Limits(settings.cpu, None if settings.memory is None else float(settings.memory))
        self.observed = Observed(len(sources))
        self._selections = [sources_span(predicate) for predicate in plan.graph.selections]
        self.timing, self.library = Timing(self._longest, settings.optimize_when), Library()
        self._factor = 1.0
        self.last: Proposal | None = None
        self.orderings: Orderings = {}
        """The best ones for the plan of now; none before the first look."""

    def watch(
        self,
        event_time: int | None,
        rows: Sequence[int],
        probes: Mapping[tuple[int, int], tuple[int, int]],
        usage: Usage,
        selections: Mapping[int, tuple[int, int, float]] | None = None,
    ) -> None:
        """A batch: the event time it came to, rows built, probes taken and selections evaluated since the last one, CPU
        and memory used."""
        started = self.timing.started
        seconds = self.timing.passed(event_time, sum(rows), usage)
        self.observed.add(seconds, rows if started else [0] * len(rows), probes, self._longest, selections)

    def due(self, plan: Plan) -> str | None:
        """Why it is time to propose something; None if it is not."""
        return self.timing.due(self.library.has_other(plan.tree))

    def propose(self, plan: Plan, held: Sequence[Held]) -> Proposal | None:
        """Another tree, if it is time to look for one; `taken` says whether it is worth it."""
        why = self.due(plan)
        if why is None:
            return None
        workload = self.workload(held)
        figures = _figures(workload)
        if why == GLANCE:
            return self._recalled(plan, workload, figures)
        pressing, changed = self.timing.pressing, self.timing.changed(figures)
        if not changed and not pressing:
            return None
        model = self._corrected(workload, plan)
        current, found = Pricing(model).planned(shape_of(plan.tree)), self._search(model)
        self.library.remember(figures, found.tree, found.cost)
        return self._proposed(current, found, f"{why}; {changed}" if changed else why)

    def _recalled(self, plan: Plan, workload: Workload, figures: Mapping[str, float]) -> Proposal | None:
        """The plan of the library for what statistics have become, if it pays; else nothing was looked at."""
        known = self.library.recall(figures)
        if known is not None and known.tree != plan.tree and self.timing.differs(figures):
            pricing = Pricing(self._corrected(workload, plan))
            current, found = pricing.planned(shape_of(plan.tree)), pricing.planned(shape_of(known.tree))
            if self._pays(current, found):
                then = f"this plan was found then, for {known.cost.cpu:.3g} of a core"
                return self._proposed(current, found, f"{GLANCE}, {then}; {self.timing.changed(figures)}")
        self.timing.glanced()
        return None

    def _pays(self, current: Planned, found: Planned) -> bool:
        over = not self._limits.allow(current.cost) and self._limits.allow(found.cost)
        return found.tree != current.tree and (over or found.cost.cpu < (1.0 - GAIN) * current.cost.cpu)

    def _proposed(self, current: Planned, found: Planned, why: str) -> Proposal:
        now, cost, taken = current.cost, found.cost, self._pays(current, found)
        measured = {"cpu now": now.cpu, "cpu": cost.cpu, "memory now": now.memory, "memory": cost.memory}
        measured |= {f"rate {s.alias}": self.observed.rate(i) for i, s in enumerate(self._query.sources)}
        measured["plans"] = float(max(1, len(found.considered)))
        self.orderings = found.orderings if taken else current.orderings
        self.last = Proposal(found.tree, cost, now, taken, why, measured)
        return self.last

    def _search(self, model: Model) -> Planned:
        limits, name = self._limits, self._settings.optimizer
        if name == "mjoin-init":
            return mjoin_init(model, limits)
        if name == "bjtree-init":
            return bjtree_init(model, limits)
        plans = exhaustive(model, limits) if name == "exhaustive" else dominating(model, limits, self._clock, SEARCH)
        best = choose(plans, limits, "cpu")
        if best is None:
            return mjoin_init(model, limits)
        return replace(best, considered=tuple(Considered("not dominated", p.tree, p.cost) for p in plans))

    def _corrected(self, workload: Workload, plan: Plan) -> Model:
        """Prices by what the plan of now took, over what the calibrated costs say."""
        model = Model(workload, self._calibrated())
        pricing, shape = Pricing(model), shape_of(plan.tree)
        selected = [
            model.selection_cpu(child, order)
            for children in shape.values()
            for child, order in pricing.operator(children).ordered.orders.items()
        ]
        self._factor = self.timing.factor(pricing.cost(shape).cpu - sum(selected), self._factor)
        return Model(workload, self._costs())

    def _calibrated(self) -> Costs:
        if not _calibrated:
            _calibrated.append(calibrate(self._clock))
        return _calibrated[0]

    def _costs(self) -> Costs:
        return self._calibrated().times(self._factor)

    def model(self, held: Sequence[Held]) -> Model:
        """Prices for what was observed."""
        return Model(self.workload(held), self._costs())

    def predicted(self, model: Model, plan: Plan) -> Cost:
        """What a plan costs."""
        return Pricing(model).cost(shape_of(plan.tree))

    def selectivities(self, held: Sequence[Held]) -> list[tuple[Condition, float]]:
        """Of the conditions of the query."""
        rows = [source.rows for source in self._sources(held)]
        shares = self.observed.selectivities(self._conditions, rows, self.selections())
        return list(zip(self._conditions, shares, strict=True))

    def selections(self) -> tuple[Selection, ...]:
        """Those of the query that tuples were seen to take."""
        return tuple(
            Selection(self._selections[number], seen.share, seen.seconds / seen.tuples)
            for number, seen in sorted(self.observed.selections.items())
            if seen.tuples >= FEW
        )

    def _sources(self, held: Sequence[Held]) -> list[Source]:
        sources = []
        for number, (window, have) in enumerate(zip(self._windows, held, strict=True)):
            rate = self.observed.rate(number)
            rows = float(max(have.rows, 1)) if window is None else max(rate * window, 1e-6)
            sources.append(Source(rate, rows, have.row_bytes))
        return sources

    def workload(self, held: Sequence[Held]) -> Workload:
        """What was observed, as the algorithms take it."""
        shares = [share for _, share in self.selectivities(held)]
        return Workload(tuple(self._sources(held)), *_edges(self._conditions, shares), self.selections())

    def saved(self) -> Saved:
        """For another process."""
        orderings = [[*key, list(order)] for key, order in self.orderings.items()]
        parts = self.observed.saved(), self.timing.saved(), self.library.saved()
        return [*parts, self._factor, orderings]

    def restore(self, saved: Saved) -> None:
        """Go on from there."""
        observed, timing, library, self._factor, orderings = saved
        self.orderings = {(operator, start): tuple(order) for operator, start, order in orderings}
        self.observed.restore(observed)
        self.timing.restore(timing)
        self.library.restore(library)


def _edges(
    found: Sequence[Condition], shares: Sequence[float]
) -> tuple[tuple[Edge, ...], tuple[tuple[int, float], ...]]:
    """An edge for every pair with a condition of its own, and corrections for conditions over more sources."""
    pairs: dict[tuple[int, int], dict[str, Any]] = {}
    joint: list[tuple[int, float]] = []
    for number, (condition, share) in enumerate(zip(found, shares, strict=True)):
        sources = [s for s in range(condition.span.bit_length()) if condition.span >> s & 1]
        if not condition.equal and len(sources) > 2:
            joint.append((condition.span, share))
            continue
        for at, left in enumerate(sources):
            for right in sources[at + 1 :]:
                edge = pairs.setdefault((left, right), {"share": 1.0, "access": Access.LIST, "classes": []})
                edge["share"] *= share
                edge["access"] = min(edge["access"], condition.access)
                edge["classes"] += [(number, share)] if condition.equal else []
    edges = []
    for (left, right), edge in pairs.items():
        classes = tuple(edge["classes"])
        indexes = (hash(tuple(number for number, _ in classes)),) * 2 if classes else None
        edges.append(Edge(left, right, edge["share"], edge["access"], indexes, classes))
    return tuple(edges), tuple(joint)


def _figures(workload: Workload) -> dict[str, float]:
    """What must change for another plan to become better."""
    rates = {f"rate {number}": source.rate for number, source in enumerate(workload.sources)}
    edges = {f"selectivity {e.left}-{e.right}": e.selectivity for e in workload.edges}
    return rates | edges | {f"selection {n}": s.selectivity for n, s in enumerate(workload.selections)}
