"""What a migration costs: the models of the dissertation (12.3) for the two strategies as they are built here.

Both make the states that only the new plan has. *Moving state* makes them of what is live. An operator of the new plan
whose children are built one after the other, the largest first, gives every tuple when the last one is built; what came
before it found nothing. So its work is that of its smallest leaf: for each step of the order the live tuples so far
times the price of a probe, and matches; then each tuple is inserted. What comes meanwhile is joined in, at the price
that keeping the states has in the new plan, for as long as it takes: in each second of event time there is as much time
for the work as the running plan takes, and at least as many rows are made up as come.

*Parallel track* runs the operators in which the plans differ on new rows, until the last old one has expired: the
longest life of a row that is involved, and lateness. New states begin empty. Tuples that have components of n leaves of
a box flow, while windows fill, at (t / W) ** (n - 1) of what they will, so W is worth W / n of it, and what is left of
the time counts in full. For n = 2 these are the integrals of equation 12.6. Every row begins its way once more, in
packets as small as those of the running plan, which costs about as much as to build it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf

from eddyline.migration.boxes import Box, boxes
from eddyline.optimizer.cost_model import HASH, bits
from eddyline.optimizer.shapes import Pricing, Shape, shape_of
from eddyline.plan.tree import Tree


@dataclass(frozen=True)
class Predicted:
    """CPU seconds, how long it goes on (seconds of event time), the longest it holds results back (seconds), rows and
    tuples that are built again or on the track, tuples of new states, and bytes beside what the running plan has."""

    seconds: float
    duration: float
    longest: float
    rows: float
    tuples: float
    bytes: float

    def figures(self) -> Mapping[str, float]:
        """By name."""
        return asdict(self)


@dataclass(frozen=True)
class PlanChange:
    """From one plan to another, with the prices of now."""

    pricing: Pricing
    old: Tree
    new: Tree

    @property
    def boxes(self) -> list[Box]:
        """Where they differ. What is proposed has no late operators, so spans tell its states."""
        return boxes(self.old, self.new)

    @property
    def fresh(self) -> list[int]:
        """The states that only the new plan has."""
        return [span for box in self.boxes for span in box.fresh]

    @property
    def leaves(self) -> set[int]:
        """What the track is fed with."""
        return {leaf for box in self.boxes for leaf in box.leaves}

    @property
    def span(self) -> int:
        """The sources that are involved."""
        return sum({1 << source for box in self.boxes for source in bits(box.top)})

    def new_indexes(self) -> Iterator[tuple[int, float, int]]:
        """Of the SteMs that both plans have: the span, the seconds for a row in the indexes that only the new plan has,
        and how many these are."""
        model, before, after = self.pricing.model, parents(shape_of(self.old)), parents(shape_of(self.new))
        for span, operator in after.items():
            if span in before:
                keys = model.index_keys(span, operator) - model.index_keys(span, before[span])
                hashed = sum(access == HASH for _, _, access in keys)
                yield span, model.insert_indexes(hashed, len(keys) - hashed), len(keys)


def parents(shape: Shape) -> dict[int, int]:
    """The operator above each child."""
    return {child: operator for operator, children in shape.items() for child in children}


def moving_state(change: PlanChange, spare: float, pause: float | None) -> Predicted:
    """`spare` are the CPU seconds that the running plan takes per second of event time, `pause` the seconds that
    results may be held back at a time (None: as long as it takes, before anything else comes)."""
    pricing, model = change.pricing, change.pricing.model
    shape = shape_of(change.new)
    above = parents(shape)
    work = upkeep = made = held = 0.0
    for box in change.boxes:
        for span in box.fresh:
            work += _made_again(pricing, box, span, shape[span], above[span])
            upkeep += pricing.operator(shape[span]).ordered.cpu + model.stem_cpu(span, above[span])
            made += model.live(span)
            held += model.live(span) * model.tuple_bytes(span, above[span])
    for span, seconds, indexes in change.new_indexes():
        work += model.live(span) * seconds
        upkeep += model.rate(span) * seconds
        held += model.held(span) * indexes * model.costs.index_bytes
    rows = sum(model.live(leaf) for leaf in change.leaves)
    if pause is None:
        return Predicted(work, 0.0, work, rows, made, held)
    coming = sum(source.rate for source in model.workload.sources)
    duration = min(work / spare if spare else inf, rows / coming if coming else 0.0)
    more = sum(model.rate(leaf) for leaf in change.leaves) * duration
    return Predicted(work + upkeep * duration, duration, min(pause, work), rows + more, made, held)


def _made_again(pricing: Pricing, box: Box, span: int, children: tuple[int, ...], above: int) -> float:
    """Seconds to make a state of all that is live: the smallest leaf probes when all others are there."""
    model = pricing.model
    last = min((leaf for leaf in box.leaves if leaf & span), key=model.live)
    start = next(child for child in children if child & last)
    order = pricing.operator(children).ordered.orders[start]
    reached, total = start, model.live(span) * model.insert(span, above)
    for child in order:
        total += model.live(reached) * model.probe(model.link(reached, child)[1], child)
        reached |= child
        total += model.live(reached) * model.costs.match
    turnover = model.turnover(start)
    return total + (model.selection_cpu(start, order) / turnover if turnover else 0.0)


def parallel_track(change: PlanChange, lives: Sequence[float], lateness: float) -> Predicted:
    """`lives` are the seconds that a row of each source lives, 0 for a table; `lateness` is how long after these it is
    known that it does not any more."""
    pricing, model = change.pricing, change.pricing.model
    shape = shape_of(change.new)
    above = parents(shape)
    duration = max((lives[source] for source in bits(change.span)), default=0.0) + lateness
    if duration == inf:
        return Predicted(inf, inf, 0.0, inf, inf, inf)
    total = made = held = 0.0
    for box in change.boxes:
        worth = _Worth(box, lives, duration)
        for span in (*box.fresh, box.top):
            for start, order in pricing.operator(shape[span]).ordered.orders.items():
                reached = start
                for child in order:
                    ask = model.probe(model.link(reached, child)[1], child)
                    total += model.flow(start, reached) * ask * worth(reached)
                    reached |= child
                    total += model.flow(start, reached) * model.costs.match * worth(reached)
                total += model.selection_cpu(start, order) * worth(span)
        for span in box.fresh:
            total += model.stem_cpu(span, above[span]) * worth(span)
            here = min(model.held(span), model.rate(span) * worth(span))
            if not model.turnover(span):  # tables are neither old nor new
                here = model.held(span)
                total += _made_again(pricing, box, span, shape[span], above[span])
            made += here
            held += here * model.tuple_bytes(span, above[span])
    for span, seconds, indexes in change.new_indexes():
        total += model.rate(span) * seconds * duration
        held += model.held(span) * indexes * model.costs.index_bytes
    rows = sum(model.rate(leaf) for leaf in change.leaves) * duration
    return Predicted(total + rows * model.costs.insert_row, duration, 0.0, rows, made, held)


@dataclass(frozen=True)
class _Worth:
    """How many seconds of full flow a parallel track is worth to tuples of a span."""

    box: Box
    lives: Sequence[float]
    duration: float

    def __call__(self, span: int) -> float:
        streams = [leaf for leaf in self.box.leaves if leaf & span and any(self.lives[s] for s in bits(leaf))]
        fills = max((self.lives[s] for s in bits(span)), default=0.0)
        return fills / max(1, len(streams)) + self.duration - fills
