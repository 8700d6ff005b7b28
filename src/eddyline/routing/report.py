"""Reports on a running eddy: how many tuples took each step, what the step made of them, and the decisions.

A `Report` is frozen: a copy of the totals at one moment. The difference of two reports (`since`) is the work between
them, so the eddy never resets anything, and there can be any number of readers. Texts are made on demand, so a report
costs a copy of some numbers. Another thread may take it; then its numbers may be a packet apart.

Tuples are counted per signature, not per source that started them: a tuple of a and b may come from a or from b. So the
*share* of a route is the product of the shares of its steps, each among all tuples of its signature. It is exact for
the first step, and for all steps if their signatures are reached from one source only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from eddyline.bound.model import BoundQuery
from eddyline.plan.explain import span_text, step_text, text
from eddyline.plan.plan import Signature
from eddyline.plan.steps import Probe, Select, Step
from eddyline.routing.decisions import Decision
from eddyline.routing.eddy import Eddy

_SHOWN = 10
"""The number of last decisions in the text."""


class StepCount(NamedTuple):
    """The work of one step on the tuples of one signature. `chosen`: it is the step taken at present."""

    step: Step
    after: Signature
    tuples: int
    produced: int
    seconds: float
    calls: int
    chosen: bool

    @property
    def selectivity(self) -> float | None:
        """Tuples out per tuple in; None before the first tuple."""
        return self.produced / self.tuples if self.tuples else None

    @property
    def microseconds(self) -> float | None:
        """Microseconds per tuple; None before the first tuple."""
        return self.seconds / self.tuples * 1e6 if self.tuples else None

    def plus(self, other: StepCount) -> StepCount:
        """The work of two slots; the first says which step is taken."""
        return self._replace(
            tuples=self.tuples + other.tuples,
            produced=self.produced + other.produced,
            seconds=self.seconds + other.seconds,
            calls=self.calls + other.calls,
        )

    def less(self, earlier: StepCount) -> StepCount:
        """The work since an earlier count."""
        return StepCount(
            self.step,
            self.after,
            self.tuples - earlier.tuples,
            self.produced - earlier.produced,
            self.seconds - earlier.seconds,
            self.calls - earlier.calls,
            self.chosen,
        )


@dataclass(frozen=True)
class Packets:
    """A meta-queue: the packets that left it, the tuples in them, and the tuples that wait at present. The waits are
    the longest since the start."""

    signature: Signature
    packets: int
    tuples: int
    occupancy: int
    threshold: int
    longest_wait: float
    most_rounds: int

    @property
    def mean(self) -> float | None:
        """Tuples per packet; None before the first."""
        return self.tuples / self.packets if self.packets else None

    def plus(self, other: Packets) -> Packets:
        """The packets of both slots, with the standing of the other one."""
        return replace(
            other,
            packets=self.packets + other.packets,
            tuples=self.tuples + other.tuples,
            longest_wait=max(self.longest_wait, other.longest_wait),
            most_rounds=max(self.most_rounds, other.most_rounds),
        )


@dataclass(frozen=True)
class Route:
    """The steps that a row of a source takes at present, as far as any tuple got, each with its share."""

    source: int
    steps: tuple[tuple[StepCount, float | None], ...]
    complete: bool

    @property
    def share(self) -> float | None:
        """The share of the source's tuples that took this route; None before the first tuple."""
        shares = [share for _, share in self.steps if share is not None]
        return math.prod(shares) if shares else None


