"""A plan as data: for each signature the steps that are allowed next, and what each SteM must keep for them.

A signature is (span, done): the sources a tuple has a component of, and the selections it has passed, as bit masks.
Steps are found when a signature is first met, so twenty sources do not mean 2**20 entries. The routing constraints
hold by construction: a step never probes a source the span has, nor repeats a selection (BoundedRepetition); a packet
exists only after its rows were built (BuildFirst); and which step is taken never changes the result, because every step
applies each predicate that its span newly completes. SteMs of streams and of static tables have all rows that came, so
no tuple is bounced back. A tuple that probes the SteM of a table that is asked also asks for the rows that are missing
(ProbeCompletion), so it needs values for all columns of an index, unless the table is scanned.

A tuple is in one join operator of the tree: it probes the other children of that operator and nothing else, so no route
bypasses a materialised span. When it has a row of every child, and has passed the selections of the operator, it is
built into the operator's intermediate SteM, and starts again in the operator above. SteMs are numbered: those of
sources first, then those of the operators below the root. A selection belongs to the lowest operator that has all its
sources and is not late (see tree.py): there the router orders it among the probes; operators further down do not offer
it. So all tuples of a SteM have passed the same selections, and a signature determines which selections the components
of a tuple have passed. In some trees tuples have weights (grouped.py); all of the above holds for them too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import pyarrow as pa

from eddyline.bound.aggregates import state_types
from eddyline.bound.expr import Expr, columns_of, sources_of
from eddyline.bound.model import BoundQuery, WindowKind
from eddyline.bound.types import physical
from eddyline.plan.bindings import IndexBinding, all_bindings
from eddyline.plan.graph import Equality, JoinGraph, join_graph
from eddyline.plan.grouped import Grouped, check, grouped
from eddyline.plan.steps import KeyAccess, ListAccess, Probe, RangeAccess, Select, Step
from eddyline.plan.tree import Tree, mjoin, passed, span_of, state_of, weighted
from eddyline.state.keys import is_exact
from eddyline.state.layout import Layout, together

Signature = tuple[int, int]


@dataclass(frozen=True)
class Operator:
    """A join operator: the SteMs of its children, and the selections that are passed within it."""

    tree: Tree
    stems: tuple[int, ...]
    spans: tuple[int, ...]
    """The span of each of these SteMs, as a bit mask of sources."""
    selections: tuple[int, ...]
    done: int
    """The selections that the results of this operator have passed, here or below, as a bit mask."""

    @cached_property
    def bits(self) -> dict[int, int]:
        """The bit of each SteM: that of its first source. It stands for all sources of the SteM, because tuples in this
        operator have all of them or none."""
        return {stem: (span & -span).bit_length() - 1 for stem, span in zip(self.stems, self.spans, strict=True)}

    @cached_property
    def bit_of(self) -> dict[int, int]:
        """For each source the bit of the child that has it."""
        return {s: bit for bit, span in zip(self.bits.values(), self.spans, strict=True) for s in _sources(span)}


class Plan:
    """The steps and SteMs of a query for a tree of join operators, by default one multi-way join over all sources. A
    plan caches what it computes; `plan_of` shares plans."""

    def __init__(
        self, query: BoundQuery, tree: Tree | None = None, tables_first: bool = True, owners: tuple[int, ...] = ()
    ) -> None:
        """With `tables_first` all rows of loaded tables are built before any other row."""
        self.query = query
        self.tree = tree or mjoin(len(query.sources))
        assert not self.tree.late, "some selections would never be applied"
        self.owners = owners or tuple(range(len(query.sources)))
        """For each source the one in whose SteM its rows are, itself if it shares none (sharing.py)."""
        self._starting = sum(
            1 << n for n, s in enumerate(query.sources) if not (tables_first and s.stream.is_table) or s.stream.is_asked
        )
        """The sources whose rows may be the last of a result."""
        self.graph: JoinGraph = join_graph(query)
        check(query, self.tree)
        self.selections = tuple(sum(1 << s for s in sources_of(p)) for p in self.graph.selections)
        """The sources that each selection needs, as bit masks."""
        self.done = passed(self.tree, self.selections)
        """The selections that the results of each operator have passed, by the operator's span."""
        self._between: dict[frozenset[int], list[Equality]] = {}
        for e in self.graph.equalities:
            self._between.setdefault(frozenset((e.left, e.right)), []).append(e)
        self.bindings = all_bindings(query, self.graph)
        """For each source, the ways to ask the indexes of its table; none if only its scan is used."""
        self.first = sum(1 << source for source in query.given) if query.partial else 0
        """The sources of which a tuple must have a row before it probes the SteM of a table that is asked: then what it
        lacks are rows of such tables, and it is a partial result while it waits for them."""
        self.gathered = query.gathered
        """The columns that must be there when a result is complete."""
        self.materialised = tuple(self.tree.below())
        """The operators that have an intermediate SteM, in the order of those SteMs."""
        heavy = weighted(self.tree)
        self.grouped: dict[int, Grouped] = {
            number: grouped(query, self.graph, tree, self.done[tree.span])
            for number, tree in enumerate(self.materialised, len(query.sources))
            if tree.span in heavy
        }
        """The grouping of each intermediate SteM whose tuples have weights."""
        self._operators: dict[int, Operator] = {}
        self._add_operator(self.tree)
        self.layouts = (
            *together([self._layout(s) for s in range(len(query.sources))], self.owners),
            *(self._layout_between(n, tree) for n, tree in enumerate(self.materialised, len(query.sources))),
        )
        self._steps: dict[Signature, tuple[Step, ...]] = {}
        self._linked: dict[int, dict[int, int]] = {}

    def _add_operator(self, tree: Tree) -> None:
        sources, done = len(self.query.sources), self.done[tree.span]
        stems = [c if isinstance(c, int) else sources + self.materialised.index(c) for c in tree.children]
        inner = [c for c in tree.children if isinstance(c, Tree)]
        below = sum(self.done[c.span] for c in inner)
        here = tuple(i for i in range(len(self.graph.selections)) if (done & ~below) >> i & 1)
        spans = tuple(map(span_of, tree.children))
        self._operators[tree.span] = Operator(tree, tuple(stems), spans, here, done)
        for child in inner:
            self._add_operator(child)

    def operator(self, signature: Signature) -> Operator:
        """The operator in which tuples of this signature are. Tuples that are built into an intermediate SteM are in
        the operator above it."""
        span, tree = signature[0], self.tree
        while inner := [c for c in tree.children if isinstance(c, Tree) and not span & ~c.span]:
            if span == inner[0].span and not self.done[span] & ~signature[1]:
                break
            tree = inner[0]
        return self._operators[tree.span]

    def signature(self, state: int) -> Signature:
        """The signature of the tuples of a state (tree.state_of). A row of a source has passed no selection before it
        is built."""
        span = state if state > 0 else ~state
        return span, 0 if state > 0 and state & (state - 1) == 0 else self.done[span]

    def stem_of(self, signature: Signature) -> int | None:
        """The intermediate SteM into which tuples of this signature are built."""
        for number, tree in enumerate(self.materialised, len(self.query.sources)):
            if signature == (tree.span, self.done[tree.span]):
                return number
        return None

    def after(self, signature: Signature, step: Step) -> Signature:
        """The signature after a step."""
        span, done = signature
        if isinstance(step, Select):
            return span, done | 1 << step.selection
        below = step.target - len(self.query.sources)
        if below < 0:
            return span | 1 << step.target, done
        target = self.materialised[below].span
        return span | target, done | self.done[target]

    def steps(self, signature: Signature) -> tuple[Step, ...]:
        """The allowed next steps, in the order a fixed router takes them; none for the whole result."""
        found = self._steps.get(signature)
        if found is None:
            found = self._steps[signature] = self._find_steps(*signature)
        return found

    def _find_steps(self, span: int, done: int) -> tuple[Step, ...]:
        operator = self.operator((span, done))
        if not all(span & of or self._is_probed(of) for of in operator.spans):
            return ()
        selections = [
            Select(i, predicate)
            for i, predicate in enumerate(self.graph.selections)
            if (operator.done & ~done) >> i & 1 and not self.selections[i] & ~span
        ]
        missing = [
            (stem, of)
            for stem, of in zip(operator.stems, operator.spans, strict=True)
            if not span & of and self._can_probe(span, stem, bool(selections))
        ]
        by_key = [self._probe(span, stem, of, access) for stem, of in missing for access in self._keys(span, of)]
        linked = by_key or [
            self._probe(span, *other, self._range(span, other[1]))
            for other in missing
            if self._is_linked(span, other[1])
        ]
        probes = linked or [self._probe(span, stem, of, ListAccess()) for stem, of in missing]
        return (*selections, *probes)

    def _is_probed(self, span: int) -> bool:
        """Whether tuples probe the SteM of a span. If it has all sources whose rows may be the last of a result, each
        result is started there, and tuples without them, of loaded tables only, take no step toward it."""
        return bool(self._starting & ~span)

    def _can_probe(self, span: int, stem: int, has_selections: bool) -> bool:
        """Whether tuples of the span have the values that they need to ask for rows that the SteM may lack. For partial
        results they also have all rows that are not asked for, and have passed all selections that they can."""
        if self.first and not self.first >> stem & 1 and (self.first & ~span or has_selections):
            return False
        return stem >= len(self.query.sources) or not self.bindings[stem] or bool(self.ways(span, stem))

    def _keys(self, span: int, target: int) -> list[KeyAccess]:
        """One access for each index of the target (a span) for which the span has a key."""
        found: dict[tuple[Expr, ...], KeyAccess] = {}
        for source in _sources(target):
            for partner in _sources(span):
                edge = self._edge(source, partner)
                if edge:
                    on = tuple(mine for mine, _, _ in edge)
                    found.setdefault(on, KeyAccess(on, partner, tuple(theirs for _, _, theirs in edge)))
        return list(found.values())

    @property
    def text(self) -> str:
        """The shape of the plan, as users write it."""
        return self.tree.text([s.alias for s in self.query.sources])

    @property
    def edges(self) -> set[tuple[int, int]]:
        """Pairs of sources that an equality of WHERE connects."""
        return {(e.left, e.right) for e in self.graph.equalities}

    def linked(self, operator: Operator) -> dict[int, int]:
        """For each child, by its bit, the mask of the other children from which it can be probed by key; if there are
        none, of those that any conjunct of WHERE connects with it."""
        found = self._linked.get(operator.tree.span)
        if found is None:
            found = self._linked[operator.tree.span] = self._find_linked(operator)
        return found

    def _find_linked(self, operator: Operator) -> dict[int, int]:
        children = list(zip(operator.bits.values(), operator.spans, strict=True))
        found = {}
        for bit, span in children:
            others = [(b, s) for b, s in children if b != bit]
            ways = self.bindings[bit]
            by_key = sum(
                1 << b for b, s in others if self._keys(s, span) and (not ways or any(w.needs & s for w in ways))
            )
            found[bit] = by_key or sum(1 << b for b, s in others if self._is_linked(s, span))
        return found

    def _edge(self, source: int, partner: int) -> list[tuple[Expr, int, Expr]]:
        """The equalities between two sources, seen from one; the order is the same from both sides."""
        return [e.seen_from(source) for e in self._between.get(frozenset((source, partner)), ())]

    def _range(self, span: int, target: int) -> RangeAccess | ListAccess:
        """The order key of the target with the most limits."""
        limits: dict[Expr, list[tuple[str, int, Expr, int]]] = {}
        for r in self.graph.ranges:
            for source in (r.left, r.right):
                mine, op, partner, theirs, offset = r.seen_from(source)
                if target >> source & 1 and span >> partner & 1:
                    limits.setdefault(mine, []).append((op, partner, theirs, offset))
        if not limits:
            return ListAccess()
        on = max(limits, key=lambda expr: len(limits[expr]))
        return RangeAccess(on, tuple(limits[on]))

    def _is_linked(self, span: int, target: int) -> bool:
        """Whether some predicate or time bound of WHERE is decided by probing the target, a span."""
        pairs = (frozenset((s, t)) for s in _sources(span) for t in _sources(target))
        return any(pair in self.graph.time_pairs for pair in pairs) or any(
            self._completes(span, target, p) for p in self._checks
        )

    @property
    def _checks(self) -> tuple[Expr, ...]:
        return (*(r.predicate for r in self.graph.ranges), *self.graph.residuals)

    def _completes(self, span: int, target: int, predicate: Expr) -> bool:
        """Whether a predicate needs both the span and the target; a predicate over only one of them was checked
        before."""
        return _covers(span | target, predicate) and not _covers(span, predicate) and not _covers(target, predicate)

    def _probe(self, span: int, stem: int, target: int, access: KeyAccess | RangeAccess | ListAccess) -> Probe:
        equalities = []
        for e in self.graph.equalities:
            for source in (e.left, e.right):
                mine, partner, theirs = e.seen_from(source)
                if target >> source & 1 and span >> partner & 1:
                    looked_up = isinstance(access, KeyAccess) and partner == access.partner and mine in access.on
                    decided = access == KeyAccess((mine,), partner, (theirs,)) and is_exact(physical(mine.type))
                    implied = e.derived and not self.first >> e.left & self.first >> e.right & 1
                    if not decided and (looked_up or not implied):
                        equalities.append(e)
        decided_ranges = {
            r.predicate
            for r in self.graph.ranges
            for source in (r.left, r.right)
            if isinstance(access, RangeAccess)
            and r.exact
            and target >> source & 1
            and r.seen_from(source)[0] == access.on
        }
        predicates = [p for p in self._checks if self._completes(span, target, p) and p not in decided_ranges]
        checks, asks = (tuple(equalities), tuple(predicates)), self.ways(span, stem)
        others = [s for s in range(len(self.query.sources)) if s != stem and not span >> s & 1]
        ahead = tuple(ways for other in others if (ways := self.ways(span, other))) if asks or self.first else ()
        asked = stem < len(self.query.sources) and self.query.sources[stem].stream.is_asked
        return Probe(stem, target, access, *checks, asks, asked, ahead, self._is_answered(access, asks))

    def _is_answered(self, access: KeyAccess | RangeAccess | ListAccess, asks: tuple[IndexBinding, ...]) -> bool:
        """Whether all rows with a key are there if one is: rows come only by one index, and it decides the match."""
        if len(asks) != 1 or not isinstance(access, KeyAccess) or access.on != asks[0].keys or len(access.on) > 1:
            return False
        methods = self.query.sources[asks[0].table].stream.methods
        return {method.columns for method in methods} == {methods[asks[0].method].columns} and is_exact(
            physical(access.on[0].type)
        )

    def ways(self, span: int, stem: int) -> tuple[IndexBinding, ...]:
        """The ways in which tuples of a span can ask for rows of a SteM."""
        if stem >= len(self.query.sources):
            return ()
        return tuple(way for way in self.bindings[stem] if not way.needs & ~span)

    def _layout(self, source: int) -> Layout:
        """What the SteM of a source keeps: no column that only filters need, and no unused column. It keeps the keys of
        all edges, and indexes those by which the other children of its operator probe it."""
        graph, stream = self.graph, self.query.sources[source]
        later = [*self._checks, *graph.selections]
        later += [b.expr for ways in self.bindings for way in ways for b in way.bound_by if b.source == source]
        needed = (*self.gathered, *(c for p in later for c in sorted(columns_of(p), key=lambda c: c.name)))
        edges = {p: self._edge(source, p) for p in range(len(self.query.sources)) if p != source}
        on = {p: tuple(mine for mine, _, _ in edge) for p, edge in edges.items() if edge}
        alone = any(state_of(tree) == ~(1 << source) for tree in self.materialised)  # then no step probes it
        probed = self._is_probed(1 << source)
        beside = 0 if alone or not probed else self.operator((1 << source, 0)).tree.span
        order = dict.fromkeys(r.seen_from(source)[0] for r in graph.ranges if source in (r.left, r.right))
        return Layout(
            timed=not stream.stream.is_table,
            ordinal=stream.window.kind is WindowKind.ROWS,
            stored=tuple(dict.fromkeys(c for c in needed if c.source == source)),
            keys=tuple(dict.fromkeys(mine for edge in edges.values() for mine, _, _ in edge)),
            edges=tuple(dict.fromkeys(on.values())),
            indexes=tuple(dict.fromkeys(key for partner, key in on.items() if beside >> partner & 1)),
            order_keys=tuple(order),
            probed=probed,
        )

    def _layout_between(self, number: int, tree: Tree) -> Layout:
        """What an intermediate SteM keeps: the rows that its tuples consist of, and the keys by which the other
        children of the operator above probe it."""
        probed = self._is_probed(tree.span)
        above = self.operator(self.signature(state_of(tree))).tree.span & ~tree.span if probed else 0
        ranges = (r.seen_from(s) for r in self.graph.ranges for s in (r.left, r.right) if tree.span >> s & 1)
        return Layout(
            timed=any(not self.query.sources[s].stream.is_table for s in tree.sources()),
            ordinal=False,
            stored=(),
            keys=(),
            indexes=tuple(access.on for access in self._keys(above, tree.span)),
            order_keys=tuple(dict.fromkeys(key for key, _, partner, _, _ in ranges if above >> partner & 1)),
            probed=probed,
            components=tuple(sorted(tree.sources())),
            states=self._states(self.grouped[number]) if number in self.grouped else None,
        )

    def _states(self, of: Grouped) -> tuple[tuple[int, str, pa.DataType], ...]:
        assert self.query.group is not None
        types = {n: state_types(self.query.group.aggregates[n]) for n in of.aggregates}
        return tuple((number, name, type) for number, state in types.items() for name, type in state.items())


def _covers(span: int, predicate: Expr) -> bool:
    return all(span >> s & 1 for s in sources_of(predicate))


def plan_of(
    query: BoundQuery, tree: Tree | None = None, tables_first: bool = True, owners: tuple[int, ...] = ()
) -> Plan:
    """The plan of a query object for a tree, made once and shared: every turn of a slot asks for it. Plans are not
    shared between equal queries, because a user function of one may differ from that of the same name in the other."""
    return _plan_of(_This(query), tree, tables_first, owners)


class _This:
    """A cache key: a query compared by identity."""

    def __init__(self, query: BoundQuery) -> None:
        self.query = query

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _This) and other.query is self.query

    def __hash__(self) -> int:
        return id(self.query)


@lru_cache(maxsize=16)
def _plan_of(this: _This, tree: Tree | None, tables_first: bool, owners: tuple[int, ...]) -> Plan:
    return Plan(this.query, tree, tables_first, owners)


def _sources(span: int) -> list[int]:
    return [s for s in range(span.bit_length()) if span >> s & 1]
