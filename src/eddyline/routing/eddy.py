"""The eddy loop: the scheduler picks a meta-queue, the router the step for its packet, and the output is queued again.

Exactly once: within a join operator every tuple of a child is built before it probes, and a probe returns only tuples
built before the one that started it. So exactly one component of a result, the one built last, can find all the others.
It finds each of them once, because a route adds each missing child once, and every predicate is applied when its span
is complete. The output of the operator is built as a tuple of its own, with a new number, and starts in the operator
above, where the same holds. Nothing here depends on the order in which packets are taken.

The number of tuples in flight stays bounded: probes return their matches in pieces, and a full queue is served before
the probe that fills it continues. A probe is finished before rows are built into the SteM that it reads, because a
build may move the hash table; queued packets are row numbers, which never move.

The steps are in steps/. The scope of an eddy is the part of the plan that it runs (scope.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.expr import Expr
from eddyline.codec import Snapshot
from eddyline.plan.plan import Plan, Signature
from eddyline.plan.steps import Probe, Select
from eddyline.routing.asker import Asker
from eddyline.routing.decisions import DecisionLog
from eddyline.routing.invariants import check_packet
from eddyline.routing.meta_queue import MetaQueue
from eddyline.routing.packet import Packet, in_parts, started
from eddyline.routing.payload import Payload
from eddyline.routing.policies.learned import Learned
from eddyline.routing.router import router
from eddyline.routing.routing_arrays import Entry, EntrySnapshot, RoutingArrays, Traffic
from eddyline.routing.rows_windows import PlacesInWindow
from eddyline.routing.sampling import Sampling
from eddyline.routing.scheduler import Scheduler
from eddyline.routing.scope import Scope, whole
from eddyline.routing.statistics import Work, WorkSnapshot
from eddyline.routing.steps.materialise import MaterialiseStep
from eddyline.routing.steps.probe import ProbeStep
from eddyline.routing.steps.select import select
from eddyline.routing.steps.windows import WindowStep
from eddyline.routing.tracked_rows import TrackedRows
from eddyline.routing.tuning import DEFAULT, RoutingTuning
from eddyline.routing.weights import Weights, part_of
from eddyline.settings import Settings
from eddyline.state.part import Cut, Part
from eddyline.state.stem import SteM
from eddyline.state.view import View


class EddySnapshot(Snapshot, frozen=True):
    """The work of an eddy and what it learned. No tuple waits in it."""

    number: int
    committed_number: int
    work: WorkSnapshot
    routes: tuple[EntrySnapshot, ...]
    learned: Learned | None


def nothing() -> None:
    """What an eddy calls if nobody watches it."""


class Eddy(Part):
    """Routes packets through the SteMs and selections of one plan."""

    name, snapshot = "eddy", EddySnapshot

    def __init__(
        self,
        plan: Plan,
        stems: Sequence[SteM | View],
        rows_windows: Mapping[int, PlacesInWindow],
        settings: Settings,
        errors: ErrorCount,
        output: Callable[[Packet], None],
        clock: Callable[[], float],
        scope: Scope | None = None,
        tuning: RoutingTuning = DEFAULT,
        tracked: TrackedRows | None = None,
        asker: Asker | None = None,
    ) -> None:
        """Without a `scope` the eddy runs the whole plan. Complete tuples that another slot makes, by `tracked`, are
        not output. Tuples that probe a table that is asked go to the `asker`."""
        self._stems, self._rows_windows, self._settings, self._errors = stems, rows_windows, settings, errors
        self._output, self.clock, self.tuning, self.tracked = output, clock, tuning, tracked
        self._asker = asker
        self._check, self._reroute_every = settings.check, settings.reroute_every
        self.pulse: Callable[[], None] = nothing
        """Called for each packet and each piece of its output. An error that it raises leaves the slot in the middle of
        a batch."""
        self.work, self.decisions = Work(tuning), DecisionLog()
        self.number = 0
        """The number of tuples built so far. The number at its build decides which others a tuple may match."""
        self._committed_number = 0
        self._foreign: set[int] = set()
        """The larger spans whose tuples were started here but made by another eddy."""
        self.change(plan, scope)

    # Plan and scope: both are exchanged only while no tuple waits

    def change(self, plan: Plan, scope: Scope | None = None) -> None:
        """Route by another plan, over the current SteMs. Statistics about modules are kept."""
        self.plan, self.routes = plan, RoutingArrays(plan, self.tuning)
        ordered = self._settings.execution == "semi"
        self.scheduler = Scheduler(self.routes, self._settings.packet, self.clock, ordered, self.tuning)
        known = self.routes, self.work, self.decisions
        self._router = router(self._settings, plan, *known, self.clock, self.tuning)
        self.enter(scope or whole(plan))

    def enter(self, scope: Scope) -> None:
        """Run another part of the plan."""
        self.scope = scope
        probers = self._probers = [stem.prober for stem in self._stems]
        self._rows = rows = [stem.rows for stem in self._stems]
        self._payload = payload = Payload(rows, self.tuning.gathered_bytes)
        told_apart = scope.old, self.tracked
        grouped = bool(self.plan.grouped)
        self._weights = Weights(self.plan, rows, payload.gather, self._errors, *told_apart) if grouped else None
        self._windows = windows = (
            WindowStep(self._rows_windows, rows) if self._rows_windows and not scope.past else None
        )
        self._probe = ProbeStep(probers, payload, windows, self.work.passed, self._check, self.tuning.largest_packet)
        self._materialise = MaterialiseStep(self._stems, rows, self._weights)
        self._sampling = Sampling(self._probe, payload, self.clock, self.tuning.sample_matches)

    def follow(self, orderings: Mapping[tuple[int, int], tuple[int, ...]]) -> None:
        """Tell the router the orders that the optimizer found best (see policies/policy.py)."""
        self._router.follow(orderings)

    def close(self) -> None:
        """Drop the references to the SteMs; nothing can be routed any more."""
        self._stems = ()
        self.enter(self.scope)

    # Rows and tuples start

    def build(self, source: int, rows: int) -> None:
        """Build the next stored rows of a source, and start them."""
        begin = self.clock()
        first, last = self._stems[source].build(self.number, rows)
        self.work.building += self.clock() - begin
        packet = started(source, first, last, self.number)
        self._count(rows)
        packet = self._in_windows(packet)
        if packet.size:
            self._queue(packet, self.scheduler.start)

    def start(self, view: View, signature: Signature, rows: int) -> None:
        """Build the next rows of a view, of a source or of a larger span, and start those that are live. If this eddy
        has a SteM of its own for their span, they are built into it."""
        first, last = view.build(self.number, rows)
        which = np.arange(max(first, view.prober.min_live), last)
        components = {signature[0].bit_length() - 1: which}
        if view.rows.components:
            self._foreign.add(signature[0])
            which = which[view.prober.live(which, self._probers)]
            components = {s: column.values[which] for s, column in view.rows.components.items()}
            if view.rows.carried is not None:
                components[part_of(next(n for n, s in enumerate(self._stems) if s is view))] = which
        packet = Packet(components, signature, np.array([self.number]), which.size)
        self._count(rows)
        packet = self._in_windows(packet)
        if not packet.size:
            return
        entry = self.routes.entry(signature)
        if entry.stem is not None and self._stems[entry.stem] is not view:
            packet = self._built(entry.stem, packet)
        self._put(entry, packet, self.scheduler.start)

    def begin(self, packet: Packet) -> None:
        """Start tuples that were joined elsewhere, and that are not built here because nothing here looks for them."""
        self._foreign.add(packet.signature[0])
        self._put(self.routes.entry(packet.signature), packet, self.scheduler.start)

    def take_over(self, packet: Packet) -> None:
        """Continue with tuples that another eddy joined."""
        self._go_on(self.routes.entry(packet.signature), packet, self.scheduler.put)

    def _count(self, rows: int) -> None:
        self.number += rows
        self.work.moment += rows

    def _in_windows(self, packet: Packet) -> Packet:
        return packet if self._windows is None else self._windows.within(packet)

    # The loop

    def run(self, until: float = math.inf) -> None:
        """Serve meta-queues until none is eligible and new input is needed, or until the time `until`."""
        while self.clock() < until and (queue := self.scheduler.next()) is not None:
            self._serve(queue)
            self.scheduler.end_round()
        self.work.end_slice()

    def flush(self, until: float = math.inf) -> None:
        """Serve everything that waits, or until the time `until`. At the end of a micro-batch no tuple stays in a
        queue."""
        self.run(until)
        while self.clock() < until and (queue := self.scheduler.least_done()) is not None:
            self._serve(queue)
            self.scheduler.end_round()
            self.run(until)

    def _serve(self, queue: MetaQueue) -> None:
        """Let one packet of a queue take the step in the routing arrays, after a sample of it was shown to all
        steps."""
        self.pulse()
        entry = queue.entry
        packet = self.scheduler.take(queue, self._router.about(entry))
        if self._check:
            check_packet(packet, self._probers, self.plan, self._foreign)
        samples = self._router.sample(entry, packet.size)
        if samples:
            shown = self._sampling.shown(entry, packet, samples, self._router.late(entry))
            self._router.learn(entry, *shown)
        if entry.left <= 0:
            entry.chosen, entry.left = self._router.decide(entry), self._reroute_every
        entry.left -= packet.size
        entry.moment = self.work.moment
        assert entry.chosen is not None
        if self._step(entry.chosen, packet):
            self._router.surprised(entry)

    def _step(self, traffic: Traffic, packet: Packet) -> bool:
        """Let a packet take a step; returns whether the outcome was a surprise. Only the step itself is timed, not the
        work on its output."""
        clock, seconds, produced = self.clock, 0.0, 0
        begin = clock()
        if isinstance(traffic.step, Select):
            pieces = select(traffic.step, packet, self._payload, self._errors)
        elif traffic.step.is_asked and self._asker is not None:
            pieces = self._asked(traffic, traffic.step, packet, self._asker)
        else:
            pieces = self._probe.pieces(traffic, traffic.step, packet, self._errors)
        for piece in pieces:
            seconds += clock() - begin
            produced += piece.size
            self.pulse()
            self._queue(piece, self.scheduler.put)
            begin = clock()
        seconds += clock() - begin
        self.work.add(seconds)
        return traffic.add(packet.size, produced, seconds, self.work)

    def _asked(self, traffic: Traffic, step: Probe, packet: Packet, asker: Asker) -> Iterator[Packet]:
        """The matches of tuples in the SteM of a table that is asked. They also ask for the rows that it may lack."""
        known = self._rows, self._payload.gather
        if not step.asks_unmatched:
            asker.ask(step, packet, *known)
            yield from self._probe.pieces(traffic, step, packet, self._errors)
        else:
            unmatched = np.ones(packet.size, np.bool_)
            yield from self._probe.pieces(traffic, step, packet, self._errors, unmatched)
            if unmatched.any():
                asker.ask(step, packet.kept(unmatched), *known)
        if self._check:
            asker.check(step, packet, *known)

    def _queue(self, packet: Packet, put: Callable[[Packet], MetaQueue]) -> None:
        """Send a packet to its next place, without the tuples that another eddy outputs."""
        entry = self.routes.entry(packet.signature)
        if entry.whole:
            if self._check:
                check_packet(packet, self._probers, self.plan, self._foreign)
            packet = self.scope.own(packet)
            if self._asker is not None and self._asker.has_late and packet.size:
                packet = self._asker.own(packet)
            if not packet.size:
                return
        self._go_on(entry, packet, put)

    def _go_on(self, entry: Entry, packet: Packet, put: Callable[[Packet], MetaQueue]) -> None:
        """Output a packet if it is complete. The output of an operator below is built first, and starts in the one
        above."""
        if entry.whole and packet.signature[0] in self.scope.given:
            if self.tracked is not None and self.tracked.on and packet.signature[0] == self.plan.tree.span:
                packet = self.tracked.own(packet)
                if not packet.size:
                    return
            for part in (packet,) if self._weights is None else in_parts(packet, self._weights.looked_up):
                self._output(part)
            return
        if entry.stem is not None:
            packet = self._built(entry.stem, packet)
        self._put(entry, packet, put)

    def _put(self, entry: Entry, packet: Packet, put: Callable[[Packet], MetaQueue]) -> None:
        """Put a packet into the meta-queue of its signature, unless its tuples lead to nothing here."""
        if not entry.steps or not self.scope.runs(entry.operator, packet.signature[0]):
            return
        queue = put(packet)
        while queue.occupancy >= self.scheduler.full:
            self._serve(queue)

    def _built(self, target: int, packet: Packet) -> Packet:
        """Build tuples into an intermediate SteM; returns them as they start in the operator above."""
        begin = self.clock()
        packet = self._materialise.into(target, packet, self.number)
        self.work.building += self.clock() - begin
        self.number += packet.size
        return packet

    # Between batches

    @property
    def is_idle(self) -> bool:
        """Whether no tuple waits."""
        return self.scheduler.is_empty

    def commit(self, cut: Cut) -> None:
        self._committed_number = self.number

    def wind_back(self) -> None:
        self.clear()
        self.number = self._committed_number

    def clear(self) -> None:
        """Drop all waiting tuples."""
        self.scheduler.clear()

    def output_of(self, traffic: Traffic, packet: Packet) -> Iterable[Packet]:
        """What a step makes of tuples at present. It goes nowhere, and asks for nothing."""
        if isinstance(traffic.step, Select):
            return select(traffic.step, packet, self._payload, ErrorCount())
        return self._probe.pieces(traffic, traffic.step, packet, ErrorCount())

    def gather(self, packet: Packet, exprs: Sequence[Expr]) -> dict[Expr, pa.Array]:
        """The stored values of the tuples of a packet (payload.py)."""
        return self._payload.gather(packet, exprs)

    def saved(self) -> EddySnapshot:
        """A snapshot for another process, of what was learned; at the end of a micro-batch, when no tuple waits."""
        numbers = self.number, self._committed_number
        return EddySnapshot(*numbers, self.work.saved(), self.routes.saved(), self._router.saved())

    def restore(self, saved: EddySnapshot) -> None:
        """Restore from a snapshot."""
        self.number, self._committed_number = saved.number, saved.committed_number
        self.work.restore(saved.work)
        self.routes.restore(saved.routes, self.work)
        self._router.restore(saved.learned)
