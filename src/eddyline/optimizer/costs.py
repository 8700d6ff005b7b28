"""The costs of the engine's steps in seconds and bytes: the only part of the cost model that depends on the machine.

`DEFAULTS` are for tests and for code that does not measure. calibrate.py measures the costs where the query runs, and
`times` corrects them by the CPU of a running query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from eddyline.routing.tuning import DEFAULT as ROUTING


@dataclass(frozen=True)
class StepCosts:
    """The cost of one step each, in seconds unless the field says otherwise."""

    insert_row: float
    """Append a row or tuple to a SteM: times, number, columns."""
    insert_index: float
    """Insert it into one hash index."""
    insert_sorted: float
    """Insert it into one sorted index."""
    insert_component: float
    """Append one row number of a tuple to an intermediate SteM."""
    delete_row: float
    """Release an expired row or tuple."""
    probe_hash: float
    """Probe a hash index with a tuple."""
    probe_range: float
    """Probe a sorted index with a tuple."""
    probe_list_row: float
    """Compare a tuple with one row of a list: evaluate the predicates between the two."""
    match: float
    """Find one match, write it down and put it into the next queue."""
    index_bytes: float
    """Bytes that a row takes in a hash or sorted index."""
    component_bytes: float = 8.0
    """Bytes of a row number, a time, or a key copied into an intermediate SteM."""
    call: float = ROUTING.call
    """The fixed cost of a build or of a packet's step. It is no part of prices: it tells an eddy how large packets
    should be, and a slot how large slices of the input should be."""
    group_tuple: float = 85e-9
    """Put a tuple into its group, at the end of the plan or before a join (`+`)."""
    group_packet: float = 450e-6
    """Fixed cost of grouping the tuples of one packet."""

    def scaled(self, factors: Mapping[str, float]) -> StepCosts:
        """Multiply the named costs by their factors.

        >>> DEFAULTS.scaled({"match": 2.0}).match / DEFAULTS.match
        2.0
        """
        return replace(self, **{name: getattr(self, name) * factor for name, factor in factors.items()})

    def times(self, factor: float) -> StepCosts:
        """Multiply all seconds by a factor; bytes stay.

        >>> twice = DEFAULTS.times(2.0)
        >>> twice.match / DEFAULTS.match, twice.index_bytes / DEFAULTS.index_bytes
        (2.0, 1.0)
        """
        return self.scaled({name: factor for name in self.names() if not name.endswith("_bytes")})

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all costs."""
        return tuple(field.name for field in fields(cls))


DEFAULTS = StepCosts(
    insert_row=20e-9,
    insert_index=50e-9,
    insert_sorted=120e-9,
    insert_component=4e-9,
    delete_row=4e-9,
    probe_hash=60e-9,
    probe_range=200e-9,
    probe_list_row=1e-9,
    match=25e-9,
    index_bytes=40.0,
)
