"""The probe step: each tuple of a packet finds its matches in one SteM, and becomes one tuple for each match.

A match is a row that was built before the tuple started, has not expired, and lies within the tuple's time interval.
Then everything that the probe decides is verified: keys that were compared only by hash, predicates that are now
complete, and ROWS windows. The results come in pieces of at most `largest_packet` tuples (tuning.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount
from eddyline.kernels.scan import apart, narrow
from eddyline.plan.steps import KeyAccess, Probe, RangeAccess
from eddyline.routing.invariants import check_matches
from eddyline.routing.packet import Packet
from eddyline.routing.payload import Payload
from eddyline.routing.routing_arrays import Traffic
from eddyline.routing.steps.windows import WindowStep
from eddyline.routing.weights import part_of
from eddyline.state.column import RowNumbers
from eddyline.state.prober import Prober
from eddyline.state.probing import NO_BOUND, Limits, Matches

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class ProbeStep:
    """Probes SteMs through their probers."""

    def __init__(
        self,
        probers: Sequence[Prober],
        payload: Payload,
        windows: WindowStep | None,
        passed: NDArray[np.int64],
        check: bool,
        largest: int,
    ) -> None:
        """`passed[0]` counts the rows that were visited and were too new; `check` verifies every match; a piece has
        at most `largest` tuples."""
        self._probers, self._rows = probers, [prober.rows for prober in probers]
        self._payload, self._windows, self._passed = payload, windows, passed
        self._check, self._largest = check, largest

    def pieces(
        self,
        traffic: Traffic,
        step: Probe,
        packet: Packet,
        errors: ErrorCount,
        unmatched: NDArray[np.bool_] | None = None,
    ) -> Iterator[Packet]:
        """The tuples of a packet, each joined with a match. `unmatched` becomes false for tuples that find a row."""
        prober = self._probers[step.target]
        before = prober.rows_before(packet.numbers)
        if before.max() <= prober.min_live:
            return
        low, high = self._interval(traffic.within, packet)
        limits = prober.limits(low, high, before, self._largest, self._passed)
        for tuples, rows in self._matches(step, prober, packet, limits):
            if unmatched is not None:
                unmatched[tuples] = False
            if self._check:
                check_matches(step.target, tuples, rows, limits)
            if prober.rows.components:
                joined = self._joined(traffic, step, packet, tuples, rows)
            else:
                joined = packet.joined(tuples, {step.target: rows}, traffic.after)
            joined = self._verified(step, joined, errors)
            if joined.size:
                yield joined

    def _matches(self, step: Probe, prober: Prober, packet: Packet, limits: Limits) -> Iterator[Matches]:
        access = step.access
        if isinstance(access, KeyAccess):
            keys = self._rows[access.partner].key_values(access.partner_on)
            return prober.probe_key(access.on, keys, packet.rows[access.partner], limits)
        if isinstance(access, RangeAccess):
            return prober.probe_range(access.on, *self._key_range(access, packet), limits)
        return prober.probe_all(packet.size, limits)

    def _joined(self, traffic: Traffic, step: Probe, packet: Packet, tuples: RowNumbers, rows: RowNumbers) -> Packet:
        """The matches in an intermediate SteM whose components are live and all within the bounds of time."""
        prober = self._probers[step.target]
        live = prober.live(rows, self._probers)
        if not live.all():
            tuples, rows = tuples[live], rows[live]
        components = {s: column.values[rows] for s, column in prober.rows.components.items()}
        if prober.rows.carried is not None:
            components[part_of(step.target)] = rows
        joined = packet.joined(tuples, components, traffic.after)
        keep = np.ones(rows.size, np.bool_)
        for source, (other, back, on) in traffic.apart:
            times, other_times = self._rows[source].times.values, self._rows[other].times.values
            apart(keep, times, joined.rows[source], other_times, joined.rows[other], on, back)
        return joined.kept(keep)

    def _interval(self, within: tuple[tuple[int, int, int], ...], packet: Packet) -> tuple[RowNumbers, RowNumbers]:
        """The time interval of matches, for each tuple."""
        if not within:
            return NO_BOUND, NO_BOUND
        low, high, first = np.empty(packet.size, np.int64), np.empty(packet.size, np.int64), True
        for source, back, on in within:
            narrow(low, high, self._rows[source].times.values, packet.rows[source], back, on, first)
            first = False
        return low, high

    def _key_range(self, access: RangeAccess, packet: Packet) -> tuple[RowNumbers, RowNumbers]:
        """The range of order keys of matches, both ends included; a strict bound becomes the next integer."""
        least, most = np.full(packet.size, _LEAST), np.full(packet.size, _MOST)
        nothing = np.zeros(packet.size, np.bool_)
        for op, partner, key, offset in access.limits:
            codes = self._rows[partner].order_values(key)[packet.rows[partner]]
            shift = offset + {"<": -1, ">": 1}.get(op, 0)
            shifted = codes + shift
            beyond = (shifted < codes) != (shift < 0) if shift else nothing
            upper = op in ("<", "<=")
            if upper == (shift < 0):  # beyond the range of integers, on the side where nothing can match
                nothing = nothing | beyond
                shifted[beyond] = codes[beyond]
            else:
                shifted[beyond] = _MOST if upper else _LEAST
            (np.minimum if upper else np.maximum)(most if upper else least, shifted, out=most if upper else least)
        least[nothing], most[nothing] = _MOST, _LEAST
        return least, most

    def _verified(self, step: Probe, packet: Packet, errors: ErrorCount) -> Packet:
        """The matches that satisfy everything that this probe decides."""
        for e in step.equalities:
            left, right, rows = self._rows[e.left], self._rows[e.right], packet.rows
            packet = packet.kept(left.same_key(e.left_expr, rows[e.left], right, e.right_expr, rows[e.right]))
        for predicate in step.predicates:
            packet = packet.kept(self._payload.mask(predicate, packet, errors))
        return packet if self._windows is None else self._windows.within(packet)
