"""What the optimizer is told of a query and its data: sources with rates and sizes, and predicates between them.

Rates are rows per second of event time that are built. `rows` is what a base SteM holds: rate times window for a
stream, all of it for a table. A row is replaced every rows / rate seconds; its inverse, the *turnover*, is all that the
flows need to know of time (see cost_model.py), so windows in rows and windows that never close are no special case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from math import inf, isfinite, prod

SMALLEST = 1e-9
"""Rows in a window that is next to nothing: a window of 0 seconds still lets rows of the same time meet."""


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
    """Of a row that is held, without its indexes."""

    def __post_init__(self) -> None:
        for value in (self.rate, self.rows, self.row_bytes):
            if not isfinite(value) or value < 0:
                raise ValueError(f"{value} is no rate, number of rows or bytes")
        if self.rate and not self.rows:
            raise ValueError("a stream with a rate has rows in its window")

    @classmethod
    def stream(cls, rate: float, window: float, row_bytes: float = 64.0) -> SourceLoad:
        """Rows that live for `window` seconds."""
        return cls(rate, max(rate * window, SMALLEST if rate else 0.0), row_bytes)

    @classmethod
    def table(cls, rows: float, row_bytes: float = 64.0) -> SourceLoad:
        """Rows that are there from the start."""
        return cls(0.0, rows, row_bytes)

    @property
    def turnover(self) -> float:
        """How often per second it is replaced: 1 / window; 0 for a table."""
        return self.rate / self.rows if self.rate else 0.0


@dataclass(frozen=True)
class JoinEdge:
    """All that is asked between two sources: `selectivity` is the share of pairs within the windows that match.

    `indexes` are numbers of the index of `left` and of the index of `right` that serve it: edges with the same number
    at a source share that index. Without numbers the edge has indexes of its own. `classes` are the classes of equal
    columns among what is asked, (class, selectivity) each, part of the selectivity: between two spans a class counts
    once, however many edges have it.
    """

    left: int
    right: int
    selectivity: float
    access: Access = Access.HASH
    indexes: tuple[int, int] | None = None
    classes: tuple[tuple[int, float], ...] = ()

    @property
    def parts(self) -> tuple[tuple[int | None, float], ...]:
        """Its classes, and what is left without them.

        >>> JoinEdge(0, 1, 0.05, classes=((7, 0.1),)).parts
        ((7, 0.1), (None, 0.5))
        """
        rest = self.selectivity / prod(share for _, share in self.classes) if self.selectivity else 0.0
        return (*self.classes, *([(None, rest)] if rest != 1.0 or not self.classes else []))


@dataclass(frozen=True)
class Selection:
    """A condition that is evaluated tuple by tuple, at a price: the share of tuples of `span` that pass it, and the
    seconds that one takes."""

    span: int
    selectivity: float
    seconds: float


@dataclass(frozen=True)
class GroupingLoad:
    """What the group-by costs, and what a part of it saves that is done before a join (`+`)."""

    groups: Callable[[int, int], float]
    """How many tuples of a span are told apart, given the selections (a bit mask) that they have passed."""
    slices: float
    """How often per second of event time rows of a stream are taken in: a tuple is put together with others of its
    packet alone, and a slice of the input makes at least one packet."""
    packet: float
    """Tuples of the largest packet."""
    columns: int = 1
    """What a tuple that stands for several carries: its weight, and states of aggregates."""


@dataclass(frozen=True)
class Workload:
    """At most one edge for a pair of sources; pairs without one are products.

    `joint` corrects for predicates over more than two sources and for predicates that are not independent: (span,
    factor) multiplies the size of every span that contains that one. `bounded` are the pairs of sources, as spans,
    whose event times WHERE compares: the engine takes a probe between them for one that a predicate decides. `grouping`
    is None in a query that has no group-by a part of which can be done early.
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
            raise ValueError("an edge joins two different sources, and there is one for a pair")
        for edge in self.edges:
            if not (0 <= edge.left < len(self.sources) and 0 <= edge.right < len(self.sources)):
                raise ValueError(f"edge {edge.left}-{edge.right}: there are {len(self.sources)} sources")
            if not 0 <= edge.selectivity <= 1:
                raise ValueError(f"edge {edge.left}-{edge.right}: {edge.selectivity} is not a share")
        for span, factor in self.joint:
            if span >> len(self.sources) or span.bit_count() < 2 or not isfinite(factor) or factor < 0:
                raise ValueError(f"span {span}: a correction of {factor} is for several sources, and not negative")
        for selection in self.selections:
            if selection.span <= 0 or selection.span >> len(self.sources):
                raise ValueError(f"span {selection.span}: there are {len(self.sources)} sources")
            if not 0 < selection.selectivity <= 1 or not 0 <= selection.seconds < inf:
                raise ValueError(f"{selection}: a share above 0 passes, and a tuple takes some time")

    def figures(self) -> dict[str, float]:
        """What must change for another plan to become better, by name."""
        rates = {f"rate {number}": source.rate for number, source in enumerate(self.sources)}
        edges = {f"selectivity {e.left}-{e.right}": e.selectivity for e in self.edges}
        return rates | edges | {f"selection {n}": s.selectivity for n, s in enumerate(self.selections)}
