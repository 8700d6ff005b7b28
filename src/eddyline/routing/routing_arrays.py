"""Routing arrays: for each signature that was met, the steps allowed next and what each of them did so far."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.plan.explain import step_text
from eddyline.plan.plan import Plan, Signature, Step
from eddyline.query.model import Query


@dataclass
class Traffic:
    """What one step did to the tuples of one signature."""

    step: Step
    tuples: int = 0
    produced: int = 0


class RoutingArrays:
    """signature -> the steps allowed next, each with its traffic; empty for the whole result."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.entries: dict[Signature, list[Traffic]] = {}

    def entry(self, signature: Signature) -> list[Traffic]:
        """The entry of a signature, made now if it is new."""
        entry = self.entries.get(signature)
        if entry is None:
            entry = self.entries[signature] = [Traffic(step) for step in self._plan.steps(signature)]
        return entry


def measured(query: Query, routes: RoutingArrays) -> str:
    """What each step did to the tuples that took it, as text."""
    lines = []
    for (span, _), entry in sorted(dict(routes.entries).items(), key=lambda item: item[0][0].bit_count()):
        aliases = " ".join(s.alias for i, s in enumerate(query.sources) if span >> i & 1)
        lines += [
            f"  {aliases} -> {step_text(t.step, query)}: {t.tuples:,} tuples in, {t.produced:,} out"
            for t in entry
            if t.tuples
        ]
    return "\n".join(["measured:", *lines]) if lines else ""
