"""The cost model: CPU seconds and bytes of any tree with any orderings, for the engine as it is built.

The sizes of spans are products. Let rows(i) be the rows in the SteM of source i. Then, for a span S,

    live(S)     = product of rows(i) over S * product of the selectivities of all predicates inside S
    rate(S)     = live(S) * turnover(S), where turnover(S) is the sum of rate(i) / rows(i) over S

The second equation holds because each tuple is made when its last component arrives. For the same reason, tuples that
child c of an operator started and that reached span S flow at live(S) * turnover(c). So every ordering meets the same
sizes, weighted by the child that started, and a step multiplies the flow by its fan-out. This makes IK
(mjoin_ordering.py) applicable.

An intermediate SteM releases its oldest tuples once the longest of its windows has passed since they were built. So it
*holds* rate(S) * longest window, which is more than live(S).

The CPU of a plan is a sum over all children of all operators. Each child adds its incoming tuples times the cost of a
build and, for every step of its ordering, the incoming tuples times the cost of a probe plus the cost of the matches.
The memory is that of all SteMs: rows with their indexes, and tuples of intermediate SteMs with row numbers, a time,
keys and indexes. The SteM of a child has one index for each key by which sources of its siblings reach it.

Selections (user functions) have a measured selectivity and price. Rows of a source are held before any selection is
evaluated; for a span of several sources, `live` counts the tuples that have passed all selections inside the span.
operator_price.py prices operators that evaluate selections, hold them back (`!`) or group (`+`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from eddyline.optimizer.costs import StepCosts
from eddyline.optimizer.plans import Cost, Orderings
from eddyline.optimizer.workload import Access, Workload
from eddyline.plan.tree import Tree, span_of

HASH, RANGE, LIST = int(Access.HASH), int(Access.RANGE), int(Access.LIST)
Link = tuple[float, int, bool]
"""Between two spans: the selectivity, the quickest access, and whether there is any predicate between them."""
IndexKey = tuple[int, tuple[int, int], int]
"""A source, the number of one of its indexes, and how that index finds matches."""


def bits(span: int) -> Iterator[int]:
    """The sources of a span.

    >>> list(bits(0b1010))
    [1, 3]
    """
    while span:
        lowest = span & -span
        yield lowest.bit_length() - 1
        span ^= lowest


class CostModel:
    """Prices for one workload. Values computed for a span are cached."""

    def __init__(self, workload: Workload, costs: StepCosts) -> None:
        self.workload, self.costs = workload, costs
        self.size = len(workload.sources)
        self.whole = (1 << self.size) - 1
        self._near: list[list[tuple[int, float, int, tuple[int, int], int]]] = [[] for _ in workload.sources]
        """By source, for each part of an edge: the other source (as a bit), the selectivity, the access, the index of
        this source that serves it, and its class (a number of its own if it has none)."""
        for number, edge in enumerate(workload.edges):
            shared = edge.indexes
            left, right = ((0, shared[0]), (0, shared[1])) if shared is not None else ((1, number), (1, number))
            for part, share in edge.parts:
                key = -1 - number if part is None else part
                self._near[edge.left].append((1 << edge.right, share, int(edge.access), left, key))
                self._near[edge.right].append((1 << edge.left, share, int(edge.access), right, key))
        self._bare = {1 << i: source.rows for i, source in enumerate(workload.sources)}
        self._live = dict(self._bare)
        self._turnover = {1 << i: source.turnover for i, source in enumerate(workload.sources)}
        self._held = {1 << i: source.rows for i, source in enumerate(workload.sources)}
        self._links: dict[tuple[int, int], Link] = {}
        self._indexes: dict[tuple[int, int], tuple[int, int]] = {}

    @property
    def independent(self) -> bool:
        """Whether every fan-out is a product of selectivities between pairs of sources."""
        classes = [number for edge in self.workload.edges for number, _ in edge.classes]
        alone = not self.workload.joint and not self.workload.selections
        return alone and len(classes) == len(set(classes))

    # Flows

    def link(self, left: int, right: int) -> Link:
        """All predicates between two spans, except joint ones."""
        found = self._links.get((left, right))
        if found is None:
            few, many = (left, right) if left.bit_count() <= right.bit_count() else (right, left)
            access, shares = LIST, dict[int, float]()
            for source in bits(few):
                for other, share, kind, _, key in self._near[source]:
                    if other & many:
                        shares[key] = share
                        access = min(access, kind)
            found = prod(shares.values()), access, bool(shares)
            self._links[left, right] = self._links[right, left] = found
        return found

    def links(self, children: Sequence[int]) -> list[list[Link]]:
        """All links between some children; the diagonal has no meaning."""
        table: list[list[Link]] = [[(1.0, LIST, False)] * len(children) for _ in children]
        known = self._links
        for row, left in enumerate(children):
            mine = table[row]
            for column in range(row):
                right = children[column]
                mine[column] = table[column][row] = known.get((left, right)) or self.link(left, right)
        return table

    def runnable(self, reached: int, missing: Sequence[int]) -> list[int]:
        """The numbers of the missing children that tuples may probe next, by the rule of `Plan.steps`: those that can
        be probed by key; else those with a condition between them and the span; else all."""
        links = [self.link(reached, child) for child in missing]
        keyed = [number for number, link in enumerate(links) if link[1] == HASH]
        return (
            keyed
            or [n for n, child in enumerate(missing) if links[n][2] or self._asked(reached, child)]
            or list(range(len(missing)))
        )

    def _asked(self, left: int, right: int) -> bool:
        """Whether event times of two spans are compared, or a condition over several sources needs both."""
        both = left | right
        wanted = (*self.workload.bounded, *(span for span, _ in self.workload.joint))
        return any(not span & ~both and span & ~left and span & ~right for span in wanted)

    def bare(self, span: int) -> float:
        """Live tuples of a span if no selection is evaluated."""
        found = self._bare.get(span)
        if found is None:
            first = span & -span
            rest = span ^ first
            found = self.bare(rest) * self._bare[first] * self.link(first, rest)[0]
            for joint, factor in self.workload.joint:
                if joint & span == joint and joint & first:
                    found *= factor
            self._bare[span] = found
        return found

    def live(self, span: int) -> float:
        """Live tuples of a span."""
        found = self._live.get(span)
        if found is None:
            found = self._live[span] = self.bare(span) * self.passing(self.inside(span))
        return found

    def inside(self, span: int) -> int:
        """The selections that need only sources of a span, as a bit mask."""
        return sum(1 << n for n, selection in enumerate(self.workload.selections) if not selection.span & ~span)

    def passing(self, selections: int) -> float:
        """The share of tuples that passes these selections, given as a bit mask."""
        return prod(s.selectivity for n, s in enumerate(self.workload.selections) if selections >> n & 1)

    def turnover(self, span: int) -> float:
        """How often per second the live tuples of a span are replaced."""
        found = self._turnover.get(span)
        if found is None:
            found = self._turnover[span] = sum(self._turnover[1 << i] for i in bits(span))
        return found

    def rate(self, span: int) -> float:
        """Tuples of a span per second."""
        return self.live(span) * self.turnover(span)

    def held(self, span: int) -> float:
        """Tuples in the SteM of a span."""
        found = self._held.get(span)
        if found is None:
            found = self._held[span] = self.live(span) * self.kept(span)
        return found

    def kept(self, span: int) -> float:
        """How many tuples the SteM of a span holds for each live one. It keeps a tuple until its longest window has
        passed."""
        slowest = min((t for i in bits(span) if (t := self._turnover[1 << i])), default=0.0)
        return self.turnover(span) / slowest if slowest else 1.0

    def flow(self, start: int, span: int) -> float:
        """Tuples per second that child `start` started and that reached `span`."""
        return self.live(span) * self.turnover(start)

    # SteMs

    def index_keys(self, child: int, operator: int) -> set[IndexKey]:
        """The indexes that the SteM of a child has in an operator: none if all other sources are tables, which are
        there before its tuples."""
        siblings = operator & ~child if self.turnover(self.whole & ~child) else 0
        return {
            (source, index, access)
            for source in bits(child)
            for other, _, access, index, _ in self._near[source]
            if other & siblings and access != LIST
        }

    def indexes(self, child: int, operator: int) -> tuple[int, int]:
        """How many hash and sorted indexes the SteM of a child has in an operator."""
        key = child, operator
        found = self._indexes.get(key)
        if found is None:
            keys = self.index_keys(child, operator)
            hashed = sum(access == HASH for _, _, access in keys)
            found = self._indexes[key] = hashed, len(keys) - hashed
        return found

    def insert_indexes(self, hashed: int, ordered: int) -> float:
        """Seconds to insert a row into this many hash and sorted indexes."""
        return hashed * self.costs.insert_index + ordered * self.costs.insert_sorted

    def insert(self, child: int, operator: int) -> float:
        """Seconds to build a row or tuple of a child."""
        a_row = self.costs.insert_row + self.insert_indexes(*self.indexes(child, operator))
        return a_row + child.bit_count() * self.costs.insert_component if child & (child - 1) else a_row

    def stem_cpu(self, child: int, operator: int) -> float:
        """Seconds per second to build and release the tuples of a child."""
        return self.rate(child) * (self.insert(child, operator) + self.costs.delete_row)

    def tuple_bytes(self, child: int, operator: int) -> float:
        """Bytes of a row or tuple in the SteM of a child."""
        costs, indexes = self.costs, sum(self.indexes(child, operator))
        if child & (child - 1):
            return costs.component_bytes * (child.bit_count() + 1 + indexes) + costs.index_bytes * indexes
        return self.workload.sources[child.bit_length() - 1].row_bytes + costs.index_bytes * indexes

    def stem_memory(self, child: int, operator: int) -> float:
        """Bytes of the SteM of a child."""
        return self.held(child) * self.tuple_bytes(child, operator)

    # Probes

    def probe(self, access: int, child: int) -> float:
        """Seconds for one tuple to probe the SteM of a child."""
        if access == HASH:
            return self.costs.probe_hash
        return self.costs.probe_range if access == RANGE else self.costs.probe_list_row * self.held(child)

    def order_cpu(self, start: int, order: Sequence[int]) -> float:
        """Seconds per second for the tuples that `start` starts, with the siblings probed in this order. It is assumed
        that each selection is evaluated as soon as possible and costs nothing: selections do not influence the choice
        of orders."""
        reached, total = start, 0.0
        for child in order:
            total += self.live(reached) * self.probe(self.link(reached, child)[1], child)
            reached |= child
            total += self.live(reached) * self.costs.match
        return total * self.turnover(start)

    # Trees without marks, in a query without selections: the slow twin of Pricing

    def cpu(self, tree: Tree, orderings: Orderings) -> float:
        """CPU seconds per second of event time."""
        total = 0.0
        for operator in (*tree.below(), tree):
            for child in map(span_of, operator.children):
                total += self.stem_cpu(child, operator.span)
                total += self.order_cpu(child, orderings[operator.span, child])
        return total

    def memory(self, tree: Tree) -> float:
        """Bytes of all SteMs."""
        operators = (*tree.below(), tree)
        return sum(self.stem_memory(span_of(child), op.span) for op in operators for child in op.children)

    def cost(self, tree: Tree, orderings: Orderings) -> Cost:
        """The CPU and the memory of a tree."""
        return Cost(self.cpu(tree, orderings), self.memory(tree))
