"""What the eddies of several slots did, told in small snapshots after each turn and put together by the driver.

A snapshot is what happened in one turn (the difference of two reports), of bounded size: the busiest
signatures and queues, the newest decisions, and counts of everything. So it can be added up: a turn that is taken again
is told once, by the record that is committed, and a slot that was made again from the log begins at nothing without
anybody having to know. Steps are told by their place among those that the plan allows. Slots may have plans of
different shapes: what is reported is the shape that most of them have now.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from eddyline.plan.plan import Plan, Signature
from eddyline.plan.tree import parse_tree
from eddyline.routing.decisions import KEPT, Decision
from eddyline.routing.report import Packets, Report, StepCount
from eddyline.routing.routing_arrays import RoutingArrays

SIGNATURES, QUEUES, DECISIONS, LETTERS = 64, 16, 20, 400
"""What a snapshot has at most, and how long the texts of a decision are at most."""


class StepTotals(NamedTuple):
    """What one step did to the tuples of one signature."""

    tuples: int
    produced: int
    seconds: float
    calls: int

    def plus(self, other: StepTotals) -> StepTotals:
        """Both."""
        tuples, produced = self.tuples + other.tuples, self.produced + other.produced
        return StepTotals(tuples, produced, self.seconds + other.seconds, self.calls + other.calls)


class SignatureTotals(NamedTuple):
    """What all steps did that the plan allows for a signature, and which of them is taken now (-1: none)."""

    signature: Signature
    chosen: int
    steps: tuple[StepTotals, ...]


@dataclass(frozen=True)
class TurnReport:
    """What happened in one turn of a slot."""

    plan: str
    """The shape of the plan."""
    signatures: tuple[SignatureTotals, ...]
    packets: tuple[Packets, ...]
    counts: Mapping[str, int]
    """Decisions taken, by kind."""
    decisions: tuple[Decision, ...]
    """The newest."""
    rows: tuple[int, ...]
    """Rows built, by source."""
    input_batch: int


def snapshot(turn: Report) -> TurnReport | None:
    """What happened in a turn; None if nothing did."""
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
            for signature, counts in busy[:SIGNATURES]
        ),
        tuple(queues[:QUEUES]),
        counts,
        tuple(replace(d, what=d.what[:LETTERS], why=d.why[:LETTERS]) for d in turn.decisions[-DECISIONS:]),
        turn.rows,
        turn.input_batch,
    )


class _GatheredTraffic:
    """What happened in slots with one shape of the plan."""

    def __init__(self, plan: Plan) -> None:
        self._arrays = RoutingArrays(plan)
        self._steps: dict[Signature, tuple[StepTotals, ...]] = {}
        self._chosen: dict[Signature, dict[int, int]] = {}
        """By signature, the step that each slot takes now."""
        self.packets: dict[Signature, Packets] = {}

    def add(self, slot: int, told: TurnReport) -> None:
        """The snapshot of a slot's turn."""
        for signature, chosen, steps in told.signatures:
            known = self._steps.get(signature)
            added = steps if known is None else tuple(a.plus(b) for a, b in zip(known, steps, strict=True))
            self._steps[signature] = added
            self._chosen.setdefault(signature, {})[slot] = chosen
        for packets in told.packets:
            self._queue(packets)

    def _queue(self, new: Packets) -> None:
        old = self.packets.get(new.signature)
        if old is not None:
            new = replace(
                new,
                packets=old.packets + new.packets,
                tuples=old.tuples + new.tuples,
                longest_wait=max(old.longest_wait, new.longest_wait),
                most_rounds=max(old.most_rounds, new.most_rounds),
            )
        self.packets[new.signature] = new

    def steps(self) -> dict[Signature, tuple[StepCount, ...]]:
        """Where slots disagree on the step to take, the chosen one is the step that most of them take."""
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
    """All that the slots of a job told so far. Where there are several, a decision says whose it was."""

    def __init__(self, plan: Plan, slots: int) -> None:
        self._query, self._slots = plan.query, slots
        self._traffic = {plan.text: _GatheredTraffic(plan)}
        self._trees = {-1: plan.text}
        """By slot the shape it has."""
        self._rows = [0] * len(plan.query.sources)
        self._input_batch: dict[int, int] = {}
        self._decisions: deque[Decision] = deque(maxlen=KEPT)
        self.counts: Counter[str] = Counter()

    def add(self, slot: int, told: TurnReport) -> None:
        """The snapshot of a slot's turn."""
        if told.plan not in self._traffic:
            tree = parse_tree(told.plan, [source.alias for source in self._query.sources])
            self._traffic[told.plan] = _GatheredTraffic(Plan(self._query, tree))
        self._traffic[told.plan].add(slot, told)
        self._trees.pop(-1, None)
        self._trees[slot] = told.plan
        whose = f"slot {slot}: " if self._slots > 1 else ""
        self._decisions.extend(replace(decision, what=whose + decision.what) for decision in told.decisions)
        self.counts.update(told.counts)
        self._rows = [a + b for a, b in zip(self._rows, told.rows, strict=True)]
        self._input_batch[slot] = told.input_batch

    def report(self, seconds: float) -> Report:
        """All slots as one."""
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
