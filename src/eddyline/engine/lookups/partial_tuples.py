"""The tuples of a batch that wait for answers: the partial results of SELECT PARTIAL (paper 001, sections 3.4 and 4.4).

For such a query a tuple probes the SteM of a table that is asked only when it has a row of every other source, and has
passed every predicate over the rows that it has (plan/plan.py). So a tuple that waits for an answer is a partial
result: all that it lacks are rows of tables. It is kept here until the end of the batch, and is given if it still waits
then. Nothing is kept over a commit.

A tuple that waits for one table may find rows of others. It is given with those that were there when it started: with
rows that come later other tuples start, which are kept here too (the TimeStamp rule). So each tuple is made once, in
one batch and one slot, whichever table it probed first, and is given at most once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np

from eddyline.engine.lookups.index import keys_of
from eddyline.plan.plan import Signature
from eddyline.plan.steps import Probe
from eddyline.routing.asker import Gather
from eddyline.routing.eddy import Eddy
from eddyline.routing.packet import Packet, in_parts, merged
from eddyline.state.key_values import KeyValues, values


@dataclass(frozen=True)
class _WhoAsked:
    """Tuples that wait after a step, and how their values are gathered."""

    step: Probe
    packet: Packet
    gather: Gather

    def asking(self, packet: Packet, but: Collection[KeyValues] = ()) -> Iterator[Packet]:
        """Those that can match a row of the table, and asked for another key than these."""
        if not self.step.asks:  # they wait for a scan
            yield packet
            return
        for part, (keys, which) in in_parts(packet, lambda some: (some, keys_of(self.step.asks[0], some, self.gather))):
            if but:
                which = which[np.fromiter((key not in but for key in values(keys)), np.bool_, keys.num_rows)]
            yield part if which.size == part.size else part.take(which)


class PartialTuples:
    """The tuples that have asked in this batch, if partial results are wanted."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self._waiting: list[_WhoAsked] = []

    def add(self, step: Probe, packet: Packet, gather: Gather) -> None:
        """These tuples wait, for the answers to their keys or for a scan."""
        if self.wanted:
            self._waiting.append(_WhoAsked(step, packet, gather))

    def fail(self, method: int, sources: Collection[int], keys: Collection[KeyValues]) -> None:
        """The lookup of these keys has failed: tuples that asked for them are dead."""
        left: list[_WhoAsked] = []
        for some in self._waiting:
            if some.step.asks and some.step.asks[0].method == method and some.step.target in sources:
                left += [_WhoAsked(some.step, part, some.gather) for part in some.asking(some.packet, keys)]
            else:
                left.append(some)
        self._waiting = left

    def take(self, eddy: Eddy, lacking: Callable[[int, Packet], Packet]) -> list[Packet]:
        """At the end of the batch: the tuples that still wait, a packet for each signature. `lacking` returns the
        tuples of a packet to which rows of a table, by its source, may still come."""
        found: dict[Signature, list[Packet]] = {}
        for some in self._waiting:
            for packet in some.asking(lacking(some.step.target, some.packet)):
                for partial in _with_known(eddy, lacking, packet, frozenset([some.step.target])):
                    found.setdefault(partial.signature, []).append(partial)
        self.clear()
        return [merged(packets) for packets in found.values()]

    def clear(self) -> None:
        """Nobody waits: the batch has ended, or is undone."""
        self._waiting = []


def _with_known(
    eddy: Eddy, lacking: Callable[[int, Packet], Packet], packet: Packet, missing: frozenset[int]
) -> Iterator[Packet]:
    """Tuples with the rows of other tables that were there when they started, and without those of tables of which
    rows may still come. These tables are `missing`."""
    for traffic in eddy.routes.entry(packet.signature).steps if packet.size else ():
        step = traffic.step
        if isinstance(step, Probe) and step.target in missing:
            continue
        for piece in eddy.output_of(traffic, packet):
            yield from _with_known(eddy, lacking, piece, missing)
        if isinstance(step, Probe):
            yield from _with_known(eddy, lacking, lacking(step.target, packet), missing | {step.target})
        return
    for table in missing:
        packet = lacking(table, packet)
    if packet.size:
        yield packet
