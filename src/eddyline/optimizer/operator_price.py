"""The price of one join operator, for any tuples of its children and any marks (plan/tree.py).

A child *gives* tuples of a span that have passed some selections. If a part of the group-by was done below, one tuple
stands for several combinations; `share` is the number of tuples per combination. All sizes here are combinations
(`CostModel.bare`) times the selectivities of the passed selections, times the shares of the children.

Selections. An operator evaluates the selections that its span allows and that no operator below has evaluated, unless
it holds them back (`!`). Then its tuples have not passed them, and an operator above pays. Within an operator the
router puts a selection where it is best. The price does the same: each selection, in the order of tuples removed per
second, is evaluated after the probe where it adds least, and before that all its tuples take part in probes.

Grouping. An operator that groups (`+`) makes one tuple of all tuples of a packet that have the same group. If the N
live tuples fall into D groups of equal size, n of them fall into D * (1 - (1 - n / N) ** (N / D)) groups. n is the
number of tuples that one slice of the input makes, at most the largest packet. Grouping has a cost per tuple and a cost
per packet. Each result of the plan costs as much as a tuple that is grouped below: results go into the same group-by.
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
    """The tuples of one child of an operator."""

    span: int
    built: bool = False
    """Whether an operator makes the tuples, so that their SteM is an intermediate one."""
    passed: int = 0
    """The selections that its tuples have passed, as a bit mask."""
    share: float = 1.0
    """Tuples per combination."""
    weighted: bool = False
    """Whether its tuples have weights."""


class Spent(NamedTuple):
    """Seconds spent on the tuples of a span, if the tuples that started them are replaced once a second."""

    span: int
    seconds: float


class OperatorPrice:
    """The price of one operator over the tuples of its children."""

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
        """The live tuples of some children that have also passed the selections `here`."""
        passed, share = here, 1.0
        for child in children:
            passed |= child.passed
            share *= child.share
        return self.model.bare(sum(child.span for child in children)) * self.model.passing(passed) * share

    def size(self, child: ChildTuples) -> float:
        """Live tuples of a child."""
        return self.alive((child,))

    def rate(self, child: ChildTuples) -> float:
        """Tuples of a child per second."""
        return self.size(child) * self.model.turnover(child.span)

    def held(self, child: ChildTuples) -> float:
        """Tuples in the SteM of a child."""
        return self.size(child) * self.model.kept(child.span) if child.built else self.size(child)

    @cached_property
    def _made(self) -> float:
        """Live tuples that the operator makes, before they are grouped."""
        return self.alive(self.children, self._here)

    @cached_property
    def given(self) -> ChildTuples:
        """The tuples that the operator gives to the one above it."""
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
        """The tuples of a packet that the operator makes, and such packets per second."""
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
        """Seconds per second to build and release the tuples of a child."""
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
        """The best orders of its probes, assuming that each selection is evaluated as soon as possible and costs
        nothing."""
        model, sizes = self.model, [0.0]
        for number in range(1, 1 << len(self.children)):
            some = [child for at, child in enumerate(self.children) if number >> at & 1]
            span = sum(child.span for child in some)
            sizes.append(self.alive(some, self._here & model.inside(span) if span & (span - 1) else 0))
        held = [self.held(child) for child in self.children]
        return best_orders(model, [child.span for child in self.children], sizes, held)

    def order_seconds(self, start: int, order: Sequence[int]) -> list[Spent]:
        """Seconds for the tuples of child `start`, if all of them are replaced once a second; children are given by
        their spans. The seconds for selections come last."""
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
        """For each span, the share of tuples that go on: those that passed the selections there."""
        coming = list(going)
        """The share of tuples that arrive."""
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
        """The selections that are evaluated here, in the order of tuples removed per second."""
        found = [s for number, s in enumerate(self.model.workload.selections) if self._here >> number & 1]
        return sorted(found, key=lambda s: (s.selectivity - 1.0) / (s.seconds or 1e-30))

    def order_cpu(self, start: int, order: Sequence[int]) -> float:
        """Seconds per second for the tuples that a child starts."""
        return self.model.turnover(start) * sum(spent.seconds for spent in self.order_seconds(start, order))

    def selecting(self, orders: Mapping[int, Sequence[int]]) -> float:
        """Seconds per second spent on selections."""
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
        """Seconds to make all live tuples of the operator again, with the tuples of one child probing."""
        together = self._made * self.model.costs.group_tuple if self._grouped else 0.0
        return sum(spent.seconds for spent in self.order_seconds(start, order)) + together


def _left(tuples: float, groups: float, alive: float) -> float:
    """The number of groups of some of the live tuples, if all groups are equally large.

    >>> _left(10.0, 100.0, 100.0), round(_left(10.0, 1.0, 100.0), 3), round(_left(50.0, 25.0, 100.0), 3)
    (10.0, 1.0, 23.438)
    """
    alive = max(alive, tuples)
    return tuples if groups >= alive else groups * (1.0 - (1.0 - tuples / alive) ** (alive / groups))
