"""The scope of an eddy: which part of a plan it runs, and which tuples of that part are its own.

An eddy that is alone runs the whole plan. During a migration two eddies work on the same rows, each on a part of a
plan. A scope is an immutable value: `Eddy.enter` exchanges it as a whole, while no tuple waits, so an eddy is never
between two scopes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eddyline.plan.plan import Plan
from eddyline.routing.packet import Packet


@dataclass(frozen=True)
class OldRows:
    """Tells which rows are old while a parallel track runs."""

    first: Mapping[int, int]
    """The first new row of each stream. Rows of tables are neither old nor new."""

    def among(self, packet: Packet) -> NDArray[np.bool_]:
        """Which tuples have an old row."""
        old = np.zeros(packet.size, np.bool_)
        for source, first in self.first.items():
            if source in packet.rows:
                old |= packet.rows[source] < first
        return old


@dataclass(frozen=True)
class Scope:
    """The part of a plan that an eddy runs. Operators are given by their spans."""

    given: frozenset[int]
    """The operators whose tuples leave the eddy."""
    operators: frozenset[int] | None = None
    """The operators that are run; None for all."""
    filters: frozenset[int] = frozenset()
    """Operators of which only the selections run, on whole tuples that are started there."""
    past: bool = False
    """Whether rows are older than ROWS windows remember, so that windows are not checked."""
    old: OldRows | None = None
    """Set while another eddy joins the new rows among themselves. Tuples with an old row and tuples without one then go
    into different groups."""
    shared: frozenset[int] = frozenset()
    """The operators that this other eddy runs, too. Of their tuples, only those with an old row are this eddy's own."""

    def runs(self, operator: int, span: int) -> bool:
        """Whether tuples of a span take steps in an operator."""
        if self.operators is None or operator in self.operators:
            return True
        return operator == span and operator in self.filters

    def own(self, packet: Packet) -> Packet:
        """The tuples, of the whole tuples of an operator, that this eddy outputs."""
        if self.old is None or packet.signature[0] not in self.shared:
            return packet
        return packet.kept(self.old.among(packet))


def whole(plan: Plan) -> Scope:
    """The scope of an eddy that runs the whole plan."""
    return Scope(given=frozenset((plan.tree.span,)))
