"""An estimate: the optimizer's predictions for the plan of a slot beside the measurements, for other processes and for
display.

Estimates of slots with the same plan are merged: rates, rows, bytes and CPU add up, and shares are weighted by the
tuples that they were measured on. Selectivities are those inside a slot: where rows are split by a key, fewer pairs
meet in a slot, and more of them match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from eddyline.bound.model import BoundQuery
from eddyline.optimizer.conditions import Condition, conditions
from eddyline.plan.explain import span_text, text
from eddyline.plan.plan import Plan
from eddyline.routing.report import number
from eddyline.setting_kinds import size_text


class Child(NamedTuple):
    """An input of an operator: tuples of `span`. For a source the rate is measured; for an operator below, both the
    predicted and the measured rate are given."""

    span: int
    rate: float
    held: float
    bytes: float
    measured_rate: float
    measured_held: float
    measured_bytes: float


class Share(NamedTuple):
    """The share of tuples that pass a condition or a selection, measured on `tuples`; for a selection also the seconds
    per tuple."""

    number: int
    share: float
    tuples: float
    seconds: float = 0.0


@dataclass(frozen=True)
class Estimate:
    """The estimate of one plan in one or several slots. Costs are CPU seconds per second of event time, and bytes."""

    plan: str
    children: Sequence[Child]
    conditions: Sequence[Share]
    selections: Sequence[Share]
    predicted: Sequence[float]
    measured: Sequence[float]
    last: str = ""
    """The last proposal, for display."""
    slots: int = 1

    def text(self, plan: Plan) -> str:
        """Format for display."""
        query, slots = plan.query, f", {self.slots} slots" if self.slots > 1 else ""
        lines = [f"estimated, for {self.plan}{slots}:"]
        lines += [f"  {span_text(child.span, query)}: {_child_text(child)}" for child in self.children]
        known = conditions(plan)
        for found in self.conditions:
            lines.append(f"  selectivity of {condition_text(known[found.number], query)}: {found.share:.3g}")
        for found in self.selections:
            predicate = text(plan.graph.selections[found.number], query)
            each = f"{number(found.seconds * 1e6)} us a tuple"
            lines.append(f"  selection {predicate}: {found.share:.3g} pass, {each}")
        lines.append(f"  predicted: {cost_text(*self.predicted)}; measured: {cost_text(*self.measured)}")
        return "\n".join([*lines, *([self.last] if self.last else [])])


def put_together(estimates: Sequence[Estimate]) -> list[Estimate]:
    """One estimate for each plan that slots run, the plan of most slots first."""
    by_plan: dict[str, list[Estimate]] = {}
    for estimate in estimates:
        by_plan.setdefault(estimate.plan, []).append(estimate)
    return [_merged(alike) for alike in sorted(by_plan.values(), key=len, reverse=True)]


def _merged(alike: Sequence[Estimate]) -> Estimate:
    first = alike[0]
    if len(alike) == 1:
        return first
    columns = zip(*(e.children for e in alike), strict=True)
    return replace(
        first,
        children=[Child(same[0].span, *_sums([c[1:] for c in same])) for same in columns],
        conditions=_weighed([s for e in alike for s in e.conditions]),
        selections=_weighed([s for e in alike for s in e.selections]),
        predicted=_sums([e.predicted for e in alike]),
        measured=_sums([e.measured for e in alike]),
        last="",
        slots=len(alike),
    )


def _sums(rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(column) for column in zip(*rows, strict=True)]


def _weighed(shares: Sequence[Share]) -> list[Share]:
    """One share for each number, weighted by tuples; if no tuples were measured, all count the same."""
    by_number: dict[int, list[Share]] = {}
    for share in shares:
        by_number.setdefault(share.number, []).append(share)
    found = []
    for which, same in sorted(by_number.items()):
        tuples = sum(s.tuples for s in same)
        weights = [s.tuples / tuples if tuples else 1.0 / len(same) for s in same]
        mean = [sum(w * value for w, value in zip(weights, of, strict=True))
                for of in ([s.share for s in same], [s.seconds for s in same])]  # fmt: skip
        found.append(Share(which, mean[0], tuples, mean[1]))
    return found


def _child_text(child: Child) -> str:
    estimated = f"{number(child.rate)} a second, {number(child.held)} held in {size_text(int(child.bytes))}"
    rate = f"{number(child.measured_rate)} a second, " if child.span & (child.span - 1) else ""
    return f"{estimated}; measured {rate}{number(child.measured_held)} held in {size_text(int(child.measured_bytes))}"


def condition_text(condition: Condition, query: BoundQuery) -> str:
    """A condition as in the query; the columns of a class are joined by =."""
    if condition.predicate is not None:
        return text(condition.predicate, query)
    return " = ".join(text(column, query) for _, column in condition.keys)


def cost_text(cpu: float, memory: float) -> str:
    """Format CPU and bytes for display."""
    return f"{cpu:.3g} of a core, {size_text(int(memory))}"
