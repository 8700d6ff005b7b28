"""A plan as data: for each signature the steps that are allowed next, and what each SteM must keep for them.

A signature is (span, done): the sources a tuple has a component of, and the selections it has passed, as bit masks.
Steps are found when a signature is first met, so twenty sources do not mean 2**20 entries. The routing constraints
hold by construction: a step never probes a source the span has, nor repeats a selection (BoundedRepetition); a packet
exists only after its rows were built (BuildFirst); SteMs have all rows that came, so no tuple is bounced back
(BounceBack, ProbeCompletion); and which step is taken never changes the result, because every step applies each
predicate that its span newly completes.
"""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.plan.graph import Equality, JoinGraph, join_graph
from eddyline.query.expr import Column, Expr, columns_of, sources_of
from eddyline.query.model import Query, WindowKind
from eddyline.query.types import physical
from eddyline.state.keys import is_exact
from eddyline.state.stem import Layout

Signature = tuple[int, int]


@dataclass(frozen=True)
class KeyAccess:
    """Look up the target's index `on` with the key `partner_on` of a component the tuple has."""

    on: tuple[Expr, ...]
    partner: int
    partner_on: tuple[Expr, ...]


@dataclass(frozen=True)
class RangeAccess:
    """Look up the target's order key: each limit is (op, partner, its key, offset), read as `on op key + offset`."""

    on: Expr
    limits: tuple[tuple[str, int, Expr, int], ...]


@dataclass(frozen=True)
class ListAccess:
    """Look at every row."""


@dataclass(frozen=True)
class Probe:
    """Probe the SteM of `target`; verify the equalities and check the predicates that the access does not decide."""

    target: int
    access: KeyAccess | RangeAccess | ListAccess
    equalities: tuple[Equality, ...]
    predicates: tuple[Expr, ...]


@dataclass(frozen=True)
class Select:
    """Apply selection number `selection`."""

    selection: int
    predicate: Expr


Step = Probe | Select


