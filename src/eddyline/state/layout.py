"""What a SteM keeps, as data: decided by the plan, before there are rows."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from eddyline.bound.expr import Expr

Key = tuple[Expr, ...]
"""What an index is over: one expression, or several together."""


@dataclass(frozen=True)
class Layout:
    """What a SteM keeps of each row: expressions over its source alone, evaluated when the row is built; of a larger
    span the rows of its components, and copies of the codes of indexes and order keys."""

    timed: bool
    """Whether rows have an event time."""
    ordinal: bool
    """Whether the place of each row in its stream is kept (ROWS windows)."""
    stored: tuple[Expr, ...]
    """What can be gathered."""
    keys: tuple[Expr, ...]
    """What is compared for equality; never NULL."""
    indexes: tuple[Key, ...]
    """Hash indexes, each over one or several of `keys`."""
    order_keys: tuple[Expr, ...]
    """What is compared for order; never NULL."""
    edges: tuple[Key, ...] = ()
    """The keys, one or several, by which rows are looked up or look for others."""
    components: tuple[int, ...] = ()
    """The sources of a larger span."""
    states: tuple[tuple[int, str, pa.DataType], ...] | None = None
    """Of tuples with weights, the columns of what aggregates have of them: (number of the aggregate, name, type)."""

    @property
    def needed(self) -> tuple[Expr, ...]:
        """Every expression a build wants to be given."""
        return tuple(dict.fromkeys((*self.stored, *self.keys, *self.order_keys)))
