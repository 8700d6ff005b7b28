"""What the eddy needs of the access modules of tables that are asked (engine/lookups/modules.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from eddyline.bound.expr import Expr
from eddyline.plan.steps import Probe
from eddyline.routing.packet import Packet
from eddyline.state.rows import Rows

Gather = Callable[[Packet, Sequence[Expr]], Mapping[Expr, pa.Array]]
"""Gathers the stored columns that some expressions need, for the tuples of a packet."""


class Asker(Protocol):
    """Asks for rows that SteMs of tables lack."""

    def ask(self, step: Probe, packet: Packet, rows: Sequence[Rows], gather: Gather) -> None:
        """Tuples probe the SteM of a table: ask for the rows that it may lack, and other tables while they wait."""
        ...

    def check(self, step: Probe, packet: Packet, rows: Sequence[Rows], gather: Gather) -> None:
        """Check that these tuples, which have probed the SteM, have asked for what it lacks, and for nothing else."""
        ...

    def own(self, packet: Packet) -> Packet:
        """The complete tuples without those that were dead when a row of them was asked for."""
        ...

    @property
    def has_late(self) -> bool:
        """Whether `own` may leave out a tuple."""
        ...