@dataclass(frozen=True)
class Report:
    """The totals `seconds` after the start. `rows[i]` are the built rows of source i; `input_batch` is how many rows
    are taken in at a time at present."""

    query: BoundQuery
    seconds: float
    rows: tuple[int, ...]
    steps: Mapping[Signature, tuple[StepCount, ...]]
    packets: tuple[Packets, ...]
    counts: Mapping[str, int]
    decisions: tuple[Decision, ...]
    input_batch: int = 0
    tree: str = ""
    """The shape of the plan."""

    def since(self, earlier: Report) -> Report:
        """The work since an earlier report on the same eddy. If the plan has changed, steps are counted from 0."""
        known = earlier.steps if earlier.tree == self.tree else {}
        steps = {
            signature: tuple(now.less(then) for now, then in zip(counts, before, strict=True)) if before else counts
            for signature, counts in self.steps.items()
            for before in [known.get(signature)]
        }
        before = {p.signature: p for p in earlier.packets if earlier.tree == self.tree}
        packets = tuple(
            replace(p, packets=p.packets - before[p.signature].packets, tuples=p.tuples - before[p.signature].tuples)
            if p.signature in before
            else p
            for p in self.packets
        )
        counts = {kind: n - earlier.counts.get(kind, 0) for kind, n in self.counts.items()}
        new = sum(counts.values())
        return Report(
            self.query,
            self.seconds - earlier.seconds,
            tuple(now - then for now, then in zip(self.rows, earlier.rows, strict=True)),
            steps,
            packets,
            counts,
            self.decisions[-new:] if new else (),
            self.input_batch,
            self.tree,
        )

    @property
    def routes(self) -> tuple[Route, ...]:
        """The current route of each source, from the routing arrays."""
        return tuple(self._route(source) for source in range(len(self.query.sources)))

    def _route(self, source: int) -> Route:
        taken: list[tuple[StepCount, float | None]] = []
        signature = (1 << source, 0)
        while counts := self.steps.get(signature):
            step = next((c for c in counts if c.chosen), None) or max(counts, key=lambda c: c.tuples)
            taken.append((step, share_of(step, counts)))
            signature = step.after
        return Route(source, tuple(taken), complete=signature in self.steps)

    def rate(self, source: int) -> float | None:
        """Rows of a source built per second."""
        return self.rows[source] / self.seconds if self.rows and self.seconds > 0 else None

    def name(self, signature: Signature) -> str:
        """A signature for display: the sources of its span, then the selections passed."""
        span, done = signature
        aliases = [s.alias for i, s in enumerate(self.query.sources) if span >> i & 1]
        return " ".join([*aliases, *(f"[{s}]" for i, s in sorted(self._selections.items()) if done >> i & 1)])

    @cached_property
    def _selections(self) -> dict[int, str]:
        """The texts of all selections that a tuple has met, by number."""
        met = {c.step.selection: c.step.predicate for counts in self.steps.values() for c in counts
               if isinstance(c.step, Select)}  # fmt: skip
        return {number: text(predicate, self.query) for number, predicate in met.items()}

    def text(self) -> str:
        """The report as text for display; empty before the first tuple."""
        met = {signature: counts for signature, counts in self._met() if any(c.tuples for c in counts)}
        if not met:
            return ""
        lines = ["measured:", "  routes now:"]
        lines += [f"    {self._route_text(route)}" for route in self.routes if route.steps]
        lines += ["  steps, by the tuples that took them:"]
        for signature, counts in met.items():
            lines.append(f"    {self.name(signature)}")
            lines += [f"      -> {self._step_line(c, counts)}" for c in counts if c.tuples]
        queues = [p for p in self._queues() if p.packets]
        if queues:
            lines.append("  packets:")
            lines += [f"    {self.name(p.signature)}: {_packets_text(p)}" for p in queues]
        if self.counts:
            lines.append(f"  decisions: {', '.join(f'{n:,} {kind}' for kind, n in self.counts.items())}")
            lines += [f"    {decision_text(d)}" for d in self.decisions[-_SHOWN:]]
        return "\n".join(lines)

    def _met(self) -> list[tuple[Signature, tuple[StepCount, ...]]]:
        return sorted(self.steps.items(), key=lambda item: _by_span(item[0]))

    def _queues(self) -> list[Packets]:
        return sorted(self.packets, key=lambda p: _by_span(p.signature))

    def _route_text(self, route: Route) -> str:
        words = [self.query.sources[route.source].alias, *(step_text(c.step, self.query) for c, _ in route.steps)]
        words += [] if route.complete else ["..."]
        share = f"   ({percent(route.share)} of its tuples)" if route.share is not None else ""
        return " -> ".join(words) + share

    def _step_line(self, count: StepCount, among: Sequence[StepCount]) -> str:
        share = f"{percent(share_of(count, among))} of the tuples, " if len(among) > 1 else ""
        return (
            f"{step_text(count.step, self.query)}: {share}{count.tuples:,} in, {count.produced:,} out,"
            f" selectivity {number(count.selectivity)}, {number(count.microseconds)} us each"
        )

    def as_dict(self) -> dict[str, list[dict[str, Any]]]:
        """As a dictionary for JSON: the current `routes`, all `steps`, the meta-queues' `packets`, and the last
        decisions."""
        return {
            "routes": [self._route_dict(route) for route in self.routes],
            "steps": [
                {
                    "at": self.name(signature),
                    "step": step_text(c.step, self.query),
                    "chosen": c.chosen,
                    "tuples": c.tuples,
                    "share": share_of(c, counts),
                    "produced": c.produced,
                    "selectivity": c.selectivity,
                    "us_per_tuple": c.microseconds,
                    "packets": c.calls,
                }
                for signature, counts in self._met()
                for c in counts
            ],
            "packets": [
                {
                    "at": self.name(p.signature),
                    "packets": p.packets,
                    "tuples": p.tuples,
                    "mean": p.mean,
                    "threshold": p.threshold,
                    "occupancy": p.occupancy,
                    "longest_wait_seconds": p.longest_wait,
                    "most_rounds": p.most_rounds,
                }
                for p in self._queues()
            ],
            "decisions_log": [
                {"kind": d.kind, "at": d.at, "slot": d.slot, "what": d.what, "why": d.why,
                 "measured": {key: _finite(value) for key, value in d.measured.items()},
                 "expected": {key: _finite(value) for key, value in d.expected.items()}}
                for d in self.decisions
            ],
        }  # fmt: skip

    def _route_dict(self, route: Route) -> dict[str, Any]:
        return {
            "source": self.query.sources[route.source].alias,
            "rows": self.rows[route.source] if self.rows else None,
            "rows_per_second": self.rate(route.source),
            "route": [step_text(c.step, self.query) for c, _ in route.steps],
            "share": route.share,
            "selectivities": [c.selectivity for c, _ in route.steps],
        }


