"""The layout of a SteM: what it keeps of each row. The plan decides it before there are rows."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from eddyline.bound.expr import Expr

Key = tuple[Expr, ...]
"""The expressions of an index: one, or several together."""


@dataclass(frozen=True)
class Layout:
    """What a SteM keeps of each row. For a source: expressions over that source alone, evaluated when the row is
    appended. For a larger span: the row numbers of its components, and copies of the codes of indexes and order
    keys."""

    timed: bool
    """Whether rows have an event time."""
    ordinal: bool
    """Whether the ordinal of each row in its stream is kept (for ROWS windows)."""
    stored: tuple[Expr, ...]
    """Expressions whose values can be gathered."""
    keys: tuple[Expr, ...]
    """Expressions that are compared for equality; never NULL."""
    indexes: tuple[Key, ...]
    """Hash indexes, each over one or several of `keys`."""
    order_keys: tuple[Expr, ...]
    """Expressions that are compared for order; never NULL."""
    edges: tuple[Key, ...] = ()
    """The keys, of one or several expressions, by which rows are probed or probe others."""
    components: tuple[int, ...] = ()
    """The sources of a larger span."""
    states: tuple[tuple[int, str, pa.DataType], ...] | None = None
    """For tuples with weights, the columns of aggregate states: (number of the aggregate, name, type)."""

    @property
    def needed(self) -> tuple[Expr, ...]:
        """Every expression whose values an append needs."""
        return tuple(dict.fromkeys((*self.stored, *self.keys, *self.order_keys)))
