"""A micro-batch in one process: intake, watermarks, slots, commit.

    dead and late rows out -> split -> feed -> watermarks move -> advance -> results (combined) -> commit

Slots run one after the other. All slots get the same watermarks, so the results do not show which slot made a row. Rows
are counted when the batch is finished, so a batch that is wound back leaves no trace in the counts.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import pyarrow as pa

from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.model import BoundQuery
from eddyline.counts import Counts, StreamCounts
from eddyline.engine.answers import Failure, UnreadableRows
from eddyline.engine.lookups import Lookups, look_up
from eddyline.engine.online import Moment, RunningEstimate, running_estimates
from eddyline.engine.partial import combine
from eddyline.engine.plan_source import MakePlanSource
from eddyline.engine.planner import plan_source
from eddyline.engine.seen_rows import SeenStreams
from eddyline.engine.slot import Slot
from eddyline.engine.slot_lookups import SlotLookups
from eddyline.engine.split import Shipment, Split
from eddyline.engine.standing import SlotStanding, Standing, StateSize
from eddyline.engine.tally import Tally
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.engine.watermarks import Silence, Watermarks
from eddyline.errors import InternalError
from eddyline.optimizer.pressure import NO_PRESSURE, Pressure
from eddyline.plan.bounds import FOREVER
from eddyline.plan.explain import explain
from eddyline.plan.judges import Preferences
from eddyline.plan.partition import partition
from eddyline.plan.plan import Plan, plan_of
from eddyline.plan.preference import NO_PREFERENCE
from eddyline.plan.sharing import owners
from eddyline.routing.decisions import KEPT, Decision
from eddyline.routing.report import Report, look, measured, together
from eddyline.running_time import running_seconds
from eddyline.settings import Settings


@dataclass(frozen=True)
class BatchResult:
    """The output of a batch: result rows, late rows by stream, and dead rows by stream with their reasons."""

    results: list[pa.RecordBatch]
    late: list[tuple[str, pa.RecordBatch]]
    dead: list[tuple[str, pa.RecordBatch, pa.Array]]
    failed: list[Failure] = field(default_factory=list)
    unreadable: list[UnreadableRows] = field(default_factory=list)
    """Rows of tables that are asked, which cannot be read."""
    """Lookups that have failed for good: rows that waited for them are dead."""


class BatchEngine:
    """A query on one slot or several, batch by batch."""

    def __init__(
        self,
        query: BoundQuery,
        settings: Settings,
        clock: Callable[[], float] = time.perf_counter,
        plans: MakePlanSource = plan_source,
        tuning: Tuning = DEFAULT,
        lookups: Callable[[], Lookups] | None = None,
    ) -> None:
        """`lookups` makes, for each slot, what asks the tables that are asked."""
        self.query, plan = query, Plan(query)
        self.partitioning = partition(plan, settings.slots or 1, settings.groups)
        self._split = Split(plan, self.partitioning)
        self._streams, self._needed = self._split.streams, self._split.needed
        self._partial = query.group is not None and not self.partitioning.keeps_groups_whole(query)
        sharing = owners(plan, self.partitioning, settings) if tuning.engine.shares_stems else ()
        self.slots = [
            Slot(query, settings, clock=clock, partial=self._partial, plans=plans, tuning=tuning, owners=sharing)
            for _ in range(self.partitioning.slots)
        ]
        self._make_lookups = lookups
        self._lookups = [] if lookups is None else [lookups() for _ in self.slots]
        self._clock, self._patience = clock, settings.batch_seconds
        self._errors = ErrorCount()
        self._pulse: Callable[[float], None] | None = None
        streams = [s for s in self._streams.values() if not s.is_table]
        self._watermarks = Watermarks(streams)
        running = running_seconds if clock is time.perf_counter else clock
        self._silence = Silence([s.name for s in streams], settings.idle_timeout, running)
        self._split.seen = SeenStreams(query) if settings.estimates == "on" else None
        self.preferences, self._preference = Preferences(plan_of(query), settings.prefer), NO_PREFERENCE
        self.counts = Counts()
        """The counts of all finished batches since the start."""
        self._moment = Moment()
        self._own, self._logged = Counter[str](), [0] * len(self.slots)
        """Decisions that are of no slot, by kind; and the number of decisions of each slot that are in `_recent`."""
        self._recent: deque[Decision] = deque(maxlen=KEPT)
        self._slots: tuple[SlotStanding, ...] = ()
        self._cpu = [0.0] * len(self.slots)
        self.held = self.peak = StateSize()
        """The state at the end of the last batch, and the largest state at the end of a batch."""
        self._note_commit()

    def watch(self, pulse: Callable[[float], None]) -> None:
        """During batches, `pulse` gets the share of the rows that are taken in, often. If it raises, the batch and with
        it the engine is abandoned."""
        self._pulse = pulse

    def _beat(self, _: float) -> None:
        assert self._pulse is not None
        self._pulse(sum(slot.executor.taken for slot in self.slots) / len(self.slots))

    @property
    def slot(self) -> Slot:
        """The first slot; the only one unless the settings ask for more."""
        return self.slots[0]

    @property
    def _error_counts(self) -> list[ErrorCount]:
        return [self._split.errors, *(slot.errors for slot in self.slots), self._errors]

    def _note_commit(self) -> None:
        errors = [errors.count for errors in self._error_counts]
        held = self.held, self.peak, self._slots, self._cpu
        self._committed = copy(self._watermarks), self.counts, held, errors
        if self._split.seen is not None:
            cells = tuple(panes for slot in self.slots for panes in slot.results.committed)
            reached = self._watermarks.reached
            self._moment = Moment(cells, self._split.seen.now, self.counts, reached, self.waits)

    def explain(self) -> str:
        """The plan, and the measurements on it so far (of the first slot, if there are several)."""
        slot = self.slot
        plan, estimate = slot.executor.plan, slot.plans.estimate(slot.executor)
        parts = [explain(self.query, self.partitioning, plan.tree, prefer=self._preference.text, owners=plan.owners)]
        parts.append(measured(self.query, slot.executor.eddy))
        if estimate is not None:
            parts.append(estimate.text(plan))
        return "\n\n".join(part for part in parts if part)

    def report(self, seconds: float = 0.0) -> Report:
        """The work of the eddies so far, `seconds` after the start: of all slots, or of those with the plan that most
        of them have."""
        executors = [slot.executor for slot in self.slots]
        looks = [look(self.query, e.eddy, e.built, seconds, e.input_batch.rows) for e in executors]
        found = looks[0] if len(looks) == 1 else together(looks)
        return replace(found, counts=self.decisions, decisions=tuple(self._recent))

    def load_table(self, stream: str, batch: pa.RecordBatch) -> None:
        """Load rows of a static table, before the first batch."""
        if self.slot.version:
            raise InternalError("rows of a table came after the first batch")
        for shipment in self._split.split_table(stream, batch):
            self.slots[shipment.slot].receive(shipment)
        for slot in self.slots:
            slot.executor.take_in()
            slot.commit(slot.version)
        self.counts += Counts({stream: StreamCounts(loaded=batch.num_rows)})
        self._note_commit()

    def unreadable(self, stream: str, rows: int, reason: str) -> None:
        """Count rows of a stream or table that its source could not read. They belong to the next batch."""
        self.counts += Counts({stream: StreamCounts(dead=rows, reason=reason)})

    @property
    def waits(self) -> bool:
        """Whether rows wait for the answer of a table."""
        return any(slot.executor.held is not None for slot in self.slots)

    def close(self) -> None:
        """Stop to ask."""
        for lookups in self._lookups:
            lookups.close()

    @property
    def standing(self) -> Standing:
        """The counts and the state of the run after the last batch."""
        return Standing(
            self.counts,
            self.counts,
            self.held,
            self.peak,
            self._watermarks.query,
            self._watermarks.reached,
            prefer=self._preference.text,
            slots=self._slots,
        )

    def estimates(self, totals: Mapping[str, int], groups: int | None = None) -> tuple[RunningEstimate, ...]:
        """Estimates of the aggregates of open groups, at most of so many `groups`. `totals` are the numbers of rows of
        the streams that know it. Any thread may call it."""
        return running_estimates(self.query, self._moment, totals, groups)

    @property
    def decisions(self) -> dict[str, int]:
        """Decisions so far, by kind. A wind-back does not undo decisions about routes."""
        return dict(sum((slot.executor.eddy.decisions.counts for slot in self.slots), Counter(self._own)))

    def batch(
        self,
        rows: Sequence[tuple[str, pa.RecordBatch]],
        ended: Collection[str] = (),
        commit: bool = True,
        unread: Collection[str] = (),
        pressure: Pressure = NO_PRESSURE,
    ) -> BatchResult:
        """Process a batch. `ended` are the streams that end with this batch; `unread` are the streams that may have
        rows that this batch does not read; `pressure` is that of the input. With commit=False the batch can still be
        wound back; `commit` or `wind_back` must follow."""
        quiet = self._silence.begin(unread)
        for slot in self.slots:
            slot.pressure = pressure
            slot.watch(None if self._pulse is None else self._beat)
            slot.replan()
        self._prefer()
        newest, tally, shipments = dict[str, int](), Tally(self._watermarks), list[Shipment]()
        late: list[tuple[str, pa.RecordBatch]] = []
        dead: list[tuple[str, pa.RecordBatch, pa.Array]] = []
        for name, raw in rows:
            if self._watermarks.by_stream[name] == FOREVER:
                raise InternalError(f"rows of stream {name} came after its end")
            split = self._split.split(name, raw, self._watermarks.late_before(name), tally.newest(name))
            tally.split(name, split)
            if split.late.num_rows:
                late.append((name, split.late))
            if split.dead.num_rows:
                dead.append((name, split.dead, split.reasons))
            if split.newest is not None:
                newest[name] = max(split.newest, newest.get(name, split.newest))
            shipments += split.shipments
        preferred = self.slot.preferred
        for shipment in shipments if preferred is None else preferred.first(shipments):
            self.slots[shipment.slot].receive(shipment)
        self._watermarks.finish_batch(newest, ended, quiet)
        self._silence.after(newest, self._watermarks.idle, self._watermarks.ended)
        for decision in self._silence.decisions():
            self._recent.append(replace(decision, at=self.counts.rows_in))
            self._own[decision.kind] += 1
        most = self.slot.tuning.engine.most_asked if pressure.backlog else 0
        self._look_up(self._watermarks.query, self._clock() + self._patience, most)
        waits = min((held for slot in self.slots if (held := slot.executor.held) is not None), default=None)
        for slot in self.slots:
            slot.advance(self._watermarks.by_stream, self._watermarks.query, waits=waits)
        return self._finish(tally.counts, late, dead, commit)

    def _prefer(self) -> None:
        """Follow the user's preference, if it has changed."""
        preference = self.preferences.at(self.slot.version)
        if preference != self._preference:
            self._preference = preference
            for slot in self.slots:
                slot.prefer(preference, is_new=True)

    def end(self) -> BatchResult:
        """Flush everything that waits, in a batch of its own: all streams have ended."""
        self._prefer()
        self._look_up(FOREVER, math.inf)
        for slot in self.slots:
            slot.end(self._watermarks.newest)
        return self._finish(Counts(), [], [], commit=True)

    def _look_up(self, watermark: int | None, until: float, most: int = 0) -> None:
        for slot, lookups in zip(self.slots, self._lookups, strict=False):
            assert slot.executor.access is not None
            look_up(SlotLookups(slot, slot.executor.access), lookups, watermark, until, self._clock, self._clock, most)

    def _finish(
        self,
        counts: Counts,
        late: list[tuple[str, pa.RecordBatch]],
        dead: list[tuple[str, pa.RecordBatch, pa.Array]],
        commit: bool,
    ) -> BatchResult:
        results = [batch for slot in self.slots for batch in slot.drain() if batch.num_rows]
        if self._partial:
            results = combine(self.query, results, self._errors, self.slot.tuning.engine)
        errors = self._error_counts
        failed = [failure for slot in self.slots if slot.executor.access for failure in slot.executor.access.failed()]
        for failure in failed:
            counts += Counts({failure.table: StreamCounts(dead=failure.keys.num_rows, reason=failure.reason)})
        asked = [(number, slot.executor.access) for number, slot in enumerate(self.slots)]
        unreadable = [one for number, access in asked if access for one in access.not_readable(number)]
        for one in unreadable:
            counts += Counts({one.table: one.counts})
        self._collect()
        self.counts += counts + Counts(
            rows_out=sum(batch.num_rows for batch in results),
            expression_errors=sum(one.count for one in errors) - self.counts.expression_errors,
            first_error=next((one.first for one in errors if one.first), ""),
        )
        self.peak = self.peak.most(
            StateSize(sum(s.peak_rows for s in self.slots), sum(s.peak_bytes for s in self.slots))
        )
        self._cpu = [cpu + slot.cpu for cpu, slot in zip(self._cpu, self.slots, strict=True)]
        if commit:
            self.commit()
        else:
            self.held = self._state()
        return BatchResult(results, late, dead, failed, unreadable)

    def _collect(self) -> None:
        """Take over the new decisions of the slots. With several slots, a decision names its slot."""
        several = len(self.slots) > 1
        for number, slot in enumerate(self.slots):
            log = slot.executor.eddy.decisions
            new, self._logged[number] = log.added - self._logged[number], log.added
            for decision in list(log.recent)[-new:] if new else ():
                self._recent.append(decision.of_slot(number) if several else decision)

    def commit(self) -> None:
        """Commit the batch; it cannot be undone any more."""
        for slot in self.slots:
            slot.commit(slot.version + 1)
        self.held = self._state()
        self._note_commit()

    def _state(self) -> StateSize:
        """The current state of all slots."""
        self._slots = tuple(
            SlotStanding(number, slot.state_rows, slot.state_bytes, self._cpu[number])
            for number, slot in enumerate(self.slots)
        )
        return StateSize(sum(slot.rows for slot in self._slots), sum(slot.bytes for slot in self._slots))

    def wind_back(self) -> None:
        """Undo everything since the last commit."""
        for slot in self.slots:
            slot.wind_back()
        self.close()
        self._lookups = [] if self._make_lookups is None else [self._make_lookups() for _ in self.slots]
        watermarks, self.counts, held, counts = self._committed
        self.held, self.peak, self._slots, self._cpu = held
        self._watermarks = copy(watermarks)
        if self._split.seen is not None:
            self._split.seen.now = self._moment.seen
        for errors, count in zip(self._error_counts, counts, strict=True):
            errors.count = count
