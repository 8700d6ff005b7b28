"""Gathers the work of the eddies of several slots: each turn sends a small snapshot, and the driver adds them up.

A snapshot is the work of one turn (the difference of two reports), of bounded size: the busiest signatures and queues,
the newest decisions, and counts of everything. Snapshots add up. If a turn is repeated, only the committed record
counts; a slot that was rebuilt from the log starts at zero, which needs no special case. A step is identified by its
place among those that the plan allows. Slots may have plans of different shapes: the shape that most of them have at
present is reported.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from eddyline.plan.plan import Plan, Signature
from eddyline.plan.tree import parse_tree
from eddyline.routing.decisions import KEPT, Decision
from eddyline.routing.report import Packets, Report, StepCount
from eddyline.routing.routing_arrays import RoutingArrays

SIGNATURES, QUEUES, DECISIONS, LETTERS = 64, 16, 20, 400
"""The most signatures, queues and decisions of a snapshot, and the most characters of each text of a decision."""


class StepTotals(NamedTuple):
    """The work of one step on the tuples of one signature."""

    tuples: int
    produced: int
    seconds: float
    calls: int

    def plus(self, other: StepTotals) -> StepTotals:
        """The sum of both."""
        tuples, produced = self.tuples + other.tuples, self.produced + other.produced
        return StepTotals(tuples, produced, self.seconds + other.seconds, self.calls + other.calls)


class SignatureTotals(NamedTuple):
    """The work of all steps that the plan allows for a signature, and which of them is taken at present (-1: none)."""

    signature: Signature
    chosen: int
    steps: tuple[StepTotals, ...]


@dataclass(frozen=True)
class TurnReport:
    """The work of one turn of a slot."""

    plan: str
    """The shape of the plan."""
    signatures: tuple[SignatureTotals, ...]
    packets: tuple[Packets, ...]
    counts: Mapping[str, int]
    """Decisions taken, by kind."""
    decisions: tuple[Decision, ...]
    """The newest decisions."""
    rows: tuple[int, ...]
    """Rows built, by source."""
    input_batch: int


def snapshot(turn: Report, whole: bool = False) -> TurnReport | None:
    """The snapshot of a turn, or of a slot's work in this process, which may be `whole`; None if nothing happened."""
    busy = [(s, counts) for s, counts in turn.steps.items() if any(c.tuples for c in counts)]
    busy.sort(key=lambda item: -sum(c.tuples for c in item[1]))
    queues = sorted((p for p in turn.packets if p.packets), key=lambda p: -p.tuples)
    counts = {kind: n for kind, n in turn.counts.items() if n}
    if not (busy or queues or counts or turn.decisions or any(turn.rows)):
        return None
    return TurnReport(
        turn.tree,
        tuple(
            SignatureTotals(
                signature,
                next((i for i, c in enumerate(counts) if c.chosen), -1),
                tuple(StepTotals(c.tuples, c.produced, c.seconds, c.calls) for c in counts),
            )
            for signature, counts in (busy if whole else busy[:SIGNATURES])
        ),
        tuple(queues if whole else queues[:QUEUES]),
        counts,
        turn.decisions if whole else tuple(d.cut(LETTERS) for d in turn.decisions[-DECISIONS:]),
        turn.rows,
        turn.input_batch,
    )


class _GatheredTraffic:
    """The work of the slots with one shape of the plan."""

    def __init__(self, plan: Plan) -> None:
        self._arrays = RoutingArrays(plan)
        self._steps: dict[Signature, tuple[StepTotals, ...]] = {}
        self._chosen: dict[Signature, dict[int, int]] = {}
        """By signature, the step that each slot takes at present."""
        self.packets: dict[Signature, Packets] = {}

    def add(self, slot: int, told: TurnReport) -> None:
        """Add the snapshot of a slot's turn."""
        for signature, chosen, steps in told.signatures:
            known = self._steps.get(signature)
            added = steps if known is None else tuple(a.plus(b) for a, b in zip(known, steps, strict=True))
            self._steps[signature] = added
            self._chosen.setdefault(signature, {})[slot] = chosen
        for packets in told.packets:
            self._queue(packets)

    def _queue(self, new: Packets) -> None:
        old = self.packets.get(new.signature)
        self.packets[new.signature] = new if old is None else old.plus(new)

    def steps(self) -> dict[Signature, tuple[StepCount, ...]]:
        """The counts of all steps. Where slots disagree, the chosen step is the one that most of them take."""
        steps = {signature: self._counts(signature, totals) for signature, totals in dict(self._steps).items()}
        for signature in [c.after for counts in steps.values() for c in counts]:
            if signature not in steps and not self._arrays.entry(signature).steps:
                steps[signature] = ()  # a whole result
        return steps

    def _counts(self, signature: Signature, totals: tuple[StepTotals, ...]) -> tuple[StepCount, ...]:
        votes = Counter(self._chosen[signature].values()).most_common(1)
        chosen = votes[0][0] if votes else -1
        return tuple(
            StepCount(t.step, t.after, *of_step, number == chosen)
            for number, (t, of_step) in enumerate(zip(self._arrays.entry(signature).steps, totals, strict=True))
        )


class Gathered:
    """The sum of all snapshots of a job so far. With several slots, a decision names its slot."""

    def __init__(self, plan: Plan, slots: int) -> None:
        self._query, self._slots = plan.query, slots
        self._traffic = {plan.text: _GatheredTraffic(plan)}
        self._trees = {-1: plan.text}
        """The shape of each slot's plan."""
        self._rows = [0] * len(plan.query.sources)
        self._input_batch: dict[int, int] = {}
        self._decisions: deque[Decision] = deque(maxlen=KEPT)
        self.counts: Counter[str] = Counter()

    def add(self, slot: int, told: TurnReport) -> None:
        """Add the snapshot of a slot's turn."""
        if told.plan not in self._traffic:
            tree = parse_tree(told.plan, [source.alias for source in self._query.sources])
            self._traffic[told.plan] = _GatheredTraffic(Plan(self._query, tree))
        self._traffic[told.plan].add(slot, told)
        self._trees.pop(-1, None)
        self._trees[slot] = told.plan
        several = self._slots > 1
        self._decisions.extend(decision.of_slot(slot) if several else replace(decision) for decision in told.decisions)
        self.counts.update(told.counts)
        self._rows = [a + b for a, b in zip(self._rows, told.rows, strict=True)]
        self._input_batch[slot] = told.input_batch

    def decide(self, decisions: Iterable[Decision]) -> None:
        """Add decisions of the driver, which concern all slots."""
        for decision in decisions:
            self._decisions.append(replace(decision, at=sum(self._rows)))
            self.counts[decision.kind] += 1

    def report(self, seconds: float) -> Report:
        """One report for all slots together."""
        tree = Counter(dict(self._trees).values()).most_common(1)[0][0]
        return Report(
            self._query,
            seconds,
            tuple(self._rows),
            self._traffic[tree].steps(),
            tuple(self._traffic[tree].packets.values()),
            dict(self.counts),
            tuple(self._decisions),
            max(self._input_batch.values(), default=0),
            tree,
        )