class Plan:
    """The multi-way join over all sources of a query."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.graph: JoinGraph = join_graph(query)
        self._between: dict[frozenset[int], list[Equality]] = {}
        for e in self.graph.equalities:
            self._between.setdefault(frozenset((e.left, e.right)), []).append(e)
        self.gathered = self._gathered()
        """The columns that must be there when a result is complete."""
        self.layouts = tuple(self._layout(s) for s in range(len(query.sources)))
        self._steps: dict[Signature, tuple[Step, ...]] = {}

    def steps(self, signature: Signature) -> tuple[Step, ...]:
        """The allowed next steps, in the order a fixed router takes them; none for the whole result."""
        found = self._steps.get(signature)
        if found is None:
            found = self._steps[signature] = self._find_steps(*signature)
        return found

    def _find_steps(self, span: int, done: int) -> tuple[Step, ...]:
        selections = [
            Select(i, predicate)
            for i, predicate in enumerate(self.graph.selections)
            if not done >> i & 1 and _covers(span, predicate)
        ]
        missing = [s for s in range(len(self.query.sources)) if not span >> s & 1]
        by_key = [self._probe(span, s, access) for s in missing for access in self._keys(span, s)]
        linked = by_key or [self._probe(span, s, self._range(span, s)) for s in missing if self._is_linked(span, s)]
        probes = linked or [self._probe(span, s, ListAccess()) for s in missing]
        return (*selections, *probes)

    def _keys(self, span: int, target: int) -> list[KeyAccess]:
        """One access per index of the target that the span has a key for."""
        found: dict[tuple[Expr, ...], KeyAccess] = {}
        for partner in range(len(self.query.sources)):
            edge = self._edge(target, partner) if span >> partner & 1 else ()
            if edge:
                on = tuple(mine for mine, _, _ in edge)
                found.setdefault(on, KeyAccess(on, partner, tuple(theirs for _, _, theirs in edge)))
        return list(found.values())

    @property
    def linked(self) -> tuple[int, ...]:
        """For each source the others, as a bit mask, from which it can be probed by key or, if there are none, by
        anything that WHERE says about both."""
        sources = range(len(self.query.sources))
        by_key = [sum(1 << p for p in sources if p != s and self._edge(s, p)) for s in sources]
        return tuple(
            by_key[s] or sum(1 << p for p in sources if p != s and self._is_linked(1 << p, s)) for s in sources
        )

    def _edge(self, source: int, partner: int) -> list[tuple[Expr, int, Expr]]:
        """The equalities between two sources, seen from one; the order is the same from both sides."""
        return [e.seen_from(source) for e in self._between.get(frozenset((source, partner)), ())]

    def _range(self, span: int, target: int) -> RangeAccess | ListAccess:
        """The order key of the target with the most limits."""
        limits: dict[Expr, list[tuple[str, int, Expr, int]]] = {}
        for r in self.graph.ranges:
            if target in (r.left, r.right):
                mine, op, partner, theirs, offset = r.seen_from(target)
                if span >> partner & 1:
                    limits.setdefault(mine, []).append((op, partner, theirs, offset))
        if not limits:
            return ListAccess()
        on = max(limits, key=lambda expr: len(limits[expr]))
        return RangeAccess(on, tuple(limits[on]))

    def _is_linked(self, span: int, target: int) -> bool:
        """Whether some predicate or time bound of WHERE is decided by probing the target."""
        pairs = (frozenset((s, target)) for s in range(len(self.query.sources)) if span >> s & 1)
        return any(pair in self.graph.time_pairs for pair in pairs) or any(
            self._completes(span, target, p) for p in self._checks
        )

    @property
    def _checks(self) -> tuple[Expr, ...]:
        return (*(r.predicate for r in self.graph.ranges), *self.graph.residuals)

    def _completes(self, span: int, target: int, predicate: Expr) -> bool:
        return _covers(span | 1 << target, predicate) and not _covers(span, predicate)

    def _probe(self, span: int, target: int, access: KeyAccess | RangeAccess | ListAccess) -> Probe:
        equalities = []
        for e in self.graph.equalities:
            if target in (e.left, e.right):
                mine, partner, theirs = e.seen_from(target)
                looked_up = isinstance(access, KeyAccess) and partner == access.partner
                decided = access == KeyAccess((mine,), partner, (theirs,)) and is_exact(physical(mine.type))
                if span >> partner & 1 and not decided and (looked_up or not e.derived):
                    equalities.append(e)
        decided_ranges = {
            r.predicate
            for r in self.graph.ranges
            if isinstance(access, RangeAccess)
            and r.exact
            and target in (r.left, r.right)
            and r.seen_from(target)[0] == access.on
        }
        predicates = [p for p in self._checks if self._completes(span, target, p) and p not in decided_ranges]
        return Probe(target, access, tuple(equalities), tuple(predicates))

    def _gathered(self) -> tuple[Column, ...]:
        group, outputs = self.query.group, self.query.outputs
        exprs: list[Expr] = [o.expr for o in outputs] if group is None else [*group.keys]
        if group is not None:
            exprs += [a.arg for a in group.aggregates if a.arg is not None]
        return tuple(dict.fromkeys(c for e in exprs for c in sorted(columns_of(e), key=lambda c: (c.source, c.name))))

    def _layout(self, source: int) -> Layout:
        """What the SteM of a source keeps: nothing that only filters need, nothing that nobody needs."""
        graph, stream = self.graph, self.query.sources[source]
        later = [*self._checks, *graph.selections]
        needed = (*self.gathered, *(c for p in later for c in sorted(columns_of(p), key=lambda c: c.name)))
        edges = [self._edge(source, partner) for partner in range(len(self.query.sources)) if partner != source]
        keys = dict.fromkeys(mine for edge in edges for mine, _, _ in edge)
        order = dict.fromkeys(r.seen_from(source)[0] for r in graph.ranges if source in (r.left, r.right))
        return Layout(
            timed=not stream.stream.is_table,
            ordinal=stream.window.kind is WindowKind.ROWS,
            stored=tuple(dict.fromkeys(c for c in needed if c.source == source)),
            keys=tuple(keys),
            indexes=tuple(dict.fromkeys(tuple(mine for mine, _, _ in edge) for edge in edges if edge)),
            order_keys=tuple(order),
        )


def _covers(span: int, predicate: Expr) -> bool:
    return all(span >> s & 1 for s in sources_of(predicate))
