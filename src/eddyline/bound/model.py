"""A query after binding: frozen, typed, independent of how it will be computed.

Times and durations are integers in microseconds. A query checks itself when it is made, so a wrong one cannot exist.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import pyarrow as pa

from eddyline.bound.expr import Aggregate, Expr, SourceColumn, columns_of
from eddyline.bound.slide import Slide
from eddyline.errors import InternalError

MISSING, MATCH = "missing", "match"
"""The columns that SELECT PARTIAL adds: the tables that are missing in a row, and the key by which the partial rows and
the full rows of one combination are matched."""


@dataclass(frozen=True)
class ComputedTime:
    """An event time that the intake computes and appends as the last column of its stream."""

    expr: Expr
    """The expression over the stream's columns, as columns of source 0."""
    written: str
    named: bool
    """Whether the query can name the computed column."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns it is computed from."""
        return tuple(sorted(column.name for column in columns_of(self.expr)))


@dataclass(frozen=True)
class AccessMethod:
    """A way to the rows of a table that is asked: a scan of all rows, or an index over columns that must be bound."""

    columns: tuple[str, ...] = ()
    """None for a scan."""
    options: str = field(default="", repr=False)
    """Its own options as `explain` shows them. State that is kept does not depend on them (protocol/attach.py)."""

    @property
    def is_scan(self) -> bool:
        """Whether it gives all rows."""
        return not self.columns


@dataclass(frozen=True)
class BoundStream:
    """A declared stream, or a table (`time` is None): a static one, or one that is asked (`methods`)."""

    name: str
    schema: pa.Schema
    time: str | None
    lateness: int = 0
    computed: ComputedTime | None = None
    methods: tuple[AccessMethod, ...] = ()
    """The access methods of a table that is asked; none for a table that is read whole before the streams start."""

    @property
    def given(self) -> pa.Schema:
        """The columns of the source, without an event time that the intake computes."""
        return self.schema if self.computed is None else self.schema.remove(len(self.schema) - 1)

    @property
    def visible(self) -> pa.Schema:
        """The columns that a query can name."""
        return self.given if self.computed is None or not self.computed.named else self.schema

    def read_for(self, columns: Iterable[str]) -> tuple[str, ...]:
        """The columns that a source must deliver so that the stream has these columns."""
        wanted = set(columns)
        if self.computed is not None and self.time in wanted:
            wanted = wanted - {self.time} | {*self.computed.reads}
        return tuple(name for name in self.schema.names if name in wanted)

    @property
    def is_table(self) -> bool:
        """Whether it is a table: without a time."""
        return self.time is None

    @property
    def is_asked(self) -> bool:
        """Whether it is a table whose rows come as answers."""
        return bool(self.methods)


class WindowKind(Enum):
    """How a window bounds its stream."""

    RANGE = "RANGE"
    ROWS = "ROWS"
    UNBOUNDED = "UNBOUNDED"


@dataclass(frozen=True)
class Window:
    """`[RANGE size]` (microseconds), `[ROWS size]`, or no bound. TUMBLE, HOP and CUMULATE are a RANGE (slide.py)."""

    kind: WindowKind = WindowKind.UNBOUNDED
    size: int = 0
    pieces: Slide | None = None
    """Of CUMULATE: a row counts up to the next of these boundaries, which are `size` apart."""


@dataclass(frozen=True)
class BoundSource:
    """One item of FROM. Its place in `BoundQuery.sources` is its number; each alias is a stream of its own."""

    alias: str
    stream: BoundStream
    window: Window = Window()


@dataclass(frozen=True)
class Output:
    """One item of SELECT."""

    name: str
    expr: Expr


@dataclass(frozen=True)
class GroupBy:
    """GROUP BY, the aggregates used in SELECT and HAVING, and the slide (None: once, at the end)."""

    keys: tuple[Expr, ...]
    aggregates: tuple[Aggregate, ...]
    having: Expr | None
    slide: Slide | None


@dataclass(frozen=True)
class BoundQuery:
    """SELECT outputs FROM sources WHERE all of predicates [GROUP BY group]. Outputs of an aggregate query read only
    group keys, aggregates and WINDOW_END."""

    sources: tuple[BoundSource, ...]
    predicates: tuple[Expr, ...]
    outputs: tuple[Output, ...]
    group: GroupBy | None = None
    named: tuple[SourceColumn, ...] = ()
    """The columns that the text names, in a fixed order. Some do not occur in the expressions, such as x of x +
    NULL."""
    partial: bool = False
    """SELECT PARTIAL: rows for which tables that are asked have not answered yet are results too."""

    def __post_init__(self) -> None:
        if not self.sources or not self.outputs or all(s.stream.is_table for s in self.sources):
            raise InternalError("a query needs a stream and an output")
        if self.partial and (self.group is not None or not self.asks):
            raise InternalError("partial results need a table that is asked, and no group")
        for column in self.columns:
            if column.name not in self.sources[column.source].stream.schema.names:
                raise InternalError(f"no column {column.name} in source {column.source}")

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result rows."""
        marks = [pa.field(MISSING, pa.string()), pa.field(MATCH, pa.int64())] if self.partial else []
        return pa.schema([*(pa.field(o.name, o.expr.type) for o in self.outputs), *marks])

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """Every expression of the query over source columns."""
        group = self.group
        if group is None:
            return (*self.predicates, *(o.expr for o in self.outputs))
        return (*self.predicates, *group.keys, *(a.arg for a in group.aggregates if a.arg is not None))

    @cached_property
    def columns(self) -> frozenset[SourceColumn]:
        """Every source column the query uses, time columns not included unless it names them."""
        return frozenset((*self.named, *(c for e in self.expressions for c in columns_of(e))))

    @cached_property
    def gathered(self) -> tuple[SourceColumn, ...]:
        """The columns that must be there when a result is complete, in a fixed order."""
        group = self.group
        exprs: list[Expr] = [o.expr for o in self.outputs] if group is None else [*group.keys]
        if group is not None:
            exprs += [a.arg for a in group.aggregates if a.arg is not None]
        found = [c for e in exprs for c in sorted(columns_of(e), key=_place)]
        if self.partial:  # the key of a result is made of them
            found += sorted((c for c in self.columns if c.source in self.given), key=_place)
        return tuple(dict.fromkeys(found))

    @property
    def counts_rows(self) -> bool:
        """Whether a source has a ROWS window: then all rows wait for the watermark, because ROWS windows count in
        order."""
        return any(s.window.kind is WindowKind.ROWS for s in self.sources)

    @property
    def asks(self) -> bool:
        """Whether a table is asked."""
        return any(source.stream.is_asked for source in self.sources)

    @property
    def given(self) -> tuple[int, ...]:
        """The sources whose rows are not asked for: streams, and tables that are loaded."""
        return tuple(number for number, source in enumerate(self.sources) if not source.stream.is_asked)

    def columns_of_source(self, source: int) -> tuple[str, ...]:
        """The columns the query uses of one source, in the order of its schema: the tie-break of ROWS windows."""
        used = {c.name for c in self.columns if c.source == source}
        return tuple(n for n in self.sources[source].stream.schema.names if n in used)


def _place(column: SourceColumn) -> tuple[int, str]:
    return column.source, column.name
