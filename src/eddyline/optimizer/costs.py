"""What the steps of the engine cost: seconds and bytes, all that a machine contributes to the cost model.

`DEFAULTS` are for tests and for code that does not measure; calibrate.py measures them where the query runs. `times`
corrects them by what a running query showed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class StepCosts:
    """Seconds where not said otherwise."""

    insert_row: float
    """A row or tuple comes into a SteM: times, number, columns."""
    insert_index: float
    """It is put into one hash index."""
    insert_sorted: float
    """It is put into one sorted index."""
    insert_component: float
    """One row number of a tuple of an intermediate SteM."""
    delete_row: float
    """A row or tuple expires."""
    probe_hash: float
    """A tuple asks a hash index."""
    probe_range: float
    """A tuple asks a sorted index."""
    probe_list_row: float
    """A tuple looks at one row of a list, and what is asked of the two is evaluated."""
    match: float
    """One match: it is found, written down and put into the next queue."""
    index_bytes: float
    """Bytes that a row takes in a hash or sorted index."""
    component_bytes: float = 8.0
    """Bytes of a row number, of a time, of a key copied into an intermediate SteM."""
    group_tuple: float = 85e-9
    """A tuple is put into its group, at the end of the plan or before a join (`+`)."""
    group_packet: float = 450e-6
    """What that takes for a packet, however few tuples it has."""

    def scaled(self, factors: Mapping[str, float]) -> StepCosts:
        """Some of them times a factor, by name.

        >>> DEFAULTS.scaled({"match": 2.0}).match / DEFAULTS.match
        2.0
        """
        return replace(self, **{name: getattr(self, name) * factor for name, factor in factors.items()})

    def times(self, factor: float) -> StepCosts:
        """All seconds times a factor; bytes stay.

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
