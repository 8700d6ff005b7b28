"""Routing arrays: for each signature that was met, the steps allowed next, what each of them did, and the one to take.

The decision for a signature is kept with its steps, so that routing a packet is looking it up; it is remade when
`left`, the number of tuples it still stands for, is used up. What a step did is counted for the tuples of this
signature, and for its module, the same step taken by tuples of any signature (see statistics.py).
"""

from __future__ import annotations

from eddyline.plan.bounds import UNBOUND
from eddyline.plan.plan import Plan, Probe, Signature, Step
from eddyline.routing.statistics import Factors, Level, Recent, Work


SURE = 64.0
"""Tuples that speak against a difference between a signature and the level of a module, before there is evidence."""


class Traffic:
    """What one step did to the tuples of one signature: totals since the start, and lately."""

    __slots__ = ("after", "calls", "factors", "module", "produced", "recent", "seconds", "step", "tuples", "within")

    def __init__(self, step: Step, after: Signature, module: Level, within: tuple[tuple[int, int, int], ...]) -> None:
        self.step, self.after, self.module, self.within = step, after, module, within
        self.recent, self.factors = Recent(), Factors()
        self.tuples = self.produced = self.calls = 0
        self.seconds = 0.0

    def add(self, tuples: int, produced: int, seconds: float, work: Work) -> None:
        """A packet took this step."""
        self.tuples += tuples
        self.produced += produced
        self.seconds += seconds
        self.calls += 1
        level, factors, moment = self.module, self.factors, work.moment
        cost, selectivity = work.cost(tuples, seconds, 1.0), produced / tuples
        if level.tuples > 0.0:
            others = 1.0 - min(1.0, self.recent.weight(moment) / level.tuples)
            if others > 0.05:
                factors.add(others * tuples, others * produced, cost, level)
            more, dearer = factors.of(level, SURE)
            level.add(tuples, selectivity / more, cost / dearer, moment)
        else:
            level.add(tuples, selectivity, cost, moment)
        self.recent.add(tuples, produced, seconds, moment)


class Entry:
    """The steps allowed for one signature, none for the whole result; `chosen` is the one to take."""

    __slots__ = ("chosen", "epoch", "left", "moment", "signature", "sources", "steps", "tried", "value", "wanted")

    def __init__(self, signature: Signature, steps: list[Traffic], sources: int) -> None:
        self.signature, self.steps, self.sources = signature, steps, sources
        self.chosen: Traffic | None = None
        self.left = 0
        self.moment = -1
        """How many rows had been built when a packet of this signature was last routed; -1 if none was."""
        self.value, self.epoch = 0.0, -1
        """What the router thinks that a tuple costs from here to the result, and when it thought so."""
        self.tried = 0
        """The moment of the last trial."""
        self.wanted: Traffic | None = None
        """A step that would be chosen if there were evidence for it."""


class RoutingArrays:
    """signature -> entry, made when the signature is first met."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.entries: dict[Signature, Entry] = {}
        self.modules: dict[Step, Level] = {}
        self._by_bit: dict[int, list[tuple[Step, Level]]] = {}

    def entry(self, signature: Signature) -> Entry:
        """The entry of a signature, made now if it is new."""
        entry = self.entries.get(signature)
        if entry is None:
            steps = [self._traffic(signature, step) for step in self._plan.steps(signature)]
            entry = self.entries[signature] = Entry(signature, steps, len(self._plan.query.sources))
        return entry

    def _traffic(self, signature: Signature, step: Step) -> Traffic:
        span, done = signature
        after = (span | 1 << step.target, done) if isinstance(step, Probe) else (span, done | 1 << step.selection)
        within = self._within(span, step.target) if isinstance(step, Probe) else ()
        return Traffic(step, after, self._module(step), within)

    def _within(self, span: int, target: int) -> tuple[tuple[int, int, int], ...]:
        """The components that bound the time of a match: (source, how much earlier, how much later it may be)."""
        most = self._plan.graph.bounds.most
        sources = [s for s in range(len(self._plan.query.sources)) if span >> s & 1]
        bounding = [s for s in sources if most[s][target] < UNBOUND or most[target][s] < UNBOUND]
        return tuple((s, most[s][target], most[target][s]) for s in bounding)

    def _module(self, step: Step) -> Level:
        module = self.modules.get(step)
        if module is None:
            module = self.modules[step] = Level()
            sources = len(self._plan.query.sources)
            bit = step.target if isinstance(step, Probe) else sources + step.selection
            self._by_bit.setdefault(bit, []).append((step, module))
        return module

    def newest(self) -> dict[int, tuple[Step, Level]]:
        """For each source and selection (numbered on from the sources) the module that was used last."""
        return {bit: max(modules, key=lambda m: m[1].moment) for bit, modules in self._by_bit.items()}
