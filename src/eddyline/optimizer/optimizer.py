"""The optimizer of a slot: watches what the query does, and proposes a plan when it is time and when it pays.

`watch` is told after every batch what happened; `propose` gives another tree, or None. Memory is there to be used: of
the plans within the limits the one with the least CPU is wanted, unless memory is said to be what is scarce. Prices are
those of this machine (calibrate.py), corrected by one factor: what the plan of now took over what was predicted for it,
without selections, whose price is measured. A plan is left only for one that is cheaper by a good share, or when it is
over a limit and the other is not, and if that pays for the change (worth.py); so noise does not cause thrashing. One
that turns out worse than the plan before is left again (trials.py). Every proposal, taken or not, is a record. What a
search found is remembered (library.py), and taken at once, if it pays, when statistics come back to where they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from eddyline.optimizer.calibrate import calibrate
from eddyline.optimizer.conditions import Condition, conditions, edges, sources_span
from eddyline.optimizer.cost_model import Model
from eddyline.optimizer.costs import StepCosts
from eddyline.optimizer.dominating import choose, dominating
from eddyline.optimizer.exhaustive import exhaustive
from eddyline.optimizer.library import Library
from eddyline.optimizer.move import Move
from eddyline.optimizer.observed import FEW, Observed
from eddyline.optimizer.plans import Considered, Cost, Orderings, PricedPlan
from eddyline.optimizer.shapes import Pricing, shape_of, tree_of
from eddyline.optimizer.strategies import bjtree_init, mjoin_init
from eddyline.optimizer.timing import GLANCE, Timing, Usage
from eddyline.optimizer.workload import Selection, SourceLoad, Workload
from eddyline.optimizer.worth import MICROS, Worth
from eddyline.plan.bounds import UNBOUND
from eddyline.plan.plan import Plan
from eddyline.plan.tree import Tree, span_of
from eddyline.query.model import WindowKind
from eddyline.settings import Settings
from eddyline.state.shelf import Saved

TRIED, STEP = "a window has passed in the new plan", "there is more to be changed"
"""Why there is a proposal though nobody looked for one."""

SEARCH = 0.05
"""Seconds of searching where there are too many plans to look at all."""

_calibrated: list[StepCosts] = []
"""Of this process: measured once, when a slot first wants to know."""


@dataclass(frozen=True)
class Held:
    """What the SteM of a source holds."""

    rows: int
    row_bytes: float


@dataclass(frozen=True)
class Proposal:
    """A tree that was found, beside the one of now, with what both are predicted to cost, and how to get there."""

    tree: Tree
    cost: Cost
    now: Cost
    taken: bool
    why: str
    measured: Mapping[str, float]
    move: Move | None = None


class Optimizer:
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
        self.observed = Observed(len(sources))
        self._selections = [sources_span(predicate) for predicate in plan.graph.selections]
        self.timing, self.library = Timing(self._longest, settings.optimize_when), Library()
        self.worth = Worth(plan, settings, self.timing, self._windows)
        self.trials = self.worth.trials
        self._goal: Tree | None = None
        """Where the steps of a change lead to, while there are more to come."""
        self._factor, self._taken = 1.0, 0.0
        self.last: Proposal | None = None
        self.orderings: Orderings = {}
        """The best ones for the plan of now; none before the first look."""
        self._coming: Orderings = {}
        """Those for the plan that was taken, until it is the one of now."""

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
        self.trials.batch()

    def due(self, plan: Plan) -> str | None:
        """Why it is time to propose something; None if it is not."""
        if self.trials.due(self.timing.seconds):
            return TRIED
        return STEP if self._goal is not None else self.timing.due(self.library.has_other(plan.tree))

    def propose(self, plan: Plan, held: Sequence[Held]) -> Proposal | None:
        """Another tree, if it is time to look for one; `taken` says whether it is worth it."""
        why = self.due(plan)
        if why is None:
            return None
        workload = self.workload(held)
        figures = workload.figures()
        if why == TRIED:
            return self._tried(plan, workload, figures)
        if why == GLANCE:
            return self._recalled(plan, workload, figures)
        if why == STEP:
            pricing, goal = Pricing(self._corrected(workload, plan)), self._goal
            assert goal is not None
            return self._proposed(pricing, plan, pricing.planned(shape_of(goal)), why)
        pressing, changed = self.timing.pressing, self.timing.changed(figures)
        if not changed and not pressing:
            return None
        pricing = Pricing(self._corrected(workload, plan))
        found = self._search(pricing.model)
        self.library.remember(figures, found.tree, found.cost)
        return self._proposed(pricing, plan, found, f"{why}; {changed}" if changed else why)

    def _recalled(self, plan: Plan, workload: Workload, figures: Mapping[str, float]) -> Proposal | None:
        """The plan of the library for what statistics have become, if it pays; else nothing was looked at."""
        known = self.library.recall(figures)
        if known is not None and known.tree != plan.tree and self.timing.differs(figures):
            pricing = Pricing(self._corrected(workload, plan))
            found = pricing.planned(shape_of(known.tree))
            if self.worth.is_better(pricing.cost(shape_of(plan.tree)), found.cost):
                then = f"this plan was found then, for {known.cost.cpu:.3g} of a core"
                return self._proposed(pricing, plan, found, f"{GLANCE}, {then}; {self.timing.changed(figures)}")
        self.timing.glanced()
        return None

    def _tried(self, plan: Plan, workload: Workload, figures: Mapping[str, float]) -> Proposal | None:
        """The plan before, if the one of now is on trial and takes more; what both take was measured."""
        timing, trial = self.timing, self.trials.now
        if trial is None or timing.differs(figures):
            self.trials.now = None
            return None
        if not self.worth.verdict():
            return None
        pricing = Pricing(self._corrected(workload, plan))
        found = pricing.planned(shape_of(trial.old))
        why = f"undone: {TRIED}, which takes {timing.cpu:.3g} of a core, and {trial.cpu:.3g} was enough before it"
        return self._proposed(pricing, plan, replace(found, cost=replace(found.cost, cpu=trial.cpu)), why, sure=True)

    def _proposed(self, pricing: Pricing, plan: Plan, found: PricedPlan, why: str, sure: bool = False) -> Proposal:
        """What is proposed because it was measured (`sure`), or to keep a limit, is on no trial; nor is one step of a
        way."""
        current, worth = pricing.planned(shape_of(plan.tree)), self.worth
        now, cost = current.cost, found.cost
        measured = {"cpu now": now.cpu, "cpu": cost.cpu, "memory now": now.memory, "memory": cost.memory}
        measured |= {f"rate {s.alias}": self.observed.rate(i) for i, s in enumerate(self._query.sources)}
        measured["plans"] = float(max(1, len(found.considered)))
        self._goal, move = None, None
        if found.tree != current.tree and (why == STEP or worth.is_better(now, cost)):
            move = worth.move(pricing, plan.tree, found.tree)
            measured |= {f"move {name}": value for name, value in move.figures.items()}
            refused = worth.refused(now, cost, found.tree, move)
            if refused:
                why, move = f"{why}; not taken: {refused}", None
        if move is not None and move.tree != found.tree:
            self._goal = found.tree
        elif move is not None and not sure and why != STEP and not worth.over(now, cost):
            self.trials.begin(plan.tree, found.tree, self.timing.cpu, self.timing.changes)
        if move is not None:
            self._taken = self.timing.seconds
        self.orderings = current.orderings
        self._coming = {} if move is None else pricing.planned(shape_of(move.tree)).orderings
        self.last = Proposal(found.tree, cost, now, move is not None, why, measured, move)
        return self.last

    @property
    def since(self) -> float:
        """Seconds of event time since a proposal was last taken."""
        return self.timing.seconds - self._taken

    def new_plan(self, tree: Tree) -> None:
        """The plan has been changed, or what was done last says nothing of it."""
        if self._coming.keys() == {(t.span, span_of(c)) for t in (*tree.below(), tree) for c in t.children}:
            self.orderings, self._coming = self._coming, {}
        self.timing.new_plan()
        self.trials.new_plan(tree, self.timing.seconds)

    def _search(self, model: Model) -> PricedPlan:
        limits, name = self.worth.limits, self._settings.optimizer
        if name == "mjoin-init":
            return mjoin_init(model, limits)
        if name == "bjtree-init":
            return bjtree_init(model, limits)
        plans = exhaustive(model, limits) if name == "exhaustive" else dominating(model, limits, self._clock, SEARCH)
        best = choose([p for p in plans if not self.worth.lost(p.tree)], limits, "cpu")
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

    def _calibrated(self) -> StepCosts:
        if not _calibrated:
            _calibrated.append(calibrate(self._clock))
        return _calibrated[0]

    def _costs(self) -> StepCosts:
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

    def _sources(self, held: Sequence[Held]) -> list[SourceLoad]:
        sources = []
        for number, (window, have) in enumerate(zip(self._windows, held, strict=True)):
            rate = self.observed.rate(number)
            rows = float(max(have.rows, 1)) if window is None else max(rate * window, 1e-6)
            sources.append(SourceLoad(rate, rows, have.row_bytes))
        return sources

    def workload(self, held: Sequence[Held]) -> Workload:
        """What was observed, as the algorithms take it."""
        shares = [share for _, share in self.selectivities(held)]
        return Workload(tuple(self._sources(held)), *edges(self._conditions, shares), self.selections())

    def saved(self) -> Saved:
        """For another process."""
        orderings = [[[*key, list(order)] for key, order in o.items()] for o in (self.orderings, self._coming)]
        parts = self.observed.saved(), self.timing.saved(), self.library.saved()
        goal = self._goal and [[span, list(children)] for span, children in shape_of(self._goal).items()]
        return [*parts, [self._factor, self._taken], orderings, self.trials.saved(), goal]

    def restore(self, saved: Saved) -> None:
        """Go on from there."""
        observed, timing, library, (self._factor, self._taken), orderings, trials, goal = saved
        self.trials.restore(trials)
        self._goal = goal and tree_of({span: tuple(children) for span, children in goal})
        self.orderings, self._coming = (
            {(operator, start): tuple(order) for operator, start, order in of_plan} for of_plan in orderings
        )
        self.observed.restore(observed)
        self.timing.restore(timing)
        self.library.restore(library)
