"""The eddy loop: take a packet, let the router choose a step, take it, go on with what comes out.

Exactly once: every row is built before it probes, and a probe returns only rows built before the row that started it.
So of the components of a result exactly one, the one built last, can find all the others; and it finds each of them
once, because a route adds each missing source once and every predicate is applied when its span is complete. Nothing
here depends on the order in which packets are taken: packets are taken depth first, and probes give their matches in
pieces, so that the tuples in flight stay bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.kernels.scan import narrow
from eddyline.plan.bounds import UNBOUND
from eddyline.plan.plan import KeyAccess, Plan, Probe, RangeAccess, Select
from eddyline.query.evaluate import ErrorCount, mask
from eddyline.query.expr import Expr, columns_of
from eddyline.routing.invariants import check_matches, check_packet
from eddyline.routing.packet import Packet, Rows
from eddyline.routing.router import Router
from eddyline.routing.routing_arrays import RoutingArrays, Traffic
from eddyline.routing.rows_windows import Clock
from eddyline.settings import Settings
from eddyline.state.probing import NO_BOUND, Limits, Matches
from eddyline.state.stem import SteM

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Eddy:
    """Routes packets through the SteMs and selections of one plan."""

    def __init__(
        self,
        plan: Plan,
        stems: Sequence[SteM],
        clocks: Mapping[int, Clock],
        router: Router,
        settings: Settings,
        errors: ErrorCount,
        output: Callable[[Packet], None],
    ) -> None:
        self._plan, self._stems, self._clocks, self._router = plan, stems, clocks, router
        self._room, self._check, self._errors, self._output = settings.packet, settings.check, errors, output
        self.routes = RoutingArrays(plan)

    def run(self, packet: Packet) -> None:
        """Route a packet of rows that were just built, and everything that comes of it."""
        if self._clocks:
            packet = self._in_rows_windows(packet)
        flow: list[Iterator[Packet]] = [self._pieces(packet)]
        while flow:
            packet_now = next(flow[-1], None)
            if packet_now is None:
                flow.pop()
                continue
            if self._check:
                check_packet(packet_now, self._stems)
            entry = self.routes.entry(packet_now.signature)
            if not entry:
                self._output(packet_now)
                continue
            traffic = self._router.choose(entry)
            traffic.tuples += packet_now.size
            step = traffic.step
            outcome = self._select(step, packet_now) if isinstance(step, Select) else self._probe(step, packet_now)
            flow.append(_counted(outcome, traffic))

    def _pieces(self, packet: Packet) -> Iterator[Packet]:
        for at in range(0, packet.size, self._room):
            yield packet.take(np.arange(at, min(at + self._room, packet.size))) if packet.size > self._room else packet

    def _select(self, step: Select, packet: Packet) -> Iterator[Packet]:
        keep = self._mask(step.predicate, packet)
        if keep.any():
            yield (packet if keep.all() else packet.take(keep)).passed(step.selection)

    def _probe(self, step: Probe, packet: Packet) -> Iterator[Packet]:
        stem = self._stems[step.target]
        low, high = self._interval(step.target, packet)
        limits = Limits(low, high, stem.rows_before(packet.number), stem.min_live, self._room)
        if limits.before <= limits.min_live:
            return
        for tuples, rows in self._matches(step, stem, packet, limits):
            if self._check:
                check_matches(step.target, rows, limits)
            joined = packet.joined(tuples, step.target, rows)
            joined = self._verified(step, stem, joined)
            if joined.size:
                yield joined

    def _matches(self, step: Probe, stem: SteM, packet: Packet, limits: Limits) -> Iterator[Matches]:
        access = step.access
        if isinstance(access, KeyAccess):
            partner = self._stems[access.partner]
            return stem.probe_key(access.on, partner.key_values(access.partner_on), packet.rows[access.partner], limits)
        if isinstance(access, RangeAccess):
            return stem.probe_range(access.on, *self._key_range(access, packet), limits)
        return stem.probe_all(packet.size, limits)

    def _interval(self, target: int, packet: Packet) -> tuple[Rows, Rows]:
        """When a match of the target may have happened, for each tuple."""
        most = self._plan.graph.bounds.most
        bounding = [s for s in packet.rows if most[s][target] < UNBOUND or most[target][s] < UNBOUND]
        if not bounding:
            return NO_BOUND, NO_BOUND
        low, high = np.full(packet.size, _LEAST), np.full(packet.size, _MOST)
        for s in bounding:
            narrow(low, high, self._stems[s].times.values, packet.rows[s], most[s][target], most[target][s])
        return low, high

    def _key_range(self, access: RangeAccess, packet: Packet) -> tuple[Rows, Rows]:
        """Between which order keys a match must lie, both included; a strict limit is the next integer."""
        least, most = np.full(packet.size, _LEAST), np.full(packet.size, _MOST)
        nothing = np.zeros(packet.size, np.bool_)
        for op, partner, key, offset in access.limits:
            codes = self._stems[partner].order_values(key)[packet.rows[partner]]
            shift = offset + {"<": -1, ">": 1}.get(op, 0)
            shifted = codes + shift
            beyond = (shifted < codes) != (shift < 0) if shift else nothing
            upper = op in ("<", "<=")
            if upper == (shift < 0):  # past the end of the integers on the side that leaves nothing
                nothing = nothing | beyond
                shifted[beyond] = codes[beyond]
            else:
                shifted[beyond] = _MOST if upper else _LEAST
            (np.minimum if upper else np.maximum)(most if upper else least, shifted, out=most if upper else least)
        least[nothing], most[nothing] = _MOST, _LEAST
        return least, most

    def _verified(self, step: Probe, stem: SteM, packet: Packet) -> Packet:
        """The matches for which everything holds that this probe decides."""
        for e in step.equalities:
            mine, partner, theirs = e.seen_from(step.target)
            rows, other_rows = packet.rows[step.target], packet.rows[partner]
            packet = _kept(packet, stem.same_key(mine, rows, self._stems[partner], theirs, other_rows))
        for predicate in step.predicates:
            packet = _kept(packet, self._mask(predicate, packet))
        if self._clocks:
            packet = self._in_rows_windows(packet)
        return packet

    def _in_rows_windows(self, packet: Packet) -> Packet:
        times = newest(self._stems, packet)
        keep = np.ones(packet.size, np.bool_)
        for source, clock in self._clocks.items():
            if source in packet.rows:
                keep &= self._stems[source].ordinals.values[packet.rows[source]] >= clock.least(times)
        return _kept(packet, keep)

    def gather(self, packet: Packet, exprs: Sequence[Expr]) -> dict[Expr, pa.Array]:
        """The values of stored columns for the tuples of a packet."""
        values: dict[Expr, pa.Array] = {}
        for expr in exprs:
            for column in columns_of(expr):
                if column not in values:
                    values[column] = self._stems[column.source].gather(column, packet.rows[column.source])
        return values

    def _mask(self, predicate: Expr, packet: Packet) -> NDArray[np.bool_]:
        return mask(predicate, self.gather(packet, [predicate]), packet.size, self._errors)


def newest(stems: Sequence[SteM], packet: Packet) -> Rows:
    """The newest time among the components of each tuple."""
    times = np.full(packet.size, _LEAST)
    for source, rows in packet.rows.items():
        if stems[source].layout.timed:
            np.maximum(times, stems[source].times.values[rows], out=times)
    return times


def _kept(packet: Packet, keep: NDArray[np.bool_]) -> Packet:
    return packet if keep.all() else packet.take(keep)


def _counted(packets: Iterator[Packet], traffic: Traffic) -> Iterator[Packet]:
    for packet in packets:
        traffic.produced += packet.size
        yield packet
