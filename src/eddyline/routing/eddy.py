"""The eddy loop: the scheduler picks a meta-queue, the router the step for its packet, what comes out is queued again.

Exactly once: within a join operator every tuple of a child is built before it probes, and a probe returns only tuples
built before the one that started it. So of the components of a result exactly one, the one built last, can find all the
others; and it finds each of them once, because a route adds each missing child once and every predicate is applied when
its span is complete. What the operator gives is built as a tuple of its own, with a new number, and starts in the
operator above, where the same holds. Nothing here depends on the order in which packets are taken.

What is in flight stays bounded: probes give their matches in pieces, and a queue that is full is served before the
probe that fills it goes on. A probe is finished before the SteM that it reads is built on, because a build may move the
hash table; queued packets are row numbers, which never move.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.kernels.scan import apart, narrow
from eddyline.plan.plan import KeyAccess, Plan, Probe, RangeAccess, Select, Signature
from eddyline.query.evaluate import ErrorCount, mask
from eddyline.query.expr import Expr, columns_of
from eddyline.routing.decisions import DecisionLog
from eddyline.routing.invariants import check_matches, check_packet
from eddyline.routing.meta_queue import MetaQueue
from eddyline.routing.packet import SAMPLE, Packet, in_parts, started
from eddyline.routing.router import router
from eddyline.routing.routing_arrays import Entry, RoutingArrays, Traffic
from eddyline.routing.rows_windows import Clock
from eddyline.routing.scheduler import LARGEST, Scheduler
from eddyline.routing.statistics import Work
from eddyline.routing.weights import Old, Weights, part_of
from eddyline.settings import Settings
from eddyline.state.column import RowNumbers
from eddyline.state.prober import Prober
from eddyline.state.probing import NO_BOUND, Limits, Matches
from eddyline.state.rows import newest
from eddyline.state.shelf import Saved
from eddyline.state.stem import SteM
from eddyline.state.stores.store import TooMuchText
from eddyline.state.view import View

ENOUGH = 4096
"""Tuples that a step may make of a sample."""
GATHERED = 1 << 29
"""Bytes of values that are gathered for tuples at a time: what is computed of them then fits in Arrow's arrays, too."""

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Eddy:
    """Routes packets through the SteMs and selections of one plan."""

    def __init__(
        self,
        plan: Plan,
        stems: Sequence[SteM | View],
        clocks: Mapping[int, Clock],
        settings: Settings,
        errors: ErrorCount,
        output: Callable[[Packet], None],
        clock: Callable[[], float],
        only: Collection[int] | None = None,
        filters: Collection[int] = (),
        past: bool = False,
    ) -> None:
        """`only` are the operators, by span, that are run; None for all: what comes out of the topmost of them goes to
        `output`, if it is in `given`. Of those in `filters` only selections are run, on whole tuples that are started.
        With `past` rows are older than what clocks know of ROWS windows."""
        self._stems, self._clocks, self._only, self._filters, self._past = stems, clocks, only, filters, past
        self._settings, self._errors, self._output, self.clock = settings, errors, output, clock
        self._check, self._reroute_every = settings.check, settings.reroute_every
        self.work, self.decisions = Work(), DecisionLog()
        self.change(plan)
        self.number = 0
        """How many tuples were built: what a tuple is built with says which others it may match."""
        self.left_out: Callable[[Packet], Packet] | None = None
        """While another eddy joins what is new: takes that away from what comes out of the operators in `shared`."""
        self.shared: Collection[int] = ()
        self.old: Old | None = None
        """Then: which tuples have an old row. Those that have none are no group with them."""
        self._foreign: set[int] = set()
        """The larger spans of which tuples were started that another eddy made."""

    def build(self, source: int, rows: int) -> None:
        """Build the next stored rows of a source; they begin their way."""
        begin = self.clock()
        first, last = self._stems[source].build(self.number, rows)
        self.work.building += self.clock() - begin
        packet = started(source, first, last, self.number)
        self.number += rows
        self.work.moment += rows
        if self._clocks:
            packet = self._in_rows_windows(packet)
        if packet.size:
            self._queue(packet, self.scheduler.start)

    def start(self, stem: View, signature: Signature, rows: int) -> None:
        """Build the next rows of another look at a SteM, of a source or not; those that live begin their way. If it is
        of a span that this eddy keeps itself, they are built there."""
        first, last = stem.build(self.number, rows)
        which = np.arange(max(first, stem.prober.min_live), last)
        components = {signature[0].bit_length() - 1: which}
        if stem.rows.components:
            self._foreign.add(signature[0])
            which = which[stem.prober.live(which, self._probers)]
            components = {s: column.values[which] for s, column in stem.rows.components.items()}
            if stem.rows.carried is not None:
                components[part_of(next(n for n, s in enumerate(self._stems) if s is stem))] = which
        packet = Packet(components, signature, np.array([self.number]), which.size)
        self.number += rows
        self.work.moment += rows
        if self._clocks and not self._past:
            packet = self._in_rows_windows(packet)
        if not packet.size:
            return
        entry = self.routes.entry(signature)
        if entry.stem is not None and self._stems[entry.stem] is not stem:
            packet = self._materialise(entry.stem, packet)
        self._put(entry, packet, self.scheduler.start)

    def take_over(self, packet: Packet) -> None:
        """What another eddy joined goes on here."""
        self._go_on(self.routes.entry(packet.signature), packet, self.scheduler.put)

    def change(self, plan: Plan) -> None:
        """Route by another plan, when nothing waits. What is known of modules stays."""
        self.plan, self.routes, self.given = plan, RoutingArrays(plan), frozenset((plan.tree.span,))
        ordered = self._settings.execution == "semi"
        self.scheduler = Scheduler(self.routes, self._settings.packet, self.clock, ordered)
        self._probers, self._rows = [s.prober for s in self._stems], [s.rows for s in self._stems]
        self._weights = Weights(plan, self._rows, self.gather, self._errors) if plan.grouped else None
        self._router = router(self._settings, plan, self.routes, self.work, self.decisions, self.clock)

    def close(self) -> None:
        """Let go of the SteMs; nothing can be routed any more."""
        self._probers.clear()
        self._rows.clear()

    def follow(self, orderings: Mapping[tuple[int, int], tuple[int, ...]]) -> None:
        """Tell the router the orders that the optimizer found best (see policies/policy.py)."""
        self._router.follow(orderings)

    def run(self, until: float = math.inf) -> None:
        """Serve meta-queues until none is eligible, or until some time: then it is time for new input."""
        while self.clock() < until and (queue := self.scheduler.next()) is not None:
            self._serve(queue)
            self.scheduler.end_round()
        self.work.end_slice()

    def flush(self, until: float = math.inf) -> None:
        """Serve everything that waits, or until some time: no tuple stays in a queue at the end of a micro-batch."""
        self.run(until)
        while self.clock() < until and (queue := self.scheduler.least_done()) is not None:
            self._serve(queue)
            self.scheduler.end_round()
            self.run(until)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits."""
        return self.scheduler.is_empty

    def clear(self) -> None:
        """Forget everything that waits."""
        self.scheduler.clear()

    def saved(self) -> Saved:
        """What was learned, for another process; at the end of a micro-batch, when nothing waits."""
        return {"work": self.work.saved(), "routes": self.routes.saved(), "router": self._router.saved()}

    def restore(self, saved: Saved) -> None:
        """Go on with what another process learned."""
        self.work.restore(saved["work"])
        self.routes.restore(saved["routes"], self.work)
        self._router.restore(saved["router"])

    def _queue(self, packet: Packet, put: Callable[[Packet], MetaQueue]) -> None:
        """To where it goes on, without what another eddy joins."""
        entry = self.routes.entry(packet.signature)
        if entry.whole:
            if self._check:
                check_packet(packet, self._probers, self.plan, self._foreign)
            if self.left_out is not None and packet.signature[0] in self.shared:
                packet = self.left_out(packet)
                if not packet.size:
                    return
        self._go_on(entry, packet, put)

    def _go_on(self, entry: Entry, packet: Packet, put: Callable[[Packet], MetaQueue]) -> None:
        """Out, if it is complete. What an operator below gives is built first, and starts again in the one above."""
        if entry.whole and packet.signature[0] in self.given:
            for part in (packet,) if self._weights is None else in_parts(packet, self._weights.looked_up):
                self._output(part)
            return
        if entry.stem is not None:
            packet = self._materialise(entry.stem, packet)
        self._put(entry, packet, put)

    def _put(self, entry: Entry, packet: Packet, put: Callable[[Packet], MetaQueue]) -> None:
        """To the meta-queue of its signature."""
        operator, whole = entry.operator, entry.operator == packet.signature[0]
        if self._only is not None and operator not in self._only and not (whole and operator in self._filters):
            return
        queue = put(packet)
        while queue.occupancy >= self.scheduler.full:
            self._serve(queue)

    def _materialise(self, target: int, packet: Packet) -> Packet:
        """Tuples into an intermediate SteM. Nobody is probing it: what is being probed now made these tuples, so it is
        below."""
        stem, number, begin = self._stems[target], self.number, self.clock()
        if self._weights is not None and stem.rows.carried is not None:
            packet = self._weights.combined(target, packet, self.old)
        stem.rows.append_tuples(packet.rows, self._rows, packet.carried)
        first, last = stem.build(number, packet.size)
        self.work.building += self.clock() - begin
        self.number += packet.size
        rows = packet.rows if stem.rows.carried is None else {**packet.rows, part_of(target): np.arange(first, last)}
        return Packet(rows, packet.signature, np.array([number]), packet.size)

    def _serve(self, queue: MetaQueue) -> None:
        """One packet of a queue takes the step that the routing arrays say, after a sample of it was shown to all."""
        entry = queue.entry
        packet = self.scheduler.take(queue, self._router.about(entry))
        if self._check:
            check_packet(packet, self._probers, self.plan, self._foreign)
        samples = self._router.sample(entry, packet.size)
        if samples:
            spread = packet.take(np.arange(0, packet.size, -(-packet.size // samples)))
            self._show(entry, spread, self._router.late(entry))
        if entry.left <= 0:
            entry.chosen, entry.left = self._router.decide(entry), self._reroute_every
        entry.left -= packet.size
        entry.moment = self.work.moment
        assert entry.chosen is not None
        if self._take(entry.chosen, packet):
            self._router.surprised(entry)

    def _take(self, traffic: Traffic, packet: Packet) -> bool:
        """A packet takes a step; whether that was a surprise. Only the step itself is timed, not what is done with what
        comes out."""
        clock, seconds, produced = self.clock, 0.0, 0
        begin = clock()
        if isinstance(traffic.step, Select):
            pieces = self._select(traffic.step, packet)
        else:
            pieces = self._probe(traffic, traffic.step, packet, self._errors)
        for piece in pieces:
            seconds += clock() - begin
            produced += piece.size
            self._queue(piece, self.scheduler.put)
            begin = clock()
        seconds += clock() - begin
        self.work.add(seconds)
        return traffic.add(packet.size, produced, seconds, self.work)

    def _show(self, entry: Entry, packet: Packet, late: frozenset[int]) -> None:
        """Count what every step would make of each tuple of a sample, and keep nothing of it. The late ones see only
        what the step of now lets through; for the others it is not a number."""
        errors, seconds = ErrorCount(), np.zeros(len(entry.steps))
        counts = np.full((packet.size, len(entry.steps)), np.nan)
        chosen = entry.steps.index(entry.chosen) if entry.chosen is not None else 0
        for number in sorted(range(len(entry.steps)), key=lambda n: (n != chosen, n in late)):
            begin = self.clock()
            which = np.flatnonzero(counts[:, chosen]) if number in late else np.arange(packet.size)
            if which.size:
                sample = packet.take(which) if number in late else packet
                counts[which, number] = self._made(entry.steps[number], sample, errors)
            seconds[number] = self.clock() - begin
        self._router.learn(entry, counts, seconds)

    def _made(self, traffic: Traffic, packet: Packet, errors: ErrorCount) -> NDArray[np.float64]:
        """How many tuples a step makes of each. One that makes very many is left after ENOUGH: it is no good anyway."""
        if isinstance(traffic.step, Select):
            return self._mask(traffic.step.predicate, packet, errors).astype(np.float64)
        made = np.zeros(packet.size)
        for piece in self._probe(traffic, traffic.step, packet.numbered(), errors):
            made += np.bincount(piece.rows[SAMPLE], minlength=packet.size)
            if made.sum() > ENOUGH:
                break
        return made

    def _select(self, step: Select, packet: Packet) -> Iterator[Packet]:
        keep = self._mask(step.predicate, packet, self._errors)
        if keep.any():
            yield (packet if keep.all() else packet.take(keep)).passed(step.selection)

    def _probe(self, traffic: Traffic, step: Probe, packet: Packet, errors: ErrorCount) -> Iterator[Packet]:
        prober = self._probers[step.target]
        before = prober.rows_before(packet.numbers)
        if before.max() <= prober.min_live:
            return
        low, high = self._interval(traffic.within, packet)
        limits = prober.limits(low, high, before, LARGEST, self.work.passed)
        for tuples, rows in self._matches(step, prober, packet, limits):
            if self._check:
                check_matches(step.target, tuples, rows, limits)
            if prober.rows.components:
                joined = self._joined(traffic, step, packet, tuples, rows)
            else:
                joined = packet.joined(tuples, {step.target: rows}, traffic.after)
            joined = self._verified(step, joined, errors)
            if joined.size:
                yield joined

    def _joined(self, traffic: Traffic, step: Probe, packet: Packet, tuples: RowNumbers, rows: RowNumbers) -> Packet:
        """Matches of an intermediate SteM whose components live, and are all within the bounds of time."""
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
        return _kept(joined, keep)

    def _matches(self, step: Probe, prober: Prober, packet: Packet, limits: Limits) -> Iterator[Matches]:
        access = step.access
        if isinstance(access, KeyAccess):
            partner = self._rows[access.partner]
            return prober.probe_key(
                access.on, partner.key_values(access.partner_on), packet.rows[access.partner], limits
            )
        if isinstance(access, RangeAccess):
            return prober.probe_range(access.on, *self._key_range(access, packet), limits)
        return prober.probe_all(packet.size, limits)

    def _interval(self, within: tuple[tuple[int, int, int], ...], packet: Packet) -> tuple[RowNumbers, RowNumbers]:
        """When a match may have happened, for each tuple."""
        if not within:
            return NO_BOUND, NO_BOUND
        low, high, first = np.empty(packet.size, np.int64), np.empty(packet.size, np.int64), True
        for source, back, on in within:
            narrow(low, high, self._rows[source].times.values, packet.rows[source], back, on, first)
            first = False
        return low, high

    def _key_range(self, access: RangeAccess, packet: Packet) -> tuple[RowNumbers, RowNumbers]:
        """Between which order keys a match must lie, both included; a strict limit is the next integer."""
        least, most = np.full(packet.size, _LEAST), np.full(packet.size, _MOST)
        nothing = np.zeros(packet.size, np.bool_)
        for op, partner, key, offset in access.limits:
            codes = self._rows[partner].order_values(key)[packet.rows[partner]]
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

    def _verified(self, step: Probe, packet: Packet, errors: ErrorCount) -> Packet:
        """The matches for which everything holds that this probe decides."""
        for e in step.equalities:
            left, right, rows = self._rows[e.left], self._rows[e.right], packet.rows
            packet = _kept(packet, left.same_key(e.left_expr, rows[e.left], right, e.right_expr, rows[e.right]))
        for predicate in step.predicates:
            packet = _kept(packet, self._mask(predicate, packet, errors))
        if self._clocks and not self._past:  # then the clocks know nothing of rows so old
            packet = self._in_rows_windows(packet)
        return packet

    def _in_rows_windows(self, packet: Packet) -> Packet:
        times = newest(self._rows, packet.rows, packet.size)
        keep = np.ones(packet.size, np.bool_)
        for source, clock in self._clocks.items():
            if source in packet.rows:
                keep &= self._rows[source].ordinals(packet.rows[source]) >= clock.least(times)
        return _kept(packet, keep)

    def gather(self, packet: Packet, exprs: Sequence[Expr]) -> dict[Expr, pa.Array]:
        """The values of stored columns for the tuples of a packet; TooMuchText if they are more than a packet should
        have at a time (packet.in_parts)."""
        values: dict[Expr, pa.Array] = {}
        gathered = 0
        for expr in exprs:
            for column in columns_of(expr):
                if column not in values:
                    values[column] = array = self._rows[column.source].gather(column, packet.rows[column.source])
                    gathered += array.nbytes
                    if gathered > GATHERED and packet.size > 1:
                        raise TooMuchText(f"{packet.size} tuples have more than {GATHERED} bytes")
        return values

    def _mask(self, predicate: Expr, packet: Packet, errors: ErrorCount) -> NDArray[np.bool_]:
        def found(some: Packet) -> NDArray[np.bool_]:
            return mask(predicate, self.gather(some, [predicate]), some.size, errors)

        masks = list(in_parts(packet, found))
        return masks[0] if len(masks) == 1 else np.concatenate(masks)


def _kept(packet: Packet, keep: NDArray[np.bool_]) -> Packet:
    return packet if keep.all() else packet.take(keep)
