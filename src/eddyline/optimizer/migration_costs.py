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

A state that both plans have may have passed more selections in the new plan, or have weights only there: it is
*filtered*. Its tuples are those of the old state that pass what is missing, put together where the new plan groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import inf

from eddyline.migration.boxes import Box, boxes
from eddyline.optimizer.cost_model import HASH, CostModel, bits
from eddyline.optimizer.operator_price import ChildTuples, OperatorPrice
from eddyline.optimizer.pricing import PricedTree, Pricing
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
    """From one plan to another, with the current prices."""

    pricing: Pricing
    old: Tree
    new: Tree

    @cached_property
    def boxes(self) -> list[Box]:
        """Where they differ."""
        return boxes(self.old, self.new, [s.span for s in self.model.workload.selections])

    @cached_property
    def before(self) -> PricedTree:
        """The prices of the old plan."""
        return self.pricing.tree(self.old)

    @cached_property
    def after(self) -> PricedTree:
        """The prices of the new plan."""
        return self.pricing.tree(self.new)

    @property
    def model(self) -> CostModel:
        """What prices are made of."""
        return self.pricing.model

    @property
    def fresh(self) -> list[int]:
        """The states that only the new plan has."""
        return [state for box in self.boxes for state in box.fresh]

    @property
    def filtered(self) -> list[int]:
        """The states that are made of those of the old plan."""
        return [state for box in self.boxes for state in box.filtered]

    @property
    def leaves(self) -> list[tuple[OperatorPrice, ChildTuples]]:
        """What the track is fed with: states of the old plan, with the operator above each."""
        return [self.before.above[leaf] for leaf in {leaf for box in self.boxes for leaf in box.leaves}]

    @property
    def span(self) -> int:
        """The sources that are involved."""
        return sum({1 << source for box in self.boxes for source in bits(span_of_state(box.top))})

    def new_indexes(self) -> Iterator[tuple[OperatorPrice, ChildTuples, float, int]]:
        """Of the SteMs that both plans have: the operator above, what is in them, the seconds for a row in the indexes
        that only the new plan has, and how many these are."""
        made, before = {*self.fresh, *self.filtered}, self.before.above
        for state, (price, given) in self.after.above.items():
            if state in before and state not in made:
                old, _ = before[state]
                keys = self.model.index_keys(given.span, price.span) - self.model.index_keys(given.span, old.span)
                hashed = sum(access == HASH for _, _, access in keys)
                yield price, given, self.model.insert_indexes(hashed, len(keys) - hashed), len(keys)

    def filtering(self, state: int) -> float:
        """Seconds for a tuple of the old plan to become one of a filtered state, or to be left out."""
        (_, old), (_, new) = self.before.above[state], self.after.above[state]
        missing = new.passed & ~old.passed
        selections = enumerate(self.model.workload.selections)
        evaluated = sum(s.seconds for number, s in selections if missing >> number & 1)
        return evaluated + (self.model.costs.group_tuple if new.weighted and not old.weighted else 0.0)


def span_of_state(state: int) -> int:
    """The sources of a state (tree.state_of)."""
    return state if state > 0 else ~state


