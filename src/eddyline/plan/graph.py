"""The join graph: every conjunct of WHERE in the place where it will be decided.

A conjunct is one of: a constant; a *filter*, cheap and over one source, applied before the row is built; a *time
bound*, checked by every probe; an *equality* between two sources, an edge that an index serves; a *range* between two
sources, which a sorted index serves; any other cheap predicate over several sources, checked by the probe that
completes it; or a *selection*, one that calls a user function, a module of the eddy. No conjunct is in two places
except that equalities are closed transitively: the derived ones are implied, so using or ignoring them changes no
result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from eddyline.bound.evaluate import ErrorCount, mask
from eddyline.bound.expr import Call, Expr, Literal, is_expensive, sources_of
from eddyline.bound.functions import TypeMismatch, call
from eddyline.bound.model import BoundQuery
from eddyline.bound.types import physical
from eddyline.plan.bounds import Bounds, Difference, differences_in, time_bounds
from eddyline.state.keys import has_order

LARGEST_OFFSET = 1 << 60
"""Larger constants are left in place, so that sums of offsets stay within 64 bits."""

LARGEST_CLASS = 64
"""Key classes with more columns than this are not closed transitively."""


@dataclass(frozen=True)
class Equality:
    """left_expr = right_expr, each over one source; types are equal."""

    left: int
    left_expr: Expr
    right: int
    right_expr: Expr
    derived: bool = False

    def seen_from(self, source: int) -> tuple[Expr, int, Expr]:
        """(the side of `source`, the other source, its side)."""
        if source == self.left:
            return self.left_expr, self.right, self.right_expr
        return self.right_expr, self.left, self.left_expr


@dataclass(frozen=True)
class Range:
    """left_key + left_offset op right_key + right_offset with op one of < <= > >=, each key over one source.

    Constants are taken out of the sides so that both limits of a band (`x BETWEEN y - 3 AND y + 3`) fall on one key of
    either source. Where a constant was taken out the keys only say which rows *may* satisfy the predicate (`y - 3` may
    overflow, and then it is NULL), so it is still checked: `exact` is False.
    """

    left: int
    left_key: Expr
    left_offset: int
    op: str
    right: int
    right_key: Expr
    right_offset: int
    predicate: Expr

    @property
    def exact(self) -> bool:
        """Whether the keys decide the predicate."""
        return isinstance(self.predicate, Call) and self.predicate.args == (self.left_key, self.right_key)

    def seen_from(self, source: int) -> tuple[Expr, str, int, Expr, int]:
        """(key, op, other source, its key, offset), read as `key op other key + offset` with `source` on the left."""
        if source == self.left:
            return self.left_key, self.op, self.right, self.right_key, self.right_offset - self.left_offset
        turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[self.op]
        return self.right_key, turned, self.left, self.left_key, self.left_offset - self.right_offset


@dataclass(frozen=True)
class JoinGraph:
    """The conjuncts of WHERE, sorted by the part of the engine that decides them."""

    filters: tuple[tuple[Expr, ...], ...]
    equalities: tuple[Equality, ...]
    ranges: tuple[Range, ...]
    residuals: tuple[Expr, ...]
    selections: tuple[Expr, ...]
    bounds: Bounds
    time_pairs: frozenset[frozenset[int]]
    """Pairs of sources with a time bound of their own in WHERE."""
    never: bool
    """A constant conjunct is not true: no row can result."""


def join_graph(query: BoundQuery) -> JoinGraph:
    """Sort the conjuncts of a query."""
    filters: list[list[Expr]] = [[] for _ in query.sources]
    equalities: list[Equality] = []
    ranges: list[Range] = []
    residuals: list[Expr] = []
    selections: list[Expr] = []
    differences: list[Difference] = []
    never = False
    for predicate in _conjuncts(query):
        sources = sorted(sources_of(predicate))
        bounds = differences_in(predicate, query)
        if not sources:
            never = never or not mask(predicate, {}, 1, ErrorCount())[0]
        elif is_expensive(predicate):
            selections.append(predicate)
        elif len(sources) == 1:
            filters[sources[0]].append(predicate)
        elif bounds is not None:
            differences += bounds
        elif (edge := _between_two(predicate)) is not None:
            left, right = edge
            assert isinstance(predicate, Call)
            (left_expr, right_expr), op = predicate.args, predicate.name
            if op == "=":
                equalities.append(Equality(left, left_expr, right, right_expr))
            elif op in ("<", "<=", ">", ">=") and has_order(physical(left_expr.type)):
                ranges.append(
                    Range(left, *_key_and_offset(left_expr), op, right, *_key_and_offset(right_expr), predicate)
                )
            else:
                residuals.append(predicate)
        else:
            residuals.append(predicate)
    parts = _components(len(query.sources), equalities)
    residuals += [r.predicate for r in ranges if parts[r.left] == parts[r.right]]
    ranges = [r for r in ranges if parts[r.left] != parts[r.right]]
    return JoinGraph(
        filters=tuple(tuple(f) for f in filters),
        equalities=(*equalities, *_closure(equalities)),
        ranges=tuple(ranges),
        residuals=tuple(residuals),
        selections=tuple(selections),
        bounds=time_bounds(query, differences),
        time_pairs=frozenset(frozenset((i, j)) for i, j, _ in differences),
        never=never,
    )


def _conjuncts(query: BoundQuery) -> list[Expr]:
    """The predicates; a BETWEEN over several sources that is no time bound becomes its two comparisons."""
    conjuncts: list[Expr] = []
    for predicate in query.predicates:
        several = len(sources_of(predicate)) > 1 and not is_expensive(predicate)
        split = isinstance(predicate, Call) and predicate.name == "between" and several
        halves = _halves(predicate) if split and differences_in(predicate, query) is None else None
        conjuncts += halves or [predicate]
    return conjuncts


def _halves(predicate: Expr) -> list[Expr] | None:
    """x BETWEEN low AND high as two comparisons, where they can be written."""
    assert isinstance(predicate, Call)
    x, low, high = predicate.args
    try:
        return [call(">=", [x, low]), call("<=", [x, high])]
    except TypeMismatch:
        return None


def _between_two(predicate: Expr) -> tuple[int, int] | None:
    """The two sources of a comparison whose sides each read one."""
    if not isinstance(predicate, Call) or len(predicate.args) != 2:
        return None
    left, right = (sources_of(arg) for arg in predicate.args)
    comparable = predicate.name in ("=", "<", "<=", ">", ">=") and physical(predicate.args[0].type) == physical(
        predicate.args[1].type
    )
    if not comparable or len(left) != 1 or len(right) != 1 or left == right:
        return None
    return next(iter(left)), next(iter(right))


def _key_and_offset(expr: Expr) -> tuple[Expr, int]:
    """Take integer constants (or intervals, from timestamps) out of a sum, and casts that change no value."""
    if isinstance(expr, Call) and expr.name == "cast" and _is_whole(expr.type) and _is_whole(expr.args[0].type):
        wider = expr.type.bit_width >= expr.args[0].type.bit_width
        return _key_and_offset(expr.args[0]) if wider else (expr, 0)
    if isinstance(expr, Call) and expr.name in ("+", "-") and len(expr.args) == 2 and _is_whole(expr.type):
        base, constant = expr.args
        if isinstance(base, Literal) and expr.name == "+":
            base, constant = constant, base
        while isinstance(constant, Call) and constant.name == "cast" and _is_whole(constant.type):
            constant = constant.args[0]
        if isinstance(constant, Literal) and isinstance(constant.value, int) and _is_whole(base.type):
            by = constant.value if expr.name == "+" else -constant.value
            key, offset = _key_and_offset(base)
            return (key, offset + by) if abs(offset + by) < LARGEST_OFFSET else (expr, 0)
    return expr, 0


def _is_whole(type: pa.DataType) -> bool:
    """Types whose order key is the value itself."""
    return bool(pa.types.is_signed_integer(type) or (pa.types.is_timestamp(type) and type.unit == "us"))


def _components(sources: int, equalities: Sequence[Equality]) -> list[int]:
    """The component of each source in the graph of equalities. Within a component a probe by key is always possible,
    and preferred, so an index for a range between two of its sources would never be used: such a range is checked
    instead."""
    part = list(range(sources))
    for e in equalities:
        old, new = part[e.left], part[e.right]
        part = [new if p == old else p for p in part]
    return part


def _closure(equalities: Sequence[Equality]) -> list[Equality]:
    """Equalities implied by those given: a = b and b = c give a = c, where all have one type."""
    classes: list[tuple[pa.DataType, dict[tuple[int, Expr], None]]] = []
    for e in equalities:
        nodes = {(e.left, e.left_expr): None, (e.right, e.right_expr): None}
        type = physical(e.left_expr.type)
        for old in [c for c in classes if c[0] == type and c[1].keys() & nodes.keys()]:
            classes.remove(old)
            nodes = {**old[1], **nodes}
        classes.append((type, nodes))
    given = {frozenset(((e.left, e.left_expr), (e.right, e.right_expr))) for e in equalities}
    derived = []
    for _, found in classes:
        ordered = sorted(found, key=lambda node: node[0]) if len(found) <= LARGEST_CLASS else []
        for at, (left, left_expr) in enumerate(ordered):
            for right, right_expr in ordered[at + 1 :]:
                if left != right and frozenset(((left, left_expr), (right, right_expr))) not in given:
                    derived.append(Equality(left, left_expr, right, right_expr, derived=True))
    return derived
