"""The planner: the plan source with the optimizer. It reports each batch to the optimizer, and passes proposals to the
slot.

The optimizer gets differences of totals that the executor and its eddy keep anyway, once for every batch. So watching
costs almost nothing, whatever the size of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from eddyline.bound.model import BoundQuery
from eddyline.engine.estimate import Child, Estimate, Share, cost_text
from eddyline.engine.finished_batch import FinishedBatch
from eddyline.engine.plan_source import FixedPlan, NewPlan, PlanSource, Running, how_asked
from eddyline.engine.planner_snapshot import PlannerSnapshot, Probes, Selections
from eddyline.engine.sampled import combinations, distinct, mean_weights
from eddyline.errors import SettingError
from eddyline.optimizer.optimizer import Optimizer, Outcome, StemContents
from eddyline.optimizer.timing import Usage
from eddyline.optimizer.tuning import DEFAULT, OptimizerTuning
from eddyline.plan.bounds import FOREVER
from eddyline.plan.grouped import check, refusal
from eddyline.plan.plan import Plan
from eddyline.plan.steps import Probe, Select
from eddyline.plan.tree import Tree, check_asks, shape, state_of
from eddyline.routing.decisions import Decision
from eddyline.routing.eddy import Eddy
from eddyline.setting_kinds import size_text
from eddyline.settings import Settings
from eddyline.state.stem import SteM


class Planner(PlanSource):
    """The plan source of a slot whose plan the optimizer chooses."""

    def __init__(
        self, plan: Plan, settings: Settings, clock: Callable[[], float], tuning: OptimizerTuning = DEFAULT
    ) -> None:
        self.optimizer = Optimizer(plan, settings, clock, tuning)
        self._settings, self._query = settings, plan.query
        self._streams = sum(1 << i for i, s in enumerate(plan.query.sources) if not s.stream.is_table)
        """The streams, as a bit mask. Tuples of tables only are made while tables are loaded, before they can meet any
        row."""
        self._rows = [0] * len(plan.query.sources)
        """The largest totals so far: rows of a batch that was undone arrive again."""
        self._probes: Probes = {}
        self._selections: Selections = {}
        self._slices = 0

    def next_plan(self, running: Running) -> NewPlan | None:
        """The plan that the optimizer proposes, if it is time and it pays. Every proposal is recorded."""
        if running.migration is not None:
            running.migration.duration = self.optimizer.since
            return None
        proposal = self.propose(running)
        if proposal is None or proposal.move is None:
            return None
        move = proposal.move
        return NewPlan(move.tree, how_asked(self._settings, move.parallel), move.figures)

    def propose(self, running: Running) -> Outcome | None:
        """The optimizer's proposal, recorded as a decision; None if it is not time to look for one. Passes the
        orderings for the current plan to the eddy."""
        plan, eddy, optimizer = running.plan, running.eddy, self.optimizer
        proposal = optimizer.propose(plan, self._held(running)) if optimizer.due(plan) else None
        eddy.follow(optimizer.orderings)
        if optimizer.call is not None:
            eddy.work.call = optimizer.call
        if (verdict := optimizer.taken_verdict()) is not None:
            what = f"the trial of {plan.tree.text([s.alias for s in self._query.sources])} is over"
            eddy.decisions.add(
                Decision(
                    "trial", eddy.work.moment, what, verdict.why, verdict.measured, about="plan", paid=verdict.paid
                )
            )
        if proposal is not None:
            eddy.decisions.add(self._decision(proposal, plan, eddy.work.moment))
        return proposal

    def watch(self, running: Running, batch: FinishedBatch) -> None:
        """Report a batch to the optimizer."""
        known = [w for w in batch.watermarks.values() if w is not None and w != FOREVER]
        rows, probes = self._built(running), _probes(running.eddy)
        new_rows = [
            max(0, now - before) if self._streams >> source & 1 else 0
            for source, (now, before) in enumerate(zip(rows, self._rows, strict=True))
        ]
        new, stand_for = {}, combinations(running.eddy, running.stems)
        for key, (tuples, made) in probes.items():
            old = self._probes.get(key, (0, 0))
            if tuples > old[0] and key[0] & self._streams:
                asks, found = stand_for.get(key, (1.0, 1.0))
                new[key] = round(asks * (tuples - old[0])), round(asks * found * (made - old[1]))
        selections, selected = _selections(running.eddy), dict[int, tuple[int, int, float]]()
        for number, (tuples, passed, took) in selections.items():
            had = self._selections.get(number, (0, 0, 0.0))
            if tuples > had[0]:
                selected[number] = tuples - had[0], passed - had[1], took - had[2]
        usage = Usage(
            seconds=batch.seconds,
            bytes=batch.held,
            memory_limit=self._settings.memory,
            cpu_limit=self._settings.cpu,
            selecting=sum(took for _, _, took in selected.values()),
            between=sum(tuples for (span, _), (tuples, _) in new.items() if span & (span - 1)),
            pressure=batch.pressure,
        )
        slices = running.eddy.work.slices - self._slices
        self._rows = [max(now, before) for now, before in zip(rows, self._rows, strict=True)]
        self._probes, self._selections, self._slices = probes, selections, running.eddy.work.slices
        self.optimizer.watch(max(known, default=None), new_rows, new, usage, selected, slices)

    def _decision(self, proposal: Outcome, plan: Plan, moment: int) -> Decision:
        aliases = [s.alias for s in self._query.sources]
        now, found, move = plan.tree.text(aliases), proposal.tree.text(aliases), proposal.move
        why = f"{proposal.why}; {proposal.now.cpu:.3g} -> {proposal.cost.cpu:.3g} of a core, "
        why += f"{size_text(int(proposal.now.memory))} -> {size_text(int(proposal.cost.memory))}"
        if move is None:
            what = f"{now} stays" + (f", not {found}" if found != now else "")
            return Decision("plan", moment, what, why, proposal.measured)
        expected = {"cpu": proposal.cost.cpu, "cpu before": proposal.now.cpu, "memory": proposal.cost.memory}
        expected |= {"memory before": proposal.now.memory} | {f"move {k}": v for k, v in move.figures.items()}
        step = f"{move.tree.text(aliases)}, on the way to " if move.tree != proposal.tree else ""
        return Decision(
            "plan", moment, f"{now} -> {step}{found}", f"{why}; {move.text}", proposal.measured, expected, about="plan"
        )

    def changed(self, running: Running) -> None:
        """Restart from the current totals: the work since the last batch was loading, which is no sample of normal
        work."""
        self._rows = [max(now, before) for now, before in zip(self._built(running), self._rows, strict=True)]
        self._probes, self._selections = _probes(running.eddy), _selections(running.eddy)
        self._slices = running.eddy.work.slices
        self.optimizer.new_plan(running.plan.tree)
        running.eddy.follow(self.optimizer.orderings)

    def _built(self, running: Running) -> list[int]:
        """Rows of the sources."""
        return running.built

    def _held(self, running: Running) -> list[StemContents]:
        """The contents of the SteMs of the sources."""
        return held(running.stems[: len(self._rows)])

    def estimate(self, running: Running) -> Estimate | None:
        """Predictions beside measurements for all SteMs; None before the optimizer first looked for a plan."""
        optimizer, plan, stems, sources = self.optimizer, running.plan, running.stems, len(self._rows)
        if not optimizer.timing.looked:
            return None
        held, observed = self._held(running), optimizer.observed
        predicted, weights = optimizer.predicted(held, plan), mean_weights(plan, stems)
        states = [*(1 << source for source in range(sources)), *map(state_of, plan.materialised)]
        numbers = {state: number for number, state in enumerate(states)}
        children = [
            Child(
                given.span,
                price.rate(given),
                price.held(given),
                price.held(given) * price.tuple_bytes(given),
                observed.made(given.span) / weights.get(numbers[state], 1.0),
                *_size(stems[numbers[state]] if numbers[state] < len(stems) else None),
            )
            for state, (price, given) in predicted.above.items()
        ]
        found = optimizer.selectivities(held)
        shares = [Share(n, share, observed.told(condition)) for n, (condition, share) in enumerate(found)]
        selections = [Share(n, s.share, s.tuples, s.seconds / s.tuples)
                      for n, s in sorted(observed.selections.items()) if s.tuples]  # fmt: skip
        costs = (
            [predicted.cost.cpu, predicted.cost.memory],
            [optimizer.timing.cpu, sum(child.measured_bytes for child in children)],
        )
        return Estimate(plan.text, children, shares, selections, *costs, self._last())

    def _last(self) -> str:
        last = self.optimizer.last
        if last is None:
            return ""
        taken, tree = "taken" if last.taken else "not taken", last.tree.text([s.alias for s in self._query.sources])
        costs = [cost_text(cost.cpu, cost.memory) for cost in (last.cost, last.now)]
        return f"  last proposal, {taken}: {tree}, predicted {costs[0]}\n    instead of {costs[1]}; {last.why}"

    def saved(self) -> PlannerSnapshot:
        """A snapshot for another process, of what was counted and learned."""
        counted = tuple(self._rows), dict(self._probes), dict(self._selections), self._slices
        return PlannerSnapshot(self.optimizer.saved(), *counted)

    def restore(self, saved: PlannerSnapshot) -> None:
        """Restore from the snapshot of another planner."""
        self._rows, self._slices = list(saved.rows), saved.slices
        self._probes, self._selections = dict(saved.probes), dict(saved.selections)
        self.optimizer.restore(saved.optimizer)


def asked_plan(query: BoundQuery, settings: Settings) -> Tree:
    """The plan that the settings ask for, if the query can have it; with plan=auto the first plan."""
    tree = shape(settings.plan, [s.alias for s in query.sources])
    check(query, tree)
    if settings.estimates == "on" and any(operator.grouped for operator in tree.below()):
        raise SettingError(f"plan={settings.plan}: estimates=on needs a plan without +, which hides single rows")
    check_asks(query.asks, tree)
    return tree


def plan_source(
    plan: Plan, settings: Settings, clock: Callable[[], float], tuning: OptimizerTuning = DEFAULT
) -> PlanSource:
    """The plan source that the settings ask for; `clock` returns CPU seconds."""
    if settings.plan != "auto":
        how = how_asked(settings, settings.migration == "parallel-track")
        return FixedPlan(asked_plan(plan.query, settings), how)
    sources = len(plan.query.sources)
    if (
        plan.query.asks
        or settings.optimizer == "off"
        or sources < 2
        or (sources == 2 and (refusal(plan.query) is not None or settings.estimates == "on"))
    ):
        return FixedPlan(None)
    return Planner(plan, settings, clock, tuning)


def held(stems: Sequence[SteM]) -> list[StemContents]:
    """The contents of the SteMs of sources, in the form that the optimizer takes."""
    return [StemContents(s.held, s.rows.row_bytes, partial(distinct, s)) for s in stems]


def _size(stem: SteM | None) -> tuple[int, int]:
    """Rows and bytes of a SteM; 0 if another thread, which explains, calls this while the plan is changed."""
    return (0, 0) if stem is None else (stem.held, stem.nbytes)


def _probes(eddy: Eddy) -> Probes:
    """Tuples that probes took in and made so far, by (span, span of the SteM)."""
    found: Probes = {}
    for entry in eddy.routes.entries.values():
        for traffic in entry.steps:
            if isinstance(traffic.step, Probe) and traffic.tuples:
                key = entry.signature[0], traffic.step.span
                tuples, made = found.get(key, (0, 0))
                found[key] = tuples + traffic.tuples, made + traffic.produced
    return found


def _selections(eddy: Eddy) -> Selections:
    """By number: tuples that selections took in and let through so far, and the seconds that they took."""
    found: Selections = {}
    for entry in eddy.routes.entries.values():
        for traffic in entry.steps:
            if isinstance(traffic.step, Select) and traffic.tuples:
                tuples, passed, took = found.get(traffic.step.selection, (0, 0, 0.0))
                counts = tuples + traffic.tuples, passed + traffic.produced, took + traffic.seconds
                found[traffic.step.selection] = counts
    return found
