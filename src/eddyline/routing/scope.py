"""The scope of an eddy: which part of a plan it runs, and which tuples of that part are its own.

An eddy that is alone runs the whole plan. During a migration two eddies work on the same rows, each on a part of a
plan. A scope is a value, so no eddy is ever between two scopes: `Eddy.enter` exchanges it as a whole, while nothing
waits.
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
    """Which rows are old, while a parallel track runs."""

    first: Mapping[int, int]
    """By stream the first new row. Rows of tables are neither old nor new."""

    def among(self, packet: Packet) -> NDArray[np.bool_]:
        """Which tuples have an old row."""
        old = np.zeros(packet.size, np.bool_)
        for source, first in self.first.items():
            if source in packet.rows:
                old |= packet.rows[source] < first
        return old


@dataclass(frozen=True)
class Scope:
    """Operators are given by their spans."""

    given: frozenset[int]
    """The operators whose tuples leave the eddy."""
    operators: frozenset[int] | None = None
    """The operators that are run; None for all."""
    filters: frozenset[int] = frozenset()
    """The operators of which only selections are run, on whole tuples that are started."""
    past: bool = False
    """Rows are older than the ROWS windows know, so windows are not checked."""
    old: OldRows | None = None
    """While another eddy joins the new rows among themselves. Tuples with an old row and tuples without one are then
    put into different groups."""
    shared: frozenset[int] = frozenset()
    """The operators that this other eddy runs, too. Of their tuples only those with an old row are this eddy's own."""

    def runs(self, operator: int, span: int) -> bool:
        """Whether tuples of a span take steps in an operator."""
        if self.operators is None or operator in self.operators:
            return True
        return operator == span and operator in self.filters

    def own(self, packet: Packet) -> Packet:
        """Of the whole tuples of an operator those that this eddy is to give."""
        if self.old is None or packet.signature[0] not in self.shared:
            return packet
        return packet.kept(self.old.among(packet))


def whole(plan: Plan) -> Scope:
    """All of a plan."""
    return Scope(given=frozenset((plan.tree.span,)))
