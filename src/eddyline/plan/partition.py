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

The *group* of a key is part of durable formats and must not change: `mix(encode(key)) mod groups`, with `encode` of
state/keys.py on the value as WHERE compares it (equal keys of different types are cast to one type) and `mix` the
finalizer of SplitMix64; the code of a whole row is the `combine` of the codes of its columns, with one constant for
NULL. A map for each axis (`Places`) gives the place of each group. It is separate because it may change while the
groups do not.
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
from eddyline.bound.types import is_number, physical
from eddyline.kernels import groups as kernels
from eddyline.plan.graph import JoinGraph
from eddyline.plan.plan import Plan
from eddyline.plan.tree import Tree
from eddyline.state.keys import combine, encode, is_exact, without_null

GROUPS = 256

Places = tuple[NDArray[np.int64], ...]
"""For each axis the place of each group."""

Class = Mapping[int, Expr]
"""Expressions that are equal in every result, by source."""

_NULL = np.int64(0x2545F4914F6CDD1D)


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


# Key classes


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


# Groups


def key_groups(values: pa.Array, groups: int) -> NDArray[np.int64]:
    """The group of each key; meaningless for a NULL."""
    return code_groups(encode(values), groups)


def rows_among(codes: NDArray[np.int64], asked: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rows with groups that are asked for, given the codes of their keys."""
    found = np.empty(codes.size + 1, np.int64)
    return found[: kernels.among(codes, asked.size, asked, found)]


CODES = 1 << 32
"""The number of codes within a group."""


def within_group(codes: NDArray[np.int64], groups: int) -> NDArray[np.uint32]:
    """Codes of the keys of one group, of their groups among CODES times as many."""
    return (codes // groups).astype(np.uint32)


def row_groups(
    columns: Sequence[pa.Array], times: NDArray[np.int64] | None, rows: int, groups: int
) -> NDArray[np.int64]:
    """The group of each row, computed from its time and those columns that have a code: equal rows have the same
    group."""
    codes = row_codes(columns, times)
    return np.zeros(rows, np.int64) if codes is None else code_groups(codes, groups)


def row_codes(columns: Sequence[pa.Array], times: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    """The code of each row, of its time and those columns that have a code; None if there is none."""
    parts = [] if times is None else [times]
    for column in columns:
        if _has_code(column.type):
            valid = without_null([column])
            codes = encode(column)
            parts.append(codes if valid is None else np.where(valid, codes, _NULL))
    return combine(parts) if parts else None


def _has_code(type: pa.DataType) -> bool:
    known, t = physical(type), pa.types
    if t.is_interval(known) or t.is_null(known):
        return False
    return is_exact(known) or bool(t.is_decimal(known) or t.is_string(known) or t.is_binary(known))


def code_groups(codes: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """The group of each code."""
    found = np.empty(codes.size, np.int64)
    kernels.mixed(codes, groups, found)
    return found
