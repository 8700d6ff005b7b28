"""Which aliases of a stream keep their rows in one SteM (paper 001, section 2.2).

The rows of a stream with several aliases are stored and indexed once, in the SteM of the first alias, the *owner*. Each
alias has an order of builds of its own over them (state/stem.py). That needs no other rule for results if both aliases
have exactly the same rows in every slot, at every moment:

- the same filters, and the same keys and order keys: a row with a NULL in one of them is not stored;
- the same slots: every axis places a row alike for both, and no hot key is spread for one of them and copied for the
  other (with `balance` that may happen in any batch, so nothing is shared then);
- the same groups, where groups of rows can leave memory.

Windows may differ: the SteM keeps rows until no alias needs them. With a ROWS window rows are counted, stored and
released for each alias. Where a table is asked, rows wait for answers by source. Neither shares anything.
"""

from __future__ import annotations

from eddyline.bound.expr import of_source
from eddyline.plan.partition import Partitioning
from eddyline.plan.plan import Plan
from eddyline.plan.spill_axis import SpillAxis, spill_axis
from eddyline.settings import Settings


def owners(plan: Plan, partitioning: Partitioning, settings: Settings) -> tuple[int, ...]:
    """For each source the one in whose SteM its rows are; empty if no sources share one. The tree of the plan does not
    matter."""
    query, found = plan.query, list[int]()
    if query.counts_rows or query.asks or settings.balance != "off":
        return ()
    axis = spill_axis(plan, settings.groups) if settings.has_groups else None
    for source in range(len(query.sources)):
        alike = (o for o in range(source) if found[o] == o and _share(plan, partitioning, axis, o, source))
        found.append(next(alike, source))
    return () if found == list(range(len(found))) else tuple(found)


def _share(plan: Plan, partitioning: Partitioning, axis: SpillAxis | None, one: int, other: int) -> bool:
    """Whether two sources always have the same rows."""
    sources = plan.query.sources
    if sources[one].stream.name != sources[other].stream.name or _kept(plan, one) != _kept(plan, other):
        return False
    if not all(split.places_alike(one, other) for split in partitioning.axes):
        return False
    return axis is None or (axis.has(one) and axis.has(other) and axis.places_alike(one, other))


def _kept(plan: Plan, source: int) -> object:
    """A value that is equal for two aliases of one stream exactly if they keep the same rows."""
    layout, filters = plan.layouts[source].of_source(0), plan.graph.filters[source]
    of_stream = frozenset(of_source(predicate, 0) for predicate in filters)
    return of_stream, frozenset(layout.keys), frozenset(layout.order_keys), layout.probed
