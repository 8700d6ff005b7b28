"""The optimiser of a slot: watches what the query does, and proposes a plan when it is time and when it pays.

`watch` is told after every batch what happened; `propose` gives another tree, or None. Memory is there to be used: of
the plans within the limits the one with the least CPU is wanted, unless memory is said to be what is scarce. Prices are
those of this machine (calibrate.py), corrected by two factors: what the plan of now took for probing and for building,
over what was predicted for it. A plan is left only for one that is cheaper by a good share, or when it is over a limit
and the other is not; so noise does not cause thrashing. Every proposal, taken or not, is a record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eddyline.optimizer.calibrate import calibrate
from eddyline.optimizer.conditions import Condition, conditions
from eddyline.optimizer.cost_model import Model
from eddyline.optimizer.costs import Costs
from eddyline.optimizer.dominating import choose, dominating
from eddyline.optimizer.exhaustive import exhaustive
from eddyline.optimizer.observed import Observed
from eddyline.optimizer.plans import Considered, Cost, Limits, Planned
from eddyline.optimizer.shapes import Pricing, shape_of
from eddyline.optimizer.strategies import bjtree_init, mjoin_init
from eddyline.optimizer.timing import Timing, Usage
from eddyline.optimizer.workload import Access, Edge, Source, Workload
from eddyline.plan.bounds import UNBOUND
from eddyline.plan.plan import Plan
from eddyline.plan.tree import Tree, span_of
from eddyline.query.model import WindowKind
from eddyline.settings import Settings
from eddyline.state.shelf import Saved

GAIN = 0.3
"""A plan is left for one that takes less CPU by this share."""

SEARCH = 0.05
"""Seconds of searching where there are too many plans to look at all."""

PROBING = "probe_hash", "probe_range", "probe_list_row", "match"
BUILDING = "insert_row", "insert_index", "insert_sorted", "insert_component", "delete_row"
"""The costs that are corrected together."""

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
        self.timing = Timing(self._longest)
        self._factors = 1.0, 1.0
        self.last: Proposal | None = None

    def watch(
        self,
        event_time: int | None,
        rows: Sequence[int],
        probes: Mapping[tuple[int, int], tuple[int, int]],
        usage: Usage,
    ) -> None:
        """A batch: the event time it came to, rows built and probes taken since the last one, CPU and memory used."""
        started = self.timing.started
        seconds = self.timing.passed(event_time, sum(rows), usage)
        self.observed.add(seconds, rows if started else [0] * len(rows), probes, self._longest)

    def propose(self, plan: Plan, held: Sequence[Held]) -> Proposal | None:
        """Another tree, if it is time to look for one; `taken` says whether it is worth it."""
        why = self.timing.due()
        if why is None:
            return None
        workload = self.workload(held)
        changed = self.timing.changed(_figures(workload))
        if not changed and "memory" not in why:
            return None
        self._factors = self._corrections(workload, plan)
        model = Model(workload, self._costs())
        current, found = self.predicted(model, plan), self._search(model)
        cost = found.cost
        over = not self._limits.allow(current) and self._limits.allow(cost)
        taken = found.tree != plan.tree and (over or cost.cpu < (1.0 - GAIN) * current.cpu)
        measured = {"cpu now": current.cpu, "cpu": cost.cpu, "memory now": current.memory, "memory": cost.memory}
        measured |= {f"rate {s.alias}": self.observed.rate(i) for i, s in enumerate(self._query.sources)}
        measured["plans"] = float(len(found.considered))
        self.last = Proposal(found.tree, cost, current, taken, f"{why}; {changed}" if changed else why, measured)
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

    def _corrections(self, workload: Workload, plan: Plan) -> tuple[float, float]:
        """Of probing and of building: what the plan of now took, over what the calibrated costs say."""
        model = Model(workload, self._calibrated())
        operators = (*plan.tree.below(), plan.tree)
        building = sum(model.stem_cpu(span_of(child), op.span) for op in operators for child in op.children)
        probing = Pricing(model).cost(shape_of(plan.tree)).cpu - building
        return self.timing.factors(probing, building, self._factors)

    def _calibrated(self) -> Costs:
        if not _calibrated:
            _calibrated.append(calibrate(self._clock))
        return _calibrated[0]

    def _costs(self) -> Costs:
        probing, building = self._factors
        return self._calibrated().scaled(dict.fromkeys(PROBING, probing) | dict.fromkeys(BUILDING, building))

    def model(self, held: Sequence[Held]) -> Model:
        """Prices for what was observed."""
        return Model(self.workload(held), self._costs())

    def predicted(self, model: Model, plan: Plan) -> Cost:
        """What a plan costs."""
        return Pricing(model).cost(shape_of(plan.tree))

    def selectivities(self, held: Sequence[Held]) -> list[tuple[Condition, float]]:
        """Of the conditions of the query."""
        rows = [source.rows for source in self._sources(held)]
        return list(zip(self._conditions, self.observed.selectivities(self._conditions, rows), strict=True))

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
        return Workload(tuple(self._sources(held)), *_edges(self._conditions, shares))

    def saved(self) -> Saved:
        """For another process."""
        return [self.observed.saved(), self.timing.saved(), list(self._factors)]

    def restore(self, saved: Saved) -> None:
        """Go on from there."""
        observed, timing, (probing, building) = saved
        self._factors = probing, building
        self.observed.restore(observed)
        self.timing.restore(timing)


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
    return rates | {f"selectivity {e.left}-{e.right}": e.selectivity for e in workload.edges}