def moving_state(change: PlanChange, spare: float, pause: float | None) -> Predicted:
    """`spare` are the CPU seconds that the running plan takes per second of event time, `pause` the seconds that
    results may be held back at a time (None: as long as it takes, before anything else comes)."""
    model, before, after = change.model, change.before.above, change.after.above
    work = upkeep = made = held = 0.0
    for box in change.boxes:
        for state in box.fresh:
            price, given = after[state]
            node = change.after.nodes[state]
            work += _made_again(change, box, state)
            probing = sum(node.price.order_cpu(*order) for order in node.orders.items())
            upkeep += probing + node.price.grouping_cpu() + price.stem_cpu(given)
            made += price.size(given)
            held += price.size(given) * price.tuple_bytes(given)
        for state in box.filtered:
            (old_price, old), (price, given) = before[state], after[state]
            each = change.filtering(state)
            work += old_price.size(old) * each + price.size(given) * price.insert(given)
            upkeep += old_price.rate(old) * each + price.stem_cpu(given)
            made += price.size(given)
            held += price.size(given) * price.tuple_bytes(given)
    for price, given, seconds, indexes in change.new_indexes():
        work += price.size(given) * seconds
        upkeep += price.rate(given) * seconds
        held += price.held(given) * indexes * model.costs.index_bytes
    rows = sum(price.size(given) for price, given in change.leaves)
    if pause is None:
        return Predicted(work, 0.0, work, rows, made, held)
    coming = sum(source.rate for source in model.workload.sources)
    duration = min(work / spare if spare else inf, rows / coming if coming else 0.0)
    more = sum(price.rate(given) for price, given in change.leaves) * duration
    return Predicted(work + upkeep * duration, duration, min(pause, work), rows + more, made, held)


def _made_again(change: PlanChange, box: Box, state: int) -> float:
    """Seconds to make a state of all that is live: the smallest leaf probes when all others are there."""
    node, (above, given) = change.after.nodes[state], change.after.above[state]
    leaves = [span_of_state(leaf) for leaf in box.leaves]
    last = min((leaf for leaf in leaves if leaf & given.span), key=change.model.live)
    start = next(child.span for child in node.price.children if child.span & last)
    return node.price.make_again(start, node.orders[start]) + above.size(given) * above.insert(given)


def parallel_track(change: PlanChange, lives: Sequence[float], lateness: float) -> Predicted:
    """`lives` are the seconds that a row of each source lives, 0 for a table; `lateness` is how long after these it is
    known that it does not any more."""
    model, before, after = change.model, change.before.above, change.after.above
    duration = max((lives[source] for source in bits(change.span)), default=0.0) + lateness
    if duration == inf:
        return Predicted(inf, inf, 0.0, inf, inf, inf)
    total = made = held = 0.0
    filtered = set(change.filtered)
    for box in change.boxes:
        worth = _TrackSeconds(box, lives, duration)
        for state in (*box.fresh, *(() if box.top in filtered else (box.top,))):
            node = change.after.nodes[state]
            for start, order in node.orders.items():
                spent = sum(seconds * worth(span) for span, seconds in node.price.order_seconds(start, order))
                total += model.turnover(start) * spent
            total += node.price.grouping_cpu() * worth(node.price.span) if node.tree.grouped else 0.0
        for state in (*box.fresh, *box.filtered):
            price, given = after[state]
            total += price.stem_cpu(given) * worth(given.span)
            here = min(price.held(given), price.rate(given) * worth(given.span))
            if state in filtered:
                old_price, old = before[state]
                total += old_price.rate(old) * change.filtering(state) * worth(given.span)
            elif not model.turnover(given.span):  # tables are neither old nor new
                here = price.held(given)
                total += _made_again(change, box, state)
            made += here
            held += here * price.tuple_bytes(given)
    for price, given, seconds, indexes in change.new_indexes():
        total += price.rate(given) * seconds * duration
        held += price.held(given) * indexes * model.costs.index_bytes
    rows = sum(price.rate(given) for price, given in change.leaves) * duration
    return Predicted(total + rows * model.costs.insert_row, duration, 0.0, rows, made, held)


@dataclass(frozen=True)
class _TrackSeconds:
    """How many seconds of full flow a parallel track is worth to tuples of a span."""

    box: Box
    lives: Sequence[float]
    duration: float

    def __call__(self, span: int) -> float:
        leaves = [span_of_state(leaf) for leaf in self.box.leaves]
        streams = [leaf for leaf in leaves if leaf & span and any(self.lives[s] for s in bits(leaf))]
        fills = max((self.lives[s] for s in bits(span)), default=0.0)
        return fills / max(1, len(streams)) + self.duration - fills
