"""The layout of a SteM: what it keeps of each row. The plan decides it before there are rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from eddyline.bound.expr import Expr, of_source

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
    probed: bool = True
    """Whether tuples probe the SteM. If not, it has no indexes."""
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

    def of_source(self, source: int) -> Layout:
        """The same layout in the names of another source of the same stream."""

        def keys(some: tuple[Key, ...]) -> tuple[Key, ...]:
            return tuple(tuple(of_source(e, source) for e in on) for on in some)

        def named(some: tuple[Expr, ...]) -> tuple[Expr, ...]:
            return tuple(of_source(e, source) for e in some)

        return replace(
            self,
            stored=named(self.stored),
            keys=named(self.keys),
            indexes=keys(self.indexes),
            order_keys=named(self.order_keys),
            edges=keys(self.edges),
        )


def aliases_of(owner: int, owners: Sequence[int]) -> list[int]:
    """The sources that keep their rows in the SteM of a source."""
    return [source for source, its in enumerate(owners) if its == owner]


def together(layouts: Sequence[Layout], owners: Sequence[int]) -> list[Layout]:
    """The layouts of sources, of which each keeps its rows in the SteM of its owner, itself or another source. Sources
    with one SteM have one layout, each in its own names: everything that one of them needs. The SteM has the indexes of
    all edges in every plan, so no change of the plan makes or frees one."""
    found = list(layouts)
    for owner in {owner for source, owner in enumerate(owners) if owner != source}:
        aliases = aliases_of(owner, owners)
        alike = [layouts[source].of_source(owner) for source in aliases]
        stored = dict.fromkeys(expr for layout in alike for expr in layout.stored)
        edges = tuple(dict.fromkeys(on for layout in alike for on in layout.edges))
        whole = replace(alike[0], stored=tuple(stored), edges=edges, indexes=edges if alike[0].probed else ())
        for source in aliases:
            found[source] = whole.of_source(source)
    return found
