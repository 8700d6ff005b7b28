"""Which rows of which source go to which slots.

Slots form a grid of one or two *axes*. Along an axis each row of a source either has one place, given by a key or by
the whole row, or goes everywhere. Each result is made in exactly one slot, because along each axis

- the sources that are placed by a key have keys of one *class*: WHERE equates them, so in a result they are equal and
  have one place; or one source alone is placed by its row;
- the others are everywhere, so at that place too; and at least one source has a place, so nowhere else.

A table that is asked has rows in the slots that asked for them. So at least one other source has a place.

The choice of axes affects the cost only: the rows that are shipped and stored, computed from the estimated rows of each
stream (equal for all if there is no estimate). A row with a NULL in its key joins with nothing and has no place. All
rows of a source with a ROWS window are shipped to every slot, because each slot must count them, but a slot builds only
the rows whose place it is.

Each key has a partition group (partition_groups.py), which never changes. A map for each axis (`Places`) gives the
place of each group, and may change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.expr import Call, Expr, Literal, of_source
from eddyline.bound.model import BoundQuery, WindowKind
from eddyline.bound.types import is_number
from eddyline.plan.graph import JoinGraph
from eddyline.plan.plan import Plan

GROUPS = 256

Places = tuple[NDArray[np.int64], ...]
"""For each axis the place of each group."""

Class = Mapping[int, Expr]
"""Expressions that are equal in every result, by source."""


@dataclass(frozen=True)
class Axis:
    """An axis with `size` places. `keys` has by source the key that places its rows; `row` is a source that is placed
    by its whole row."""

    size: int
    keys: tuple[Expr | None, ...]
    row: int | None = None

    def has(self, source: int) -> bool:
        """Whether each row of the source has one place along this axis."""
        return self.keys[source] is not None or self.row == source

    def places_alike(self, one: int, other: int) -> bool:
        """Whether two sources of the same stream have each row at the same place."""
        return _way(self, one) == _way(self, other)


@dataclass(frozen=True)
class PartitionEstimate:
    """Rows read of all streams, shipped to slots, and built by them."""

    read: float
    shipped: float
    stored: float


@dataclass(frozen=True)
class Partitioning:
    """The axes of a query's slots; none if there is only one. Slots are numbered along the last axis first."""

    slots: int
    groups: int
    axes: tuple[Axis, ...]
    estimate: PartitionEstimate

    def copies(self, source: int) -> int:
        """How many slots build a row of the source."""
        return _copies(self.axes, source)

    def coordinates(self, slot: int) -> tuple[int, ...]:
        """The place of a slot along each axis."""
        found: list[int] = []
        for axis in reversed(self.axes):
            slot, place = divmod(slot, axis.size)
            found.insert(0, place)
        return tuple(found)

    def places(self) -> Places:
        """The initial map: groups spread evenly over the places, neighbouring groups together."""
        groups = np.arange(self.groups)
        return tuple(groups * axis.size // self.groups for axis in self.axes)

    def is_along(self, axis: Axis) -> bool:
        """Whether slots have rows by the keys of an axis, and by nothing else."""
        return len(self.axes) == 1 and axis.row is None and self.axes[0].keys == axis.keys

    def keeps_groups_whole(self, query: BoundQuery) -> bool:
        """Whether all combinations of one group of GROUP BY are made in one slot, because along each axis the keys of
        GROUP BY determine the place. (True as long as no partition group moves while aggregates are held.)"""
        keys = query.group.keys if query.group is not None else ()
        return all(any(key is not None and _told(key, keys) for key in axis.keys) for axis in self.axes)


def partition(plan: Plan, slots: int, groups: int = GROUPS, rows: Mapping[str, float] | None = None) -> Partitioning:
    """The partitioning that ships and stores the fewest rows; `rows` are estimates by stream."""
    size = {s.stream.name: float((rows or {}).get(s.stream.name, 1.0)) for s in plan.query.sources}
    if slots == 1:
        return Partitioning(1, groups, (), _estimate(plan.query, (), 1, size))

    def cost(axes: tuple[Axis, ...]) -> tuple[float, int, int]:
        estimate = _estimate(plan.query, axes, slots, size)
        return estimate.shipped + estimate.stored, len(axes), sum(axis.row is not None for axis in axes)

    axes = min(choices(plan, slots), key=cost)
    return Partitioning(slots, groups, axes, _estimate(plan.query, axes, slots, size))


def partition_along(plan: Plan, axis: Axis, slots: int, groups: int = GROUPS) -> Partitioning:
    """The partitioning with another number of slots, at least two, along one axis."""
    axes = (replace(axis, size=slots),)
    rows = {source.stream.name: 1.0 for source in plan.query.sources}
    return Partitioning(slots, groups, axes, _estimate(plan.query, axes, slots, rows))


def choices(plan: Plan, slots: int) -> Iterator[tuple[Axis, ...]]:
    """All candidates: each axis alone, and each pair of axes as a grid."""
    sources = range(len(plan.query.sources))
    classes = [c for c in key_classes(plan.graph) if _spreads(c, plan.graph) and _places_partial(c, plan)]
    kinds = [Axis(1, tuple(c.get(s) for s in sources)) for c in classes]
    kinds += [Axis(1, tuple(None for _ in sources), row) for row in sources]
    asked = [source.stream.is_asked for source in plan.query.sources]
    kinds = [axis for axis in kinds if any(axis.has(s) and not asked[s] for s in sources)]
    for axis in kinds:
        yield (replace(axis, size=slots),)
    for first, second in combinations(kinds, 2):
        for size in range(2, slots // 2 + 1):
            if slots % size == 0:
                yield replace(first, size=size), replace(second, size=slots // size)


def _estimate(query: BoundQuery, axes: tuple[Axis, ...], slots: int, rows: Mapping[str, float]) -> PartitionEstimate:
    shipped = stored = 0.0
    for stream, count in rows.items():
        mine = [s for s, item in enumerate(query.sources) if item.stream.name == stream]
        ways = {tuple(_way(axis, s) for axis in axes): _copies(axes, s) for s in mine}
        counted = any(query.sources[s].window.kind is WindowKind.ROWS for s in mine)
        shipped += count * (slots if counted else min(slots, sum(ways.values())))
        stored += count * sum(_copies(axes, s) for s in mine)
    return PartitionEstimate(sum(rows.values()), shipped, stored)


def _copies(axes: Sequence[Axis], source: int) -> int:
    copies = 1
    for axis in axes:
        copies *= 1 if axis.has(source) else axis.size
    return copies


def _way(axis: Axis, source: int) -> object:
    """A value that is equal for two aliases of one stream exactly if they are placed in the same way."""
    key = axis.keys[source]
    return source if axis.row == source else None if key is None else of_stream(key)


def of_stream(expr: Expr) -> Expr:
    """The expression over the stream of a source, whichever alias it has: as one over source 0."""
    return of_source(expr, 0)


def key_classes(graph: JoinGraph) -> list[Class]:
    """The classes of expressions that WHERE equates, transitively. Where a class is compared with a wider number type
    (a.i = b.i AND b.i = c.f), all its expressions also belong to the wider class, cast to its type: equal numbers stay
    equal when they are cast."""
    classes: list[dict[tuple[int, Expr], None]] = []
    for e in graph.equalities:
        nodes = {(e.left, e.left_expr): None, (e.right, e.right_expr): None}
        for old in [c for c in classes if c.keys() & nodes.keys()]:
            classes.remove(old)
            nodes = {**old, **nodes}
        classes.append(nodes)
    for _ in classes:  # a chain of casts is at most this long
        for wide in classes:
            for source, expr in list(wide):
                if not isinstance(expr, Call) or (narrow := _cast_from(expr)) is None:
                    continue
                for other in [c for c in classes if c is not wide and (source, narrow) in c]:
                    present = {s for s, _ in wide}
                    wide |= {(s, replace(expr, args=(e,))): None for s, e in other if s not in present}
    return [dict(reversed(found)) for found in classes]


def _cast_from(expr: Expr) -> Expr | None:
    """The expression that a cast of a number to a number was applied to, None for anything else."""
    if isinstance(expr, Call) and expr.name == "cast" and is_number(expr.type) and is_number(expr.args[0].type):
        return expr.args[0]
    return None


def _spreads(keys: Class, graph: JoinGraph) -> bool:
    """Whether keys can have many values: not booleans, and not a value that WHERE fixes."""
    for source, key in keys.items():
        if pa.types.is_boolean(key.type):
            return False
        for f in graph.filters[source]:
            if isinstance(f, Call) and f.name == "=" and key in f.args and any(isinstance(a, Literal) for a in f.args):
                return False
    return True


def _places_partial(keys: Class, plan: Plan) -> bool:
    """Whether keys place the rows of every partial result alike: those that are not asked for have equal keys also
    without the rows of tables."""
    equal = {frozenset(((e.left, e.left_expr), (e.right, e.right_expr))) for e in plan.graph.equalities}
    given = [(source, key) for source, key in keys.items() if plan.first >> source & 1]
    return all(frozenset(pair) in equal for pair in combinations(given, 2))


def _told(key: Expr, known: Sequence[Expr]) -> bool:
    """Whether the value of a key follows from the values of these expressions."""
    narrow = _cast_from(key)
    return key in known or (narrow is not None and _told(narrow, known))
