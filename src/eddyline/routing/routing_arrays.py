"""Routing arrays: for each known signature, the steps allowed next, the work of each step, and the step to take.

The decision for a signature is stored with its steps, so routing a packet is a lookup. The decision is remade when
`left`, the number of tuples that it still covers, is used up. The work of a step is counted for the tuples of this
signature, and also for its module: the same step taken by tuples of any signature (see statistics.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.codec import Snapshot
from eddyline.plan.bounds import UNBOUND
from eddyline.plan.plan import Plan, Signature
from eddyline.plan.steps import KeyAccess, Probe, Step
from eddyline.routing.statistics import (
    Level,
    LevelSnapshot,
    Recent,
    RecentSnapshot,
    Reference,
    ReferenceSnapshot,
    Work,
)
from eddyline.routing.tuning import DEFAULT, RoutingTuning

Bound = tuple[int, int, int]
"""(source, how much earlier than its row a match may be, how much later)."""


class TrafficSnapshot(Snapshot, frozen=True):
    """The work of one step, with its module."""

    tuples: int
    produced: int
    calls: int
    seconds: float
    recent: RecentSnapshot
    reference: ReferenceSnapshot
    module: LevelSnapshot


class EntrySnapshot(Snapshot, frozen=True):
    """The steps of one signature. `chosen` is the place of the step to take, -1 if none is chosen."""

    signature: Signature
    left: int
    moment: int
    chosen: int
    steps: tuple[TrafficSnapshot, ...]


class Traffic:
    """The work of one step on the tuples of one signature: totals since the start, and recent work."""

    __slots__ = (
        "after",
        "apart",
        "bit",
        "calls",
        "module",
        "partner",
        "produced",
        "recent",
        "reference",
        "seconds",
        "step",
        "tuples",
        "within",
    )

    def __init__(
        self,
        step: Step,
        bit: int,
        after: Signature,
        module: Level,
        within: tuple[Bound, ...],
        apart: tuple[tuple[int, Bound], ...],
        tuning: RoutingTuning,
    ) -> None:
        self.step, self.bit, self.after, self.module, self.within, self.apart = step, bit, after, module, within, apart
        """`bit`: the source that is probed (of several sources the first) or the selection, whose numbers follow those
        of the sources. `after`: the signature after the step. `within` bounds the time of a match; `apart` bounds the
        times of its components, if there are several."""
        self.partner = _partner(step)
        self.recent, self.reference = Recent(tuning), Reference(tuning)
        self.tuples = self.produced = self.calls = 0
        self.seconds = 0.0

    def add(self, tuples: int, produced: int, seconds: float, work: Work) -> bool:
        """Add a packet that took this step; returns whether the outcome was a surprise."""
        self.tuples += tuples
        self.produced += produced
        self.seconds += seconds
        self.calls += 1
        moment = work.moment
        work.levels[self.bit, self.partner] = self.module
        dearer = self.module.add(tuples, produced / tuples, self.cost(tuples, produced, seconds, work), moment)
        self.recent.add(tuples, produced, seconds, moment)
        if isinstance(self.step, Probe):  # the cost of a probe varies with the contents of caches
            return self.reference.probed(tuples, produced, work.slices, self.after[0].bit_count() > 2)
        return self.reference.surprised(tuples, produced) or dearer

    def cost(self, tuples: int, produced: float, seconds: float, work: Work) -> float:
        """Seconds per tuple; for a probe, per tuple or match."""
        return work.cost(tuples + produced if isinstance(self.step, Probe) else tuples, seconds, 1.0)

    def saved(self) -> TrafficSnapshot:
        """A snapshot for another process, with the module."""
        totals = self.tuples, self.produced, self.calls, self.seconds
        return TrafficSnapshot(*totals, self.recent.saved(), self.reference.saved(), self.module.saved())

    def restore(self, saved: TrafficSnapshot) -> None:
        """Restore from a snapshot."""
        self.tuples, self.produced, self.calls, self.seconds = saved.tuples, saved.produced, saved.calls, saved.seconds
        self.recent.restore(saved.recent)
        self.reference.restore(saved.reference)
        self.module.restore(saved.module)


class Entry:
    """The steps allowed for one signature, none for the whole result. `chosen` is the step to take."""

    __slots__ = ("chosen", "left", "moment", "note", "operator", "signature", "sources", "stem", "steps")

    def __init__(self, signature: Signature, steps: list[Traffic], plan: Plan) -> None:
        self.signature, self.steps, self.sources = signature, steps, len(plan.query.sources)
        self.stem = plan.stem_of(signature)
        """The intermediate SteM into which tuples of this signature are built; None if there is none."""
        self.operator = plan.operator(signature).tree.span
        """The span of the join operator in which its tuples are."""
        self.chosen: Traffic | None = None
        self.left = 0
        self.moment = -1
        """How many rows had been built when a packet of this signature was last routed; -1 if none was."""
        self.note: object = None
        """For a policy: its note about this entry."""

    @property
    def whole(self) -> bool:
        """Whether tuples of this signature are complete for their operator."""
        return self.stem is not None or not self.steps

    @property
    def bits(self) -> int:
        """The sources of its tuples and the selections that they have passed, as bits; selections follow the
        sources."""
        return self.signature[0] | self.signature[1] << self.sources


class RoutingArrays:
    """signature -> entry. An entry is made when its signature first occurs."""

    def __init__(self, plan: Plan, tuning: RoutingTuning = DEFAULT) -> None:
        self._plan, self._tuning = plan, tuning
        self.entries: dict[Signature, Entry] = {}
        self._sources = len(plan.query.sources)
        self._modules: dict[Step, Level] = {}

    def entry(self, signature: Signature) -> Entry:
        """The entry of a signature, made now if it is new."""
        entry = self.entries.get(signature)
        if entry is None:
            steps = [self._traffic(signature, step) for step in self._plan.steps(signature)]
            entry = self.entries[signature] = Entry(signature, steps, self._plan)
        return entry

    def _traffic(self, signature: Signature, step: Step) -> Traffic:
        plan, after = self._plan, self._plan.after(signature, step)
        module = self._modules.setdefault(step, Level(self._tuning))
        if not isinstance(step, Probe):
            return Traffic(step, self._sources + step.selection, after, module, (), (), self._tuning)
        bit = plan.operator(signature).bits[step.target]
        within = self._within(signature[0], after[0] & ~signature[0])
        apart = self._apart(signature[0], plan.layouts[step.target].components)
        return Traffic(step, bit, after, module, within, apart, self._tuning)

    def _within(self, span: int, target: int) -> tuple[Bound, ...]:
        """The components that bound the time of a match, which is that of its newest component: (source, how much
        earlier, how much later it may be)."""
        most, sources = self._plan.graph.bounds.most, self._plan.query.sources
        timed = [t for t in self._numbers(target) if not sources[t].stream.is_table]
        found = [
            (s, min(most[s][t] for t in timed), max(most[t][s] for t in timed)) for s in self._numbers(span) if timed
        ]
        return tuple(bound for bound in found if bound[1] < UNBOUND or bound[2] < UNBOUND)

    def _apart(self, span: int, components: tuple[int, ...]) -> tuple[tuple[int, Bound], ...]:
        """For each component of a match with several components: the components that bound its time."""
        return tuple((c, bound) for c in components for bound in self._within(span, 1 << c))

    def _numbers(self, span: int) -> list[int]:
        return [s for s in range(self._sources) if span >> s & 1]

    def saved(self) -> tuple[EntrySnapshot, ...]:
        """A snapshot for another process."""
        return tuple(
            EntrySnapshot(
                signature=entry.signature,
                left=entry.left,
                moment=entry.moment,
                chosen=entry.steps.index(entry.chosen) if entry.chosen else -1,
                steps=tuple(traffic.saved() for traffic in entry.steps),
            )
            for entry in self.entries.values()
        )

    def restore(self, saved: Sequence[EntrySnapshot], work: Work) -> None:
        """Restore from a snapshot: the routes and the statistics. If several modules belong to one source, the most
        used one is its level."""
        for of_entry in saved:
            entry = self.entry(of_entry.signature)
            entry.left, entry.moment = of_entry.left, of_entry.moment
            entry.chosen = entry.steps[of_entry.chosen] if of_entry.chosen >= 0 else None
            for traffic, of_traffic in zip(entry.steps, of_entry.steps, strict=True):
                traffic.restore(of_traffic)
                known = work.levels.setdefault((traffic.bit, traffic.partner), traffic.module)
                if traffic.module.tuples > known.tuples:
                    work.levels[traffic.bit, traffic.partner] = traffic.module


def _partner(step: Step) -> int:
    """The source whose key is looked up in a probe; -1 if there is none."""
    return step.access.partner if isinstance(step, Probe) and isinstance(step.access, KeyAccess) else -1
