"""The workload that the optimizer plans for: sources with rates and sizes, and predicates between them.

A rate is the number of rows built per second of event time. `rows` is the content of a base SteM: rate times window for
a stream, all rows for a table. A row is replaced every rows / rate seconds. The inverse, the *turnover*, is the only
property of time that flows depend on (see cost_model.py), so windows in rows and windows that never close are no
special case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from math import inf, isfinite, prod

SMALLEST = 1e-9
"""The least number of rows in a window: a window of 0 seconds still lets rows of the same time meet."""


class Access(IntEnum):
    """How a SteM finds matches, from the quickest."""

    HASH = 0
    RANGE = 1
    LIST = 2


@dataclass(frozen=True)
class SourceLoad:
    """A stream within its window, or a table.

    >>> SourceLoad.stream(rate=10.0, window=30.0).rows
    300.0
    """

    rate: float
    rows: float
    row_bytes: float = 64.0
    """Bytes of a held row, without its indexes."""

    def __post_init__(self) -> None:
        for value in (self.rate, self.rows, self.row_bytes):
            if not isfinite(value) or value < 0:
                raise ValueError(f"{value} is not a rate, a number of rows or a number of bytes")
        if self.rate and not self.rows:
            raise ValueError("a stream with a rate needs rows in its window")

    @classmethod
    def stream(cls, rate: float, window: float, row_bytes: float = 64.0) -> SourceLoad:
        """A stream whose rows live for `window` seconds."""
        return cls(rate, max(rate * window, SMALLEST if rate else 0.0), row_bytes)

    @classmethod
    def table(cls, rows: float, row_bytes: float = 64.0) -> SourceLoad:
        """A table, whose rows exist from the start."""
        return cls(0.0, rows, row_bytes)

    @property
    def turnover(self) -> float:
        """How often per second the rows are replaced: 1 / window; 0 for a table."""
        return self.rate / self.rows if self.rate else 0.0


@dataclass(frozen=True)
class JoinEdge:
    """All predicates between two sources: `selectivity` is the share of pairs within the windows that match.

    `indexes` are the numbers of the index of `left` and the index of `right` that serve the edge: edges with the same
    number at a source share that index. Without numbers the edge has indexes of its own. `classes` are the classes of
    equal columns among the predicates, each as (class, selectivity); the selectivity of the edge includes them. Between
    two spans a class counts once, however many edges have it.
    """

    left: int
    right: int
    selectivity: float
    access: Access = Access.HASH
    indexes: tuple[int, int] | None = None
    classes: tuple[tuple[int, float], ...] = ()

    @property
    def parts(self) -> tuple[tuple[int | None, float], ...]:
        """Its classes, and the rest of the selectivity without them.

        >>> JoinEdge(0, 1, 0.05, classes=((7, 0.1),)).parts
        ((7, 0.1), (None, 0.5))
        """
        rest = self.selectivity / prod(share for _, share in self.classes) if self.selectivity else 0.0
        return (*self.classes, *([(None, rest)] if rest != 1.0 or not self.classes else []))


@dataclass(frozen=True)
class Selection:
    """A condition that is evaluated tuple by tuple, at a price: the share of tuples of `span` that pass it, and the
    seconds per tuple."""

    span: int
    selectivity: float
    seconds: float


@dataclass(frozen=True)
class GroupingLoad:
    """The cost of the group-by, and the saving by doing a part of it before a join (`+`)."""

    groups: Callable[[int, int], float]
    """The number of groups among the tuples of a span that have passed these selections (a bit mask)."""
    slices: float
    """How often per second of event time a slice of rows of a stream is taken in. Tuples are grouped only within a
    packet, and each slice of the input makes at least one packet."""
    packet: float
    """The most tuples of a packet."""
    columns: int = 1
    """Columns that a tuple with a weight carries: the weight, and the states of aggregates."""


@dataclass(frozen=True)
class Workload:
    """Sources, and at most one edge for each pair of them; pairs without an edge are products.

    `joint` corrects for predicates over more than two sources and for predicates that are not independent: (span,
    factor) multiplies the size of every span that contains that span. `bounded` are the pairs of sources, as spans,
    whose event times WHERE compares: the engine treats a probe between them as one with a predicate. `grouping` is None
    in a query without a group-by, or with one that cannot be done early.
    """

    sources: tuple[SourceLoad, ...]
    edges: tuple[JoinEdge, ...]
    joint: tuple[tuple[int, float], ...] = ()
    selections: tuple[Selection, ...] = ()
    bounded: tuple[int, ...] = ()
    grouping: GroupingLoad | None = None

    def __post_init__(self) -> None:
        pairs = [frozenset((edge.left, edge.right)) for edge in self.edges]
        if len(set(pairs)) != len(pairs) or any(len(pair) != 2 for pair in pairs):
            raise ValueError("an edge must join two different sources, and a pair may have only one edge")
        for edge in self.edges:
            if not (0 <= edge.left < len(self.sources) and 0 <= edge.right < len(self.sources)):
                raise ValueError(f"edge {edge.left}-{edge.right}: there are {len(self.sources)} sources")
            if not 0 <= edge.selectivity <= 1:
                raise ValueError(f"edge {edge.left}-{edge.right}: {edge.selectivity} is not a share")
        for span, factor in self.joint:
            if span >> len(self.sources) or span.bit_count() < 2 or not isfinite(factor) or factor < 0:
                raise ValueError(f"span {span}: a correction needs several sources and a factor >= 0, not {factor}")
        for selection in self.selections:
            if selection.span <= 0 or selection.span >> len(self.sources):
                raise ValueError(f"span {selection.span}: there are {len(self.sources)} sources")
            if not 0 < selection.selectivity <= 1 or not 0 <= selection.seconds < inf:
                raise ValueError(f"{selection}: the selectivity must be above 0 and at most 1, and seconds at least 0")

    def figures(self) -> dict[str, float]:
        """The statistics, by name, of which at least one must change for another plan to become better."""
        rates = {f"rate {number}": source.rate for number, source in enumerate(self.sources)}
        edges = {f"selectivity {e.left}-{e.right}": e.selectivity for e in self.edges}
        return rates | edges | {f"selection {n}": s.selectivity for n, s in enumerate(self.selections)}
