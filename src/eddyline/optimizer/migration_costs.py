"""Predicts the cost of a migration: the models of dissertation 12.3, adapted to the two strategies as built here.

Both strategies make the states that only the new plan has. *Moving state* makes them from live tuples. The children of
an operator of the new plan are built one after the other, the largest first. Only the tuples of the child that is built
last find all their matches, and tuples built before find none. So the work is that of the smallest leaf: for each step
of its order, the live tuples so far times the price of a probe, plus matches; then an insert for each tuple. Tuples
that arrive meanwhile are joined too, at the price of keeping the states up to date in the new plan, for as long as the
migration takes. In each second of event time the migration gets as much time as the running plan takes, and it moves at
least as many rows as arrive.

*Parallel track* runs the operators in which the plans differ on new rows, until the last old row has expired: that
takes the longest life of an involved row, plus lateness. New states begin empty. While windows of length W fill, tuples
with components of n leaves of a box flow at (t / W) ** (n - 1) of their full rate. So that time is worth W / n seconds
of full flow, and the rest of the time counts in full. For n = 2 these are the integrals of equation 12.6. Every row
also starts once more on the track, in packets as small as those of the running plan, which costs about as much as
building it.

If both plans have a state, but its tuples have passed more selections in the new plan, or have weights only there, the
state is *filtered*: the tuples of the old state pass the missing selections, and are grouped where the new plan groups.
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
    """The predicted cost of a migration: CPU seconds, its duration in seconds of event time, the longest time in
    seconds for which it holds results back, rows and tuples built again or on the track, tuples of new states, and
    bytes beside those of the running plan."""

    seconds: float
    duration: float
    longest: float
    rows: float
    tuples: float
    bytes: float

    def figures(self) -> Mapping[str, float]:
        """The fields by name."""
        return asdict(self)


@dataclass(frozen=True)
class PlanChange:
    """A change from one plan to another, with the current prices."""

    pricing: Pricing
    old: Tree
    new: Tree

    @cached_property
    def boxes(self) -> list[Box]:
        """The boxes in which the plans differ."""
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
        """The model behind the prices."""
        return self.pricing.model

    @property
    def fresh(self) -> list[int]:
        """The states that only the new plan has."""
        return [state for box in self.boxes for state in box.fresh]

    @property
    def filtered(self) -> list[int]:
        """The states that are made from those of the old plan."""
        return [state for box in self.boxes for state in box.filtered]

    @property
    def leaves(self) -> list[tuple[OperatorPrice, ChildTuples]]:
        """The states of the old plan from which the track is fed, each with the operator above it."""
        return [self.before.above[leaf] for leaf in {leaf for box in self.boxes for leaf in box.leaves}]

    @property
    def span(self) -> int:
        """The involved sources, as a bit mask."""
        return sum({1 << source for box in self.boxes for source in bits(span_of_state(box.top))})

    def new_indexes(self) -> Iterator[tuple[OperatorPrice, ChildTuples, float, int]]:
        """For each SteM that both plans have: the operator above it, its tuples, the seconds to insert a tuple into the
        indexes that only the new plan has, and the number of these indexes."""
        made, before = {*self.fresh, *self.filtered}, self.before.above
        for state, (price, given) in self.after.above.items():
            if state in before and state not in made:
                old, _ = before[state]
                keys = self.model.index_keys(given.span, price.span) - self.model.index_keys(given.span, old.span)
                hashed = sum(access == HASH for _, _, access in keys)
                yield price, given, self.model.insert_indexes(hashed, len(keys) - hashed), len(keys)

    def filtering(self, state: int) -> float:
        """Seconds to turn a tuple of the old plan into one of a filtered state, or to drop it."""
        (_, old), (_, new) = self.before.above[state], self.after.above[state]
        missing = new.passed & ~old.passed
        selections = enumerate(self.model.workload.selections)
        evaluated = sum(s.seconds for number, s in selections if missing >> number & 1)
        return evaluated + (self.model.costs.group_tuple if new.weighted and not old.weighted else 0.0)


def span_of_state(state: int) -> int:
    """The sources of a state (tree.state_of)."""
    return state if state > 0 else ~state


def moving_state(change: PlanChange, spare: float, pause: float | None) -> Predicted:
    """Predict moving state. `spare` are the CPU seconds that the running plan takes per second of event time. `pause`
    is how many seconds results may be held back at a time; None: the whole migration is done at once, before other
    work."""
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
    """Seconds to make a state from all live tuples: the smallest leaf probes once all others are built."""
    node, (above, given) = change.after.nodes[state], change.after.above[state]
    leaves = [span_of_state(leaf) for leaf in box.leaves]
    last = min((leaf for leaf in leaves if leaf & given.span), key=change.model.live)
    start = next(child.span for child in node.price.children if child.span & last)
    return node.price.make_again(start, node.orders[start]) + above.size(given) * above.insert(given)


def parallel_track(change: PlanChange, lives: Sequence[float], lateness: float) -> Predicted:
    """Predict a parallel track. `lives` are the seconds that a row of each source lives, 0 for a table. `lateness` is
    how many seconds later the watermark confirms that a row has expired."""
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
    """How many seconds of full flow a parallel track is worth for tuples of a span."""

    box: Box
    lives: Sequence[float]
    duration: float

    def __call__(self, span: int) -> float:
        leaves = [span_of_state(leaf) for leaf in self.box.leaves]
        streams = [leaf for leaf in leaves if leaf & span and any(self.lives[s] for s in bits(leaf))]
        fills = max((self.lives[s] for s in bits(span)), default=0.0)
        return fills / max(1, len(streams)) + self.duration - fills
