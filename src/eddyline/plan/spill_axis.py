"""The axis whose partition groups leave memory, and come back (spill/).

One axis of all candidates (partition.py) serves for the whole query. The rows of sources that the axis does not place
have groups too, so that these rows are in an order on disk by which they can be found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eddyline.bound.expr import Expr
from eddyline.plan.graph import JoinGraph
from eddyline.plan.partition import Axis, choices, of_stream
from eddyline.plan.plan import Plan
from eddyline.plan.tree import Tree


@dataclass(frozen=True)
class Follow:
    """A source that follows: in results its key `on` equals the key `partner_on` of a source before it. Both are None
    if there is no such key."""

    source: int
    on: Expr | None
    partner: int
    partner_on: Expr | None


@dataclass(frozen=True)
class SpillAxis(Axis):
    """An axis whose `size` groups leave memory and come back. The sources that it places *lead*: their rows in a result
    have the same group. The others *follow*, in this order: each has groups of its own, by the key with which it is
    joined, or by the whole row; their numbers come after those of the axis."""

    follow: tuple[Follow, ...] = ()

    def first(self, source: int) -> int:
        """The number of the first group of a source."""
        if source < len(self.keys) and self.has(source):
            return 0
        return self.size * (1 + sum(not self.has(other) for other in range(source)))

    def sources(self, group: int) -> list[int]:
        """The sources that have rows in a group."""
        firsts = map(self.first, range(len(self.keys)))
        return [source for source, first in enumerate(firsts) if first <= group < first + self.size]

    def key(self, source: int) -> Expr | None:
        """The key by which rows of a source have groups; None if it is the whole row."""
        return next((follow.on for follow in self.follow if follow.source == source), self.keys[source])

    def places_alike(self, one: int, other: int) -> bool:
        """Whether the rows of two sources of the same stream are in the same order of groups."""
        mine, theirs = self.key(one), self.key(other)
        if mine is None or theirs is None:
            return one == other
        return of_stream(mine) == of_stream(theirs)

    @property
    def count(self) -> int:
        """The number of all groups."""
        return self.first(len(self.keys))

    @property
    def tree(self) -> Tree:
        """A plan that joins the sources that lead, then one after the other those that follow."""
        leading = tuple(source for source in range(len(self.keys)) if self.has(source))
        node: Tree | int = Tree(leading) if len(leading) > 1 else leading[0]
        for follow in self.follow:
            node = Tree((node, follow.source))
        assert isinstance(node, Tree)
        return node


def spill_axis(plan: Plan, groups: int) -> SpillAxis | None:
    """The axis that places the most streams, then the most tables, by key if possible. The query alone decides, so it
    is the same for any number of slots. None without a join, and where a table is asked: it has rows that are not in
    the order of any key."""
    if len(plan.query.sources) < 2 or plan.query.asks:
        return None

    def placed(axis: Axis) -> tuple[int, int, bool]:
        tables = [s.stream.is_table for source, s in enumerate(plan.query.sources) if axis.has(source)]
        return tables.count(False), tables.count(True), axis.row is None

    axis = max((axis for (axis,) in choices(plan, 2)), key=placed)
    return SpillAxis(groups, axis.keys, axis.row, tuple(_following(plan.graph, axis)))


def _following(graph: JoinGraph, axis: Axis) -> Iterator[Follow]:
    """The sources that an axis does not place: first those that a key connects with the ones before them."""
    before = [source for source in range(len(axis.keys)) if axis.has(source)]
    left = [source for source in range(len(axis.keys)) if not axis.has(source)]
    while left:
        ends = ((source, e) for source in left for e in graph.equalities if source in (e.left, e.right))
        sides = ((source, *e.seen_from(source)) for source, e in ends)
        keyed = (Follow(*side) for side in sides if side[2] in before)
        found = next(keyed, Follow(left[0], None, before[0], None))
        left.remove(found.source)
        before.append(found.source)
        yield found