def look(query: BoundQuery, eddy: Eddy, rows: Sequence[int] = (), seconds: float = 0.0, input_batch: int = 0) -> Report:
    """A report on the current totals of an eddy."""
    entries = list(dict(eddy.routes.entries).values())
    steps = {
        entry.signature: tuple(
            StepCount(t.step, t.after, t.tuples, t.produced, t.seconds, t.calls, t is entry.chosen) for t in entry.steps
        )
        for entry in entries
    }
    packets = tuple(
        Packets(signature, q.packets, q.tuples, q.occupancy, q.threshold, q.longest_wait, q.most_rounds)
        for signature, q in dict(eddy.scheduler.queues).items()
    )
    log = eddy.decisions
    counts, tree = dict(log.counts), eddy.plan.text
    return Report(query, seconds, tuple(rows), steps, packets, counts, tuple(log.recent), input_batch, tree)


def together(reports: Sequence[Report]) -> Report:
    """The reports of several slots as one; the work is of those with the plan that most of them have."""
    tree = Counter(report.tree for report in reports).most_common(1)[0][0]
    alike = [report for report in reports if report.tree == tree]
    steps, packets = dict[Signature, tuple[StepCount, ...]](), dict[Signature, Packets]()
    for report in alike:
        for signature, counts in report.steps.items():
            known = steps.get(signature)
            steps[signature] = tuple(map(StepCount.plus, known, counts)) if known else counts
        for queue in report.packets:
            other = packets.get(queue.signature)
            packets[queue.signature] = queue if other is None else other.plus(queue)
    rows = tuple(map(sum, zip(*(report.rows for report in reports), strict=True)))
    return replace(alike[0], rows=rows, steps=steps, packets=tuple(packets.values()))


def measured(query: BoundQuery, eddy: Eddy) -> str:
    """The work of an eddy so far, as text."""
    return look(query, eddy).text()


def share_of(count: StepCount, among: Sequence[StepCount]) -> float | None:
    """The share of a signature's tuples that took a step; None before the first tuple."""
    total = sum(c.tuples for c in among)
    return count.tuples / total if total else None


def short_step(step: Step, query: BoundQuery) -> str:
    """A step in as few words as distinguish it from the others."""
    return span_text(step.span, query) if isinstance(step, Probe) else step_text(step, query)


def decision_text(decision: Decision) -> str:
    """A decision as one line."""
    return f"{decision.at:,} rows: {decision.what}; {decision.why}"


def percent(share: float | None) -> str:
    """Format a share for display.

    >>> percent(0.973), percent(0.0041), percent(0.99996), percent(None)
    ('97 %', '0.41 %', '100 %', '-')
    """
    if share is None:
        return "-"
    return f"{share * 100:.0f} %" if share >= 0.01 or share == 0 else f"{share * 100:.2g} %"


def number(value: float | None) -> str:
    """Format a number with three digits, for display.

    >>> number(0.98765), number(999.99), number(1234.5), number(12345678.0), number(None)
    ('0.988', '1,000', '1,234', '12,345,678', '-')
    """
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def _packets_text(p: Packets) -> str:
    return (
        f"{p.packets:,} of {number(p.mean)} tuples each, threshold {p.threshold:,}, {p.occupancy:,} waiting,"
        f" waited {number(p.longest_wait * 1e3)} ms and {p.most_rounds:,} rounds at most"
    )


def _by_span(signature: Signature) -> tuple[int, int, int, int]:
    span, done = signature
    return span.bit_count(), span, done.bit_count(), done


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
