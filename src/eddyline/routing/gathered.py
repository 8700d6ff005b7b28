"""What the eddies of several slots did, told in small snapshots after each turn and put together by the driver.

A snapshot is what happened in one turn (the difference of two reports), as plain data of bounded size: the busiest
signatures and queues, the newest decisions, and counts of everything. So it can be added up: a turn that is taken again
is told once, by the record that is committed, and a slot that was made again from the log begins at nothing without
anybody having to know. Steps are told by their place among those that the plan allows. Slots may have plans of
different shapes: what is reported is the shape that most of them have now.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from eddyline.plan.plan import Plan, Signature
from eddyline.plan.tree import parse_tree
from eddyline.routing.decisions import KEPT, Decision
from eddyline.routing.report import Packets, Report, StepCount
from eddyline.routing.routing_arrays import RoutingArrays

SIGNATURES, QUEUES, DECISIONS, LETTERS = 64, 16, 20, 400
"""What a snapshot has at most, and how long the texts of a decision are at most."""


def snapshot(turn: Report) -> dict[str, Any]:
    """What happened in a turn, for JSON; empty if nothing did."""
    busy = [(s, counts) for s, counts in turn.steps.items() if any(c.tuples for c in counts)]
    busy.sort(key=lambda item: -sum(c.tuples for c in item[1]))
    queues = sorted((p for p in turn.packets if p.packets), key=lambda p: -p.tuples)
    told: dict[str, Any] = {
        "plan": turn.tree,
        "steps": [
            [*signature, next((i for i, c in enumerate(counts) if c.chosen), -1), [list(c[2:6]) for c in counts]]
            for signature, counts in busy[:SIGNATURES]
        ],
        "packets": [
            [*p.signature, p.packets, p.tuples, p.occupancy, p.threshold, p.longest_wait, p.most_rounds]
            for p in queues[:QUEUES]
        ],
        "counts": {kind: n for kind, n in turn.counts.items() if n},
        "decisions": [
            [d.kind, d.at, d.what[:LETTERS], d.why[:LETTERS], {k: float(v) for k, v in d.measured.items()}]
            for d in turn.decisions[-DECISIONS:]
        ],
    }
    if not any(turn.rows) and not any(value for name, value in told.items() if name != "plan"):
        return {}
    return told | {"rows": list(turn.rows), "input_batch": turn.input_batch}


class _Traffic:
    """What happened in slots with one shape of the plan."""

    def __init__(self, plan: Plan) -> None:
        self._arrays = RoutingArrays(plan)
        self._steps: dict[Signature, list[list[float]]] = {}
        self._chosen: dict[Signature, dict[int, int]] = {}
        """By signature, the step that each slot takes now."""
        self.packets: dict[Signature, Packets] = {}

    def add(self, slot: int, told: Mapping[str, Any]) -> None:
        """The snapshot of a slot's turn."""
        for span, done, chosen, counts in told["steps"]:
            known = self._steps.setdefault((span, done), [[0, 0, 0.0, 0] for _ in counts])
            for total, more in zip(known, counts, strict=True):
                total[:] = [a + b for a, b in zip(total, more, strict=True)]
            self._chosen.setdefault((span, done), {})[slot] = chosen
        for span, done, *numbers in told["packets"]:
            self._queue(Packets((span, done), *numbers))

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
        """Of steps that slots disagree on, the one that most of them take is the chosen one."""
        steps = {signature: self._counts(signature, totals) for signature, totals in dict(self._steps).items()}
        for signature in [c.after for counts in steps.values() for c in counts]:
            if signature not in steps and not self._arrays.entry(signature).steps:
                steps[signature] = ()  # a whole result
        return steps

    def _counts(self, signature: Signature, totals: list[list[float]]) -> tuple[StepCount, ...]:
        votes = Counter(self._chosen[signature].values()).most_common(1)
        chosen = votes[0][0] if votes else -1
        return tuple(
            StepCount(t.step, t.after, int(tuples), int(produced), seconds, int(calls), number == chosen)
            for number, (t, (tuples, produced, seconds, calls)) in enumerate(
                zip(self._arrays.entry(signature).steps, totals, strict=True)
            )
        )


class Gathered:
    """All that the slots of a job told so far. Where there are several, a decision says whose it was."""

    def __init__(self, plan: Plan, slots: int) -> None:
        self._query, self._slots = plan.query, slots
        self._traffic = {plan.text: _Traffic(plan)}
        self._trees = {-1: plan.text}
        """By slot the shape it has."""
        self._rows = [0] * len(plan.query.sources)
        self._input_batch: dict[int, int] = {}
        self._decisions: deque[Decision] = deque(maxlen=KEPT)
        self.counts: Counter[str] = Counter()

    def add(self, slot: int, told: Mapping[str, Any]) -> None:
        """The snapshot of a slot's turn."""
        if not told:
            return
        if told["plan"] not in self._traffic:
            tree = parse_tree(told["plan"], [source.alias for source in self._query.sources])
            self._traffic[told["plan"]] = _Traffic(Plan(self._query, tree))
        self._traffic[told["plan"]].add(slot, told)
        self._trees.pop(-1, None)
        self._trees[slot] = told["plan"]
        for kind, at, what, why, measured in told["decisions"]:
            whose = f"slot {slot}: " if self._slots > 1 else ""
            self._decisions.append(Decision(kind, at, whose + what, why, measured))
        self.counts.update(told["counts"])
        self._rows = [a + b for a, b in zip(self._rows, told["rows"], strict=True)]
        self._input_batch[slot] = told["input_batch"]

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
