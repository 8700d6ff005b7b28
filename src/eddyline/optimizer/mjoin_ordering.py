"""mjoin-ordering: for each child of an operator, the order in which its tuples probe the other children.

The children are the vertices of a join graph. If the graph is a tree, IK (Ibaraki and Kameda) finds the best of all
orders without products. Root the tree at the child that starts. A vertex d has a fan-out T(d) and a cost per incoming
tuple C(d) = probe + T(d) * match. Sequences compose as T(ab) = T(a) T(b) and C(ab) = C(a) + T(a) C(b), which has the
adjacent sequence interchange property with rank (T - 1) / C. Below each vertex, the chains of its children are merged
by rank. As long as the merged chain starts with a lower rank than the vertex, both become one module, because the
vertex must come first. The chain below a vertex depends only on the edge by which the vertex is reached, not on the
root. So all roots share the chains of the 2 (m - 1) directed edges, and the whole takes O(m^2 log m).

A graph with cycles is reduced to a minimum spanning tree by the sizes of the joins, and the order that IK finds in it
is priced with all edges. The paper repeats this with an edge for every pair, products included; our engine runs no
product while something can be probed by key (best_ordering.py says why), so we do not. In a graph that is not
connected, or that has conditions other than equalities, IK may find an order that the engine cannot run: then each step
takes the next child of the order that can be probed. For as few children as most operators of hybrid trees have,
comparing all orders costs no more than this, and is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.optimizer.best_ordering import best_ordering
from eddyline.optimizer.cost_model import HASH, LIST, CostModel, Link
from eddyline.optimizer.plans import Ordered

Module = tuple[float, float, float, tuple[int, ...]]
"""Rank, T, C and the vertices of a sequence."""

_LEAST = 1e-30
"""The least cost in a rank: a cost of 0 would have no rank."""

EXACT, EXACT_MIXED = 4, 8
"""The most children of an operator for which all orders are compared: if all edges are keys and the graph is not a
tree, and if it has other conditions."""


def mjoin_ordering(model: CostModel, children: Sequence[int]) -> Ordered:
    """The orders for all children of an operator."""
    if len(children) == 2:
        left, right = children
        cpu = model.order_cpu(left, (right,)) + model.order_cpu(right, (left,))
        return Ordered(cpu, {left: (right,), right: (left,)})
    graph = _Graph(model, children)
    if len(children) <= (EXACT if graph.keyed else EXACT_MIXED) and not (graph.keyed and graph.is_tree):
        return best_ordering(model, children)
    best = _Chains(graph, graph.spanning_tree()).orders()
    orders = {child: tuple(children[v] for v in order) for child, (_, order) in zip(children, best, strict=True)}
    return Ordered(sum(cpu for cpu, _ in best), orders)


class _Graph:
    """The join graph of an operator. A vertex is the number of a child."""

    def __init__(self, model: CostModel, children: Sequence[int]) -> None:
        self.model, self.children = model, children
        self.links = model.links(children)
        self.live = [model.live(child) for child in children]
        costs = model.costs
        self.probes = [
            (costs.probe_hash, costs.probe_range, costs.probe_list_row * model.held(child)) for child in children
        ]
        self.near = [
            [(w, link[0], link[1]) for w, link in enumerate(row) if link[2] and v != w]
            for v, row in enumerate(self.links)
        ]
        self.edges = sum(map(len, self.near)) // 2
        self.keyed = all(access == HASH for row in self.near for _, _, access in row)
        """Whether all edges are probed by key."""

    @property
    def is_tree(self) -> bool:
        """Whether the graph has as many edges as a tree."""
        return self.edges == len(self.live) - 1

    def spanning_tree(self) -> list[int]:
        """The parent of each vertex, -1 for vertex 0, by Prim's algorithm. Keys come before other edges; products are
        last."""
        live, links = self.live, self.links
        count = len(live)
        parent = [0] * count
        parent[0] = -1
        out = set(range(1, count))
        weight = {v: (_last_resort(links[0][v]), live[0] * live[v] * links[0][v][0]) for v in out}
        while out:
            vertex = min(out, key=weight.__getitem__)
            out.remove(vertex)
            row, mine = links[vertex], live[vertex]
            for v in out:
                new = _last_resort(row[v]), mine * live[v] * row[v][0]
                if new < weight[v]:
                    weight[v], parent[v] = new, vertex
        return parent

    def runnable(self, start: int, order: Sequence[int]) -> tuple[int, ...]:
        """The order, changed where necessary so that the engine can run it."""
        reached, left, taken = self.children[start], list(order), list[int]()
        while left:
            first = min(self.model.runnable(reached, [self.children[v] for v in left]))
            taken.append(left.pop(first))
            reached |= self.children[taken[-1]]
        return tuple(taken)

    def price(self, start: int, order: Sequence[int]) -> float:
        """The same as `CostModel.order_cpu`, with all edges, but faster."""
        model, near = self.model, self.near
        if not model.independent:
            return model.order_cpu(self.children[start], [self.children[v] for v in order])
        fan_out, access, match = self.live.copy(), [LIST] * len(self.live), model.costs.match
        flow, total, last = 1.0, 0.0, start
        for vertex in order:
            for v, selectivity, kind in near[last]:
                fan_out[v] *= selectivity
                if kind < access[v]:
                    access[v] = kind
            total += flow * self.probes[vertex][access[vertex]]
            flow *= fan_out[vertex]
            total += flow * match
            last = vertex
        return total * model.rate(self.children[start])


class _Chains:
    """IK on a spanning tree."""

    def __init__(self, graph: _Graph, parent: list[int]) -> None:
        self._graph = graph
        self._match = graph.model.costs.match
        self._near: list[list[int]] = [[] for _ in parent]
        for v, p in enumerate(parent):
            if p >= 0:
                self._near[v].append(p)
                self._near[p].append(v)
        joined = sum(graph.links[v][p][2] for v, p in enumerate(parent) if p >= 0)
        self._connected = joined == len(parent) - 1 and graph.keyed
        """Whether the engine can run every order that IK finds."""
        self._exact = joined == graph.edges and graph.model.independent
        """Whether the tree has all edges of the graph, so that the chains give the price."""
        self._known: dict[tuple[int, int], list[Module]] = {}

    def orders(self) -> list[tuple[float, tuple[int, ...]]]:
        """For each vertex: the price and the order if it starts."""
        return [self._order(root) for root in range(len(self._near))]

    def _order(self, root: int) -> tuple[float, tuple[int, ...]]:
        chain = self._merged(root, -1)
        order = tuple(v for module in chain for v in module[3])
        taken = order if self._connected else self._graph.runnable(root, order)
        if taken != order or not self._exact:
            order = taken
            return self._graph.price(root, order), order
        flow, total = 1.0, 0.0
        for _, fan_out, cost, _ in chain:
            total += flow * cost
            flow *= fan_out
        return total * self._graph.model.rate(self._graph.children[root]), order

    def _merged(self, vertex: int, origin: int) -> list[Module]:
        """All modules below a vertex that is reached from `origin`, by rank."""
        chains = [self._chain(vertex, v) for v in self._near[vertex] if v != origin]
        if len(chains) == 1:
            return chains[0]
        return sorted((module for chain in chains for module in chain), key=_rank)

    def _chain(self, origin: int, vertex: int) -> list[Module]:
        """A vertex and everything below it, as modules whose ranks never fall."""
        known = self._known.get((origin, vertex))
        if known is not None:
            return known
        graph = self._graph
        selectivity, access, _ = graph.links[origin][vertex]
        fan_out = graph.live[vertex] * selectivity
        cost = graph.probes[vertex][access] + fan_out * self._match
        rank = (fan_out - 1) / (cost or _LEAST)
        sequence: tuple[int, ...] = (vertex,)
        below, at = self._merged(vertex, origin), 0
        while at < len(below) and below[at][0] < rank:
            _, times, more, then = below[at]
            cost += fan_out * more
            fan_out *= times
            rank, sequence = (fan_out - 1) / (cost or _LEAST), sequence + then
            at += 1
        chain = self._known[origin, vertex] = [(rank, fan_out, cost, sequence), *below[at:]]
        return chain


def _last_resort(link: Link) -> int:
    return 0 if link[1] == HASH else 1 if link[2] else 2


def _rank(module: Module) -> float:
    return module[0]
