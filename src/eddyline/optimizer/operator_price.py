"""What one join operator costs, whatever its children give and whatever marks it has (plan/tree.py).

A child *gives* tuples of a span that have passed some selections. If a part of the group-by was done below, a tuple
stands for several combinations: `share` is tuples for one combination. All sizes here are combinations
(`CostModel.bare`) times the shares of the selections that were passed, times the shares of the children.

Selections. An operator evaluates those that its span allows and that none below it did, unless it holds them back
(`!`); then it gives tuples that have not passed them, and an operator above pays. Within an operator the router puts a
selection where it is best. So does the price: each selection, those first that remove most for their seconds, is
evaluated after that probe where it adds least, and until then all its tuples are probed with.

Grouping. An operator that groups (`+`) makes one tuple of those of a packet that nothing tells apart. If the N tuples
that are alive fall into D groups of the same size, n of them fall into D * (1 - (1 - n / N) ** (N / D)). n is what one
slice of the input makes, and at most the largest packet. That costs something for each tuple and something for each
packet. The results of the plan cost as much for each tuple as those that are put together below: they go into the same
group-by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, prod
from typing import NamedTuple

from eddyline.optimizer.best_ordering import best_orders
from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.plans import Ordered
from eddyline.optimizer.workload import Selection


@dataclass(frozen=True)
class ChildTuples:
    """What a child gives to the operator above it."""

    span: int
    built: bool = False
    """Whether an operator gives it, so that its SteM is an intermediate one."""
    passed: int = 0
    """The selections that its tuples have passed, as a bit mask."""
    share: float = 1.0
    """Tuples for one combination."""
    weighted: bool = False
    """Whether its tuples have weights."""


class Spent(NamedTuple):
    """Seconds that are spent on the tuples of a span, if what started them is replaced once a second."""

    span: int
    seconds: float


class OperatorPrice:
    """One operator over what its children give."""

    def __init__(
        self, model: CostModel, children: Sequence[ChildTuples], late: bool = False, grouped: bool = False
    ) -> None:
        self.model, self.children, self._grouped = model, children, grouped
        self.span = sum(child.span for child in children)
        below = 0
        for child in children:
            below |= child.passed
        self._here = 0 if late else model.inside(self.span) & ~below
        """The selections that are evaluated here, as a bit mask."""
        self._done = below | self._here
        self._by_span = {child.span: child for child in children}

    # Sizes

    def alive(self, children: Sequence[ChildTuples], here: int = 0) -> float:
        """Tuples of some children that are alive, of those that passed the selections `here`."""
        passed, share = here, 1.0
        for child in children:
            passed |= child.passed
            share *= child.share
        return self.model.bare(sum(child.span for child in children)) * self.model.passing(passed) * share

    def size(self, child: ChildTuples) -> float:
        """Tuples of a child that are alive."""
        return self.alive((child,))

    def rate(self, child: ChildTuples) -> float:
        """Tuples of a child per second."""
        return self.size(child) * self.model.turnover(child.span)

    def held(self, child: ChildTuples) -> float:
        """Tuples in the SteM of a child."""
        return self.size(child) * self.model.kept(child.span) if child.built else self.size(child)

    @cached_property
    def _made(self) -> float:
        """Tuples that are alive of what it makes, before they are put together."""
        return self.alive(self.children, self._here)

    @cached_property
    def given(self) -> ChildTuples:
        """What it gives itself."""
        share = prod(child.share for child in self.children)
        weighted = self._grouped or any(child.weighted for child in self.children)
        if self._grouped:
            tuples, _ = self._packets
            share *= _left(tuples, self._groups, self._made) / tuples if tuples else 1.0
        return ChildTuples(self.span, True, self._done, share, weighted)

    @cached_property
    def _groups(self) -> float:
        assert self.model.workload.grouping is not None
        return self.model.workload.grouping.groups(self.span, self._done)

    @cached_property
    def _packets(self) -> tuple[float, float]:
        """Tuples of a packet of what it makes, and packets per second."""
        load, rate = self.model.workload.grouping, self._made * self.model.turnover(self.span)
        assert load is not None
        starts = load.slices * sum(self.model.turnover(child.span) > 0.0 for child in self.children)
        calls = max(min(starts, rate), rate / load.packet)
        return (rate / calls if calls else 0.0), calls

    # SteMs

    def insert(self, child: ChildTuples) -> float:
        """Seconds to build a tuple of a child."""
        costs, columns = self.model.costs, child.span.bit_count() + self._carried(child) if child.built else 0
        indexes = self.model.insert_indexes(*self.model.indexes(child.span, self.span))
        return costs.insert_row + indexes + columns * costs.insert_component

    def stem_cpu(self, child: ChildTuples) -> float:
        """Seconds per second to build what comes from a child, and to forget it."""
        return self.rate(child) * (self.insert(child) + self.model.costs.delete_row)

    def tuple_bytes(self, child: ChildTuples) -> float:
        """Bytes of a tuple of a child in its SteM."""
        costs, indexes = self.model.costs, sum(self.model.indexes(child.span, self.span))
        if child.built:
            columns = child.span.bit_count() + 1 + indexes + self._carried(child)
            return costs.component_bytes * columns + costs.index_bytes * indexes
        return self.model.tuple_bytes(child.span, self.span)

    def _carried(self, child: ChildTuples) -> int:
        load = self.model.workload.grouping
        return load.columns if child.weighted and load is not None else 0

    # Orders

    def best_orders(self) -> Ordered:
        """The best orders of its probes, if each selection is evaluated as soon as it can be, for nothing."""
        model, sizes = self.model, [0.0]
        for number in range(1, 1 << len(self.children)):
            some = [child for at, child in enumerate(self.children) if number >> at & 1]
            span = sum(child.span for child in some)
            sizes.append(self.alive(some, self._here & model.inside(span) if span & (span - 1) else 0))
        held = [self.held(child) for child in self.children]
        return best_orders(model, [child.span for child in self.children], sizes, held)

    def order_seconds(self, start: int, order: Sequence[int]) -> list[Spent]:
        """Seconds for the tuples of a child, given by its span as the others are, if all of it is replaced once a
        second; those for selections come last."""
        model, costs = self.model, self.model.costs
        sequence = [self._by_span[start], *(self._by_span[span] for span in order)]
        spans, sizes, probes = [start], [self.size(sequence[0])], list[float]()
        for number, child in enumerate(sequence[1:], 1):
            access = model.link(spans[-1], child.span)[1]
            listed = costs.probe_list_row * self.held(child)
            probes.append((costs.probe_hash, costs.probe_range, listed)[access])
            spans.append(spans[-1] | child.span)
            sizes.append(self.alive(sequence[: number + 1]))
        probes.append(0.0)
        going = [1.0] * len(spans)
        """Of the tuples of each span the share that goes on: those that passed the selections there."""
        coming = list(going)
        """The share that comes."""
        selected: list[Spent] = []
        for selection in self._selections():
            place, least, saved = 0, inf, 0.0
            for at in range(len(spans) - 1, -1, -1):
                if selection.span & ~spans[at]:
                    break
                saved += (1.0 - selection.selectivity) * going[at] * sizes[at] * probes[at]
                adds = going[at] * sizes[at] * selection.seconds - saved
                if adds < least:
                    place, least = at, adds
                saved += (1.0 - selection.selectivity) * coming[at] * sizes[at] * costs.match
            selected.append(Spent(spans[place], going[place] * sizes[place] * selection.seconds))
            for at in range(place, len(spans)):
                going[at] *= selection.selectivity
                coming[at] *= selection.selectivity if at > place else 1.0
        spent = [Spent(span, part * size * probe)
                 for span, part, size, probe in zip(spans, going, sizes, probes, strict=True)]  # fmt: skip
        matches = zip(spans[1:], coming[1:], sizes[1:], strict=True)
        spent += [Spent(span, part * size * costs.match) for span, part, size in matches]
        return [*spent, *selected]

    def _selections(self) -> list[Selection]:
        """Those that are evaluated here, the one that removes most for its seconds first."""
        found = [s for number, s in enumerate(self.model.workload.selections) if self._here >> number & 1]
        return sorted(found, key=lambda s: (s.selectivity - 1.0) / (s.seconds or 1e-30))

    def order_cpu(self, start: int, order: Sequence[int]) -> float:
        """Seconds per second for the tuples that a child begins."""
        return self.model.turnover(start) * sum(spent.seconds for spent in self.order_seconds(start, order))

    def selecting(self, orders: Mapping[int, Sequence[int]]) -> float:
        """Seconds per second that go to selections."""
        evaluated = self._here.bit_count()
        if not evaluated:
            return 0.0
        return sum(
            self.model.turnover(start) * sum(spent.seconds for spent in self.order_seconds(start, order)[-evaluated:])
            for start, order in orders.items()
        )

    # In all

    def grouping_cpu(self) -> float:
        """Seconds per second to put tuples into groups: before the next join, or at the end of the plan."""
        costs, rate = self.model.costs, self._made * self.model.turnover(self.span)
        if self._grouped:
            return rate * costs.group_tuple + self._packets[1] * costs.group_packet
        is_top = self.span == self.model.whole
        return rate * costs.group_tuple if is_top and self.model.workload.grouping is not None else 0.0

    def make_again(self, start: int, order: Sequence[int]) -> float:
        """Seconds to make all that is alive of what it gives, with the tuples of one child probing."""
        together = self._made * self.model.costs.group_tuple if self._grouped else 0.0
        return sum(spent.seconds for spent in self.order_seconds(start, order)) + together


def _left(tuples: float, groups: float, alive: float) -> float:
    """How many groups some tuples of all that are alive fall into, if all groups have the same number of these.

    >>> _left(10.0, 100.0, 100.0), round(_left(10.0, 1.0, 100.0), 3), round(_left(50.0, 25.0, 100.0), 3)
    (10.0, 1.0, 23.438)
    """
    alive = max(alive, tuples)
    return tuples if groups >= alive else groups * (1.0 - (1.0 - tuples / alive) ** (alive / groups))
