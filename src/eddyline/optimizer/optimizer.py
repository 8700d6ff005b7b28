"""The optimizer of a slot: watches the query, and proposes another plan when one pays.

The slot calls `watch` after every batch; `propose` returns another tree, or None. Memory may be used up to its limit:
of the plans within the limits, the optimizer wants the one with the least CPU. Prices are those of this machine
(calibrate.py), corrected by one factor: the CPU that the current plan took, divided by the prediction for it.
Selections are left out of the factor, because their price is measured. Rules (rules/) find the proposals; they are
asked in turn about one situation.

A slot leaves its plan only for one that is cheaper by a good share, or that is within the limits where the current plan
is not, and only if that pays for the change (worth.py); so noise does not cause thrashing. A plan that turns out worse
than the one before is left again (trials.py). Every proposal is recorded, whether it is taken or not. The library
remembers the plan of each search (library.py). When statistics return to those of an earlier search, its plan is taken
at once if it pays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eddyline.bound.model import WindowKind
from eddyline.codec import Snapshot
from eddyline.optimizer.best_ordering import best_ordering
from eddyline.optimizer.calibrate import calibrate
from eddyline.optimizer.calibrate_call import calibrate_call
from eddyline.optimizer.calibrate_groups import calibrate_groups
from eddyline.optimizer.conditions import Condition, conditions, edges, sources_span
from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.costs import StepCosts
from eddyline.optimizer.group_counts import Distinct, grouping_load
from eddyline.optimizer.library import Library, Remembered, RememberedSnapshot
from eddyline.optimizer.mjoin_ordering import mjoin_ordering
from eddyline.optimizer.move import Move
from eddyline.optimizer.observed import Observed, ObservedSnapshot
from eddyline.optimizer.plans import Cost, Orderings
from eddyline.optimizer.pricing import PricedTree, Pricing
from eddyline.optimizer.rules import RULES, Rule
from eddyline.optimizer.shapes import canonical, tree_of_text, tree_text
from eddyline.optimizer.situation import Proposal, Situation
from eddyline.optimizer.timing import GLANCE, Timing, TimingSnapshot, Usage
from eddyline.optimizer.trials import Trial, TrialsSnapshot, TrialVerdict
from eddyline.optimizer.tuning import DEFAULT, OptimizerTuning
from eddyline.optimizer.workload import Selection, SourceLoad, Workload
from eddyline.optimizer.worth import MICROS, Worth
from eddyline.plan.bounds import UNBOUND
from eddyline.plan.grouped import refusal
from eddyline.plan.plan import Plan
from eddyline.plan.tree import Tree, span_of
from eddyline.routing.tuning import DEFAULT as ROUTING
from eddyline.settings import Settings

TRIED, STEP = "a window has passed in the new plan", "there is more to be changed"
"""Reasons for a proposal without a search."""

_calibrated: list[StepCosts] = []
"""The costs of this process: measured once, when a slot first needs them, and once more with the costs of groups."""


@dataclass(frozen=True)
class StemContents:
    """The contents of the SteM of a source. `distinct` counts different values in its rows; None: unknown."""

    rows: int
    row_bytes: float
    distinct: Distinct | None = None


@dataclass(frozen=True)
class Outcome:
    """A proposed tree and the current one, the predicted cost of each, and the way from one to the other."""

    tree: Tree
    cost: Cost
    now: Cost
    taken: bool
    why: str
    measured: Mapping[str, float]
    move: Move | None = None


class OptimizerSnapshot(Snapshot, frozen=True):
    """The observations and decisions of an optimizer."""

    observed: ObservedSnapshot
    timing: TimingSnapshot
    library: tuple[RememberedSnapshot, ...]
    trials: TrialsSnapshot
    factor: float
    taken: float
    orderings: Orderings
    coming: Orderings
    goal: str | None


class Optimizer:
    """Looks for plans of one query. The caller passes the current plan to every call."""

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        clock: Callable[[], float],
        tuning: OptimizerTuning = DEFAULT,
        rules: Sequence[Rule] = RULES,
    ) -> None:
        sources, most = plan.query.sources, plan.graph.bounds.most
        self._plan, self._query, self._settings, self._clock = plan, plan.query, settings, clock
        self._tuning, self._rules, self._conditions = tuning, rules, conditions(plan)
        streams = [i for i, s in enumerate(sources) if not s.stream.is_table]
        self._streams = len(streams)
        self._groups = refusal(plan.query) is None and settings.estimates == "off"
        self._bounded = tuple(sum(1 << source for source in pair) for pair in plan.graph.time_pairs)
        self._windows: list[float | None] = []
        """Seconds that a row lives; None if its life does not end by time."""
        for number, source in enumerate(sources):
            life = max((most[other][number] for other in streams if other != number), default=0)
            timed = number in streams and source.window.kind is not WindowKind.ROWS and life < UNBOUND
            self._windows.append(max(life, 1) / MICROS if timed else None)
        self._longest = max((w for w in self._windows if w is not None), default=0.0)
        self.observed = Observed(len(sources), tuning=tuning)
        self._selections = [sources_span(predicate) for predicate in plan.graph.selections]
        self.timing, self.library = Timing(self._longest, settings.optimize_when, tuning), Library(tuning)
        self.worth = Worth(plan, settings, self.timing, self._windows, tuning)
        self.trials = self.worth.trials
        self._goal: Tree | None = None
        """The target of a change in several steps, while steps are left."""
        self._factor, self._taken = 1.0, 0.0
        self.last: Outcome | None = None
        self._verdict: TrialVerdict | None = None
        self.call: float | None = None
        """The fixed cost of a call on this machine (`StepCosts.call`); None before the first look."""
        self.orderings: Orderings = {}
        """The best orderings for the current plan; empty before the first look."""
        self._coming: Orderings = {}
        """The orderings for the plan that was taken, until it is the current one."""

    def watch(
        self,
        event_time: int | None,
        rows: Sequence[int],
        probes: Mapping[tuple[int, int], tuple[int, int]],
        usage: Usage,
        selections: Mapping[int, tuple[int, int, float]] | None = None,
        slices: int = 0,
    ) -> None:
        """Take a batch into account: the event time that it reached; rows built, probes taken and selections evaluated
        in it; CPU and memory used; and how often a slice of rows was taken in."""
        started = self.timing.started
        seconds = self.timing.passed(event_time, sum(rows), usage)
        new_rows, slices = (rows, slices) if started else ([0] * len(rows), 0)
        self.observed.add(seconds, new_rows, probes, self._longest, selections, slices)
        self.trials.batch()

    def due(self, plan: Plan) -> str | None:
        """The reason why it is time to propose a plan; None if it is not."""
        if self.trials.due(self.timing.seconds):
            return TRIED
        return STEP if self._goal is not None else self.timing.due(self.library.has_other(plan.tree))

    def propose(self, plan: Plan, held: Sequence[StemContents]) -> Outcome | None:
        """Another tree, if it is time to look for one; `taken` says whether the slot should change to it."""
        situation = self._situation(plan, held)
        if situation is None:
            return None
        for rule in self._rules:
            found = rule(situation)
            if found is not None:
                situation = replace(situation, best=found)
        best = situation.best
        if best is None:
            self.timing.glanced()
            return None
        if situation.looking:
            self.library.remember(situation.pricing.model.workload.figures(), best.plan.tree, best.plan.cost)
        return self._outcome(situation, best)

    def _situation(self, plan: Plan, held: Sequence[StemContents]) -> Situation | None:
        """The situation for the rules; None if there is no reason to ask them."""
        why = self.due(plan)
        if why is None:
            return None
        workload = self.workload(held)
        figures, timing = workload.figures(), self.timing
        facts: dict[str, Any] = {}
        if why == TRIED:
            facts["lost_trial"], changed = self._lost_trial(figures), ""
        elif why == GLANCE:
            facts["remembered"], changed = self._recalled(plan, figures), timing.differs(figures)
        elif why == STEP:
            facts["goal"], changed = self._goal, ""
        else:
            pressing, changed = timing.pressing, timing.changed(figures)
            facts["looking"] = bool(changed or pressing)
        if not any(facts.values()):
            return None
        worth, algorithm = self.worth, self._settings.optimizer
        told = why, changed, timing.cpu, worth.is_better, worth.lost, algorithm, self._clock
        return Situation(plan.tree, self._pricing(workload, plan), worth.limits, *told, **facts)

    def _recalled(self, plan: Plan, figures: Mapping[str, float]) -> Remembered | None:
        """The plan of the library for the current statistics. If there is none, this glance does not count as a
        look."""
        known = self.library.recall(figures)
        if known is not None and known.tree != canonical(plan.tree) and self.timing.differs(figures):
            return known
        self.timing.glanced()
        return None

    def _lost_trial(self, figures: Mapping[str, float]) -> Trial | None:
        """The trial that has just ended, if the current plan was measured to take more CPU than the one before."""
        trial, timing = self.trials.now, self.timing
        if trial is None or timing.differs(figures):
            self.trials.now = None
            self._verdict = None if trial is None else TrialVerdict(None, trial.cpu, timing.cpu)
            return None
        lost = self.worth.verdict()
        paid = None if trial.changes != timing.changes else not lost
        self._verdict = TrialVerdict(paid, trial.cpu, timing.cpu)
        return trial if lost else None

    def taken_verdict(self) -> TrialVerdict | None:
        """The verdict of a trial that has ended since the last call."""
        taken, self._verdict = self._verdict, None
        return taken

    def _outcome(self, situation: Situation, proposal: Proposal) -> Outcome:
        """The outcome of a proposal. There is no trial for a plan that was measured to be better, for one that keeps a
        limit, or for one step of several."""
        current, worth, found, why = situation.current, self.worth, proposal.plan, proposal.why
        now, cost = current.cost, found.cost
        measured = {"cpu now": now.cpu, "cpu": cost.cpu, "memory now": now.memory, "memory": cost.memory}
        measured |= {f"rate {s.alias}": self.observed.rate(i) for i, s in enumerate(self._query.sources)}
        measured["plans"] = float(max(1, len(found.considered)))
        self._goal, move = None, None
        if found.tree != current.tree and (situation.goal is not None or worth.is_better(now, cost)):
            move = worth.move(situation.pricing, situation.tree, found.tree)
            measured |= {f"move {name}": value for name, value in move.figures.items()}
            refused = worth.refused(now, cost, found.tree, move)
            if refused:
                why, move = f"{why}; not taken: {refused}", None
        if move is not None and move.tree != found.tree:
            self._goal = found.tree
        elif move is not None and not proposal.sure and situation.goal is None and not worth.over(now, cost):
            self.trials.begin(situation.tree, found.tree, self.timing.cpu, self.timing.changes)
        if move is not None:
            self._taken = self.timing.seconds
        self.orderings = current.orderings
        self._coming = {} if move is None else situation.pricing.tree(move.tree).orderings
        self.last = Outcome(found.tree, cost, now, move is not None, why, measured, move)
        return self.last

    @property
    def since(self) -> float:
        """Seconds of event time since a proposal was last taken."""
        return self.timing.seconds - self._taken

    def new_plan(self, tree: Tree) -> None:
        """Tell that the slot runs a new plan, or that the last measurements do not describe the current plan."""
        joins = [t for t in (*tree.below(), tree) if len(t.children) > 1]
        if self._coming.keys() == {(t.span, span_of(c)) for t in joins for c in t.children}:
            self.orderings, self._coming = self._coming, {}
        self.timing.new_plan()
        self.trials.new_plan(tree, self.timing.seconds)

    def _pricing(self, workload: Workload, plan: Plan) -> Pricing:
        """Prices from the calibrated costs, corrected by the CPU that the current plan took. If all plans are compared,
        the orders of operators are exact, too."""
        costs = self._calibrated()
        priced, self.call = Pricing(CostModel(workload, costs)).tree(plan.tree), costs.call
        self._factor = self.timing.factor(priced.cost.cpu - priced.selecting, self._factor)
        model, algorithm = CostModel(workload, self._costs()), self._settings.optimizer
        is_exact = algorithm == "exhaustive" or (algorithm == "auto" and model.size <= self._tuning.exhaustive_sources)
        return Pricing(model, best_ordering if is_exact else mjoin_ordering, self._tuning)

    def _calibrated(self) -> StepCosts:
        """The measured costs of this process; the costs of groups are included only if a query may group."""
        if self._tuning.costs is not None:
            return self._tuning.costs
        if not _calibrated:
            _calibrated.append(replace(calibrate(self._clock), call=calibrate_call(self._clock)))
        if self._groups and len(_calibrated) < 2:
            _calibrated.append(replace(_calibrated[0], **calibrate_groups(self._clock)))
        return _calibrated[-1]

    def _costs(self) -> StepCosts:
        return self._calibrated().times(self._factor)

    def model(self, held: Sequence[StemContents]) -> CostModel:
        """The cost model for the current statistics."""
        return CostModel(self.workload(held), self._costs())

    def predicted(self, held: Sequence[StemContents], plan: Plan) -> PricedTree:
        """The predicted cost of a plan."""
        return Pricing(self.model(held)).tree(plan.tree)

    def selectivities(self, held: Sequence[StemContents]) -> list[tuple[Condition, float]]:
        """The conditions of the query, each with its selectivity."""
        rows = [source.rows for source in self._sources(held)]
        shares = self.observed.selectivities(self._conditions, rows, self.selections())
        return list(zip(self._conditions, shares, strict=True))

    def selections(self) -> tuple[Selection, ...]:
        """The selections of the query that enough tuples have taken."""
        seen = self.observed.selections
        return tuple(
            Selection(self._selections[number], seen[number].share, seen[number].seconds / seen[number].tuples)
            for number in self._evaluated()
        )

    def _evaluated(self) -> list[int]:
        """The numbers, in the query, of the selections that enough tuples have taken."""
        return [number for number, seen in sorted(self.observed.selections.items()) if seen.tuples >= self._tuning.few]

    def _sources(self, held: Sequence[StemContents]) -> list[SourceLoad]:
        sources = []
        for number, (window, have) in enumerate(zip(self._windows, held, strict=True)):
            rate = self.observed.rate(number)
            rows = float(max(have.rows, 1)) if window is None else max(rate * window, 1e-6)
            sources.append(SourceLoad(rate, rows, have.row_bytes))
        return sources

    def workload(self, held: Sequence[StemContents]) -> Workload:
        """The current statistics, in the form that the algorithms take."""
        shares, sources = [share for _, share in self.selectivities(held)], self._sources(held)
        distinct = [have.distinct for have in held if have.distinct is not None]
        grouping = None
        if self._groups and len(distinct) == len(held):
            numbers, slices = self._evaluated(), self.observed.slice_rate(self._streams)
            rows = [source.rows for source in sources]
            grouping = grouping_load(self._plan, distinct, rows, numbers, slices, ROUTING.largest_packet)
        asked = edges(self._conditions, shares)
        return Workload(tuple(sources), *asked, self.selections(), self._bounded, grouping)

    def saved(self) -> OptimizerSnapshot:
        """A snapshot for another process."""
        return OptimizerSnapshot(
            observed=self.observed.saved(),
            timing=self.timing.saved(),
            library=self.library.saved(),
            trials=self.trials.saved(),
            factor=self._factor,
            taken=self._taken,
            orderings=self.orderings,
            coming=self._coming,
            goal=None if self._goal is None else tree_text(self._goal),
        )

    def restore(self, saved: OptimizerSnapshot) -> None:
        """Restore from a snapshot."""
        self.observed.restore(saved.observed)
        self.timing.restore(saved.timing)
        self.library.restore(saved.library)
        self.trials.restore(saved.trials)
        self._factor, self._taken = saved.factor, saved.taken
        self.orderings, self._coming = saved.orderings, saved.coming
        self._goal = None if saved.goal is None else tree_of_text(saved.goal)
