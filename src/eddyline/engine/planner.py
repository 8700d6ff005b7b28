"""Between a slot and the optimiser: what a batch did, as the optimiser counts it, and its proposals as decisions.

What is told are differences of totals that the slot and its eddy keep anyway, once for every batch, so watching costs
next to nothing whatever a batch has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from eddyline.optimizer.conditions import Condition
from eddyline.optimizer.optimiser import Held, Optimiser, Proposal
from eddyline.optimizer.plans import Cost
from eddyline.optimizer.timing import Usage
from eddyline.plan.bounds import FOREVER
from eddyline.plan.explain import span_text, text
from eddyline.plan.plan import Plan, Probe
from eddyline.plan.tree import Tree, span_of
from eddyline.query.model import Query
from eddyline.routing.decisions import Decision
from eddyline.routing.eddy import Eddy
from eddyline.routing.report import number
from eddyline.settings import Settings, size_text
from eddyline.state.shelf import Saved
from eddyline.state.stem import SteM

Probes = dict[tuple[int, int], tuple[int, int]]


class Planner:
    """Of one slot whose plan may change."""

    def __init__(self, plan: Plan, settings: Settings, clock: Callable[[], float]) -> None:
        self.optimiser = Optimiser(plan, settings, clock)
        self._settings, self._query = settings, plan.query
        self._streams = sum(1 << i for i, s in enumerate(plan.query.sources) if not s.stream.is_table)
        """A span of tables only is started while they are loaded, before there is anything to meet."""
        self._rows = [0] * len(plan.query.sources)
        """The most there were: rows of a batch that was undone come again."""
        self._probes: Probes = {}
        self._worked = 0.0, 0.0
        """Seconds in all, and of these for building."""

    def watch(self, watermarks: Mapping[str, int | None], stems: Sequence[SteM], eddy: Eddy, held: int) -> None:
        """A batch went through, and the watermarks are these now."""
        known = [w for w in watermarks.values() if w is not None and w != FOREVER]
        rows, probes = [stem.rows for stem in stems], _probes(eddy)
        new_rows = [
            max(0, now - before) if self._streams >> source & 1 else 0
            for source, (now, before) in enumerate(zip(rows, self._rows, strict=True))
        ]
        new = {}
        for key, (tuples, made) in probes.items():
            old = self._probes.get(key, (0, 0))
            if tuples > old[0] and key[0] & self._streams:
                new[key] = tuples - old[0], made - old[1]
        worked, built = _worked(eddy)
        limits = self._settings.memory, self._settings.cpu
        usage = Usage(worked - self._worked[0], held, *limits, built - self._worked[1])
        self._rows = [max(now, before) for now, before in zip(rows, self._rows, strict=True)]
        self._probes, self._worked = probes, (worked, built)
        self.optimiser.watch(max(known, default=None), new_rows, new, usage)

    def propose(self, plan: Plan, stems: Sequence[SteM], eddy: Eddy) -> Tree | None:
        """Another plan, if it is time and it pays; what was found is noted either way."""
        if not self.optimiser.timing.due():
            return None
        proposal = self.optimiser.propose(plan, _held(stems))
        if proposal is None:
            return None
        eddy.decisions.add(self._decision(proposal, plan, eddy.work.moment))
        return proposal.tree if proposal.taken else None

    def _decision(self, proposal: Proposal, plan: Plan, moment: int) -> Decision:
        aliases = [s.alias for s in self._query.sources]
        now, found = plan.tree.text(aliases), proposal.tree.text(aliases)
        what = f"{now} -> {found}" if proposal.taken else f"{now} stays" + (f", not {found}" if found != now else "")
        costs = f"{proposal.now.cpu:.3g} -> {proposal.cost.cpu:.3g} of a core"
        memory = f"{size_text(int(proposal.now.memory))} -> {size_text(int(proposal.cost.memory))}"
        return Decision("plan", moment, what, f"{proposal.why}; {costs}, {memory}", proposal.measured)

    def go_on(self, stems: Sequence[SteM], eddy: Eddy) -> None:
        """From the totals of now: what was done since the last batch was loading, which is no sample of anything."""
        self._rows = [max(stem.rows, before) for stem, before in zip(stems, self._rows, strict=True)]
        self._probes, self._worked = _probes(eddy), _worked(eddy)

    def text(self, plan: Plan, stems: Sequence[SteM]) -> str:
        """What the optimiser believes, for people; empty before it first looked for a plan."""
        optimiser, query = self.optimiser, self._query
        if not optimiser.timing.looked:
            return ""
        model = optimiser.model(_held(stems))
        lines = [f"estimated, for {plan.text}:"]
        for operator in (*plan.tree.below(), plan.tree):
            for child in map(span_of, operator.children):
                size = size_text(int(model.stem_memory(child, operator.span)))
                of = f"{number(model.rate(child))} a second, {number(model.held(child))} held in {size}"
                lines.append(f"  {span_text(child, query)}: {of}")
        for condition, share in optimiser.selectivities(_held(stems)):
            lines.append(f"  selectivity of {condition_text(condition, query)}: {share:.3g}")
        lines.append(f"  predicted: {_cost_text(optimiser.predicted(model, plan))}")
        last = optimiser.last
        if last is not None:
            aliases = [s.alias for s in query.sources]
            taken = "taken" if last.taken else "not taken"
            lines.append(f"  last proposal, {taken}: {last.tree.text(aliases)}, predicted {_cost_text(last.cost)}")
            lines.append(f"    instead of {_cost_text(last.now)}; {last.why}")
        return "\n".join(lines)

    def saved(self) -> Saved:
        """For another process."""
        probes = [[*key, *counts] for key, counts in self._probes.items()]
        return [self.optimiser.saved(), self._rows, probes, list(self._worked)]

    def restore(self, saved: Saved) -> None:
        """Go on from there."""
        optimiser, self._rows, probes, (worked, built) = saved
        self._worked = worked, built
        self._probes = {(span, target): (tuples, made) for span, target, tuples, made in probes}
        self.optimiser.restore(optimiser)


def condition_text(condition: Condition, query: Query) -> str:
    """A condition as the query has it; columns of a class with = between all of them."""
    if condition.predicate is not None:
        return text(condition.predicate, query)
    return " = ".join(text(column, query) for _, column in condition.keys)


def _cost_text(cost: Cost) -> str:
    return f"{cost.cpu:.3g} of a core, {size_text(int(cost.memory))}"


def _held(stems: Sequence[SteM]) -> list[Held]:
    return [Held(s.rows - s.min_live, s.row_bytes) for s in stems]


def _worked(eddy: Eddy) -> tuple[float, float]:
    return eddy.work.seconds + eddy.work.building, eddy.work.building


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
