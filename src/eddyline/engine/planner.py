"""Between a slot and the optimiser: what a batch did, as the optimiser counts it, and its proposals as decisions.

What is told are differences of totals that the slot and its eddy keep anyway, once for every batch, so watching costs
next to nothing whatever a batch has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from eddyline.optimizer.optimiser import Held, Optimiser, Proposal
from eddyline.optimizer.timing import Usage
from eddyline.plan.bounds import FOREVER
from eddyline.plan.plan import Plan, Probe
from eddyline.plan.tree import Tree
from eddyline.routing.decisions import Decision
from eddyline.routing.eddy import Eddy
from eddyline.settings import Settings, size_text
from eddyline.state.shelf import Saved
from eddyline.state.stem import SteM

Probes = dict[tuple[int, int], tuple[int, int]]


class Planner:
    """Of one slot whose plan may change."""

    def __init__(self, plan: Plan, settings: Settings, clock: Callable[[], float]) -> None:
        self.optimiser = Optimiser(plan, settings, clock)
        self._settings, self._query = settings, plan.query
        self._rows = [0] * len(plan.query.sources)
        self._probes: Probes = {}
        self._seconds = 0.0

    def watch(self, watermarks: Mapping[str, int | None], stems: Sequence[SteM], eddy: Eddy, held: int) -> None:
        """A batch went through, and the watermarks are these now."""
        known = [w for w in watermarks.values() if w is not None and w != FOREVER]
        rows, probes = [stem.rows for stem in stems], _probes(eddy)
        new_rows = [max(0, now - before) for now, before in zip(rows, self._rows, strict=True)]
        new = {}
        for key, (tuples, made) in probes.items():
            old = self._probes.get(key, (0, 0))
            if tuples > old[0]:
                new[key] = tuples - old[0], made - old[1]
        usage = Usage(eddy.work.seconds - self._seconds, held, self._settings.memory, self._settings.cpu)
        self._rows, self._probes, self._seconds = rows, probes, eddy.work.seconds
        self.optimiser.watch(max(known, default=None), new_rows, new, usage)

    def propose(self, plan: Plan, stems: Sequence[SteM], eddy: Eddy) -> Tree | None:
        """Another plan, if it is time and it pays; what was found is noted either way."""
        if not self.optimiser.timing.due():
            return None
        proposal = self.optimiser.propose(plan, [Held(s.rows - s.min_live, s.row_bytes) for s in stems])
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

    def changed(self) -> None:
        """Another plan: the eddy counts from 0 again."""
        self._probes = {}

    def saved(self) -> Saved:
        """For another process."""
        probes = [[*key, *counts] for key, counts in self._probes.items()]
        return [self.optimiser.saved(), self._rows, probes, self._seconds]

    def restore(self, saved: Saved) -> None:
        """Go on from there."""
        optimiser, self._rows, probes, self._seconds = saved
        self._probes = {(span, target): (tuples, made) for span, target, tuples, made in probes}
        self.optimiser.restore(optimiser)


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
