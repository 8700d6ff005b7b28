"""One slot: the state of a query, or of a share of its rows, and the parts that work on it. A batch is

    replan() -> receive(shipment)* -> advance(watermarks) -> drain() -> commit(version)

and `wind_back` in place of `commit` undoes it. The slot does not know where rows come from or go to, and does not know
other slots: the rows that it gets to build decide which results it makes (see plan/partition.py). The rows that it
receives are readable and not late (see intake.py). Watermarks do not move between `receive` and `advance`. `advance`
builds the received rows and flushes the eddy, so the results of a batch leave with the batch.

A slot is composed of an executor (the plan at work), a plan source, an input and results, each in a file of its own.
What they keep are parts (state/part.py): committing, winding back, snapshots and sizes are loops over `parts`.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.expr import Expr
from eddyline.bound.model import BoundQuery
from eddyline.engine.cpu_meter import CpuMeter
from eddyline.engine.executor import Executor
from eddyline.engine.finished_batch import FinishedBatch
from eddyline.engine.gatherer import Gatherer
from eddyline.engine.groups.clusters import clusters_of
from eddyline.engine.groups.results import Results, results_of
from eddyline.engine.input import Input
from eddyline.engine.lookups.retry_marks import AskedAgain
from eddyline.engine.parts import made
from eddyline.engine.plan_course import PlanCourse
from eddyline.engine.plan_source import MakePlanSource
from eddyline.engine.planner import asked_plan, plan_source
from eddyline.engine.preferred_rows import PreferredRows
from eddyline.engine.progress import SlotProgress
from eddyline.engine.split import Shipment
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.engine.watermarks import Watermarks
from eddyline.optimizer.pressure import NO_PRESSURE
from eddyline.plan.bounds import FOREVER
from eddyline.plan.judges import judges
from eddyline.plan.plan import plan_of
from eddyline.plan.preference import Preference
from eddyline.plan.spill_axis import spill_axis
from eddyline.plan.tree import Tree
from eddyline.routing.decisions import Decision
from eddyline.routing.eddy import nothing
from eddyline.routing.packet import Packet
from eddyline.settings import Settings
from eddyline.spill.accounts import TABLE, GroupAccounts, Spillable, Table
from eddyline.state.arena import Arena
from eddyline.state.part import Cut, Named, Part


def _least(one: int | None, other: int | None) -> int | None:
    """The lesser of two times, where None is unknown for the first and no limit for the second."""
    return one if one is None or other is None else min(one, other)


NO_ACCOUNTS: Table = np.empty(0, TABLE)
"""Nothing is known of groups that come."""


class Slot:
    """Answers a query over the rows that it receives, batch by batch."""

    def __init__(
        self,
        query: BoundQuery,
        settings: Settings,
        arena: Arena | None = None,
        clock: Callable[[], float] = time.perf_counter,
        partial: bool = False,
        tree: Tree | None = None,
        plans: MakePlanSource = plan_source,
        tuning: Tuning = DEFAULT,
        owners: tuple[int, ...] = (),
    ) -> None:
        """With `partial`, aggregates are emitted as cells, for `partial.combine`. `tree` is the first plan, if it is
        not the one of the settings. `owners` says which sources share a SteM (`Plan.owners`)."""
        self.query, self.settings, self.errors = query, settings, ErrorCount()
        self.arena = arena or Arena(tuning=tuning.state)
        self.meter, asked = CpuMeter(clock), asked_plan(query, settings)
        self.tuning, parts = tuning, (self.arena, clock, self.meter, self.errors)
        axis = spill_axis(plan_of(query), settings.groups) if settings.has_groups else None
        self.executor = Executor(query, tree or asked, settings, *parts, self._complete, tuning, axis, owners)
        self.plans = plans(self.executor.plan, settings, self.meter.clock, tuning.optimizer)
        self.input = Input(query, self.executor, self.errors, self.arena)
        clusters = clusters_of(query) if settings.estimates == "on" else None
        windows = self.executor.rows_windows
        self.results: Results = results_of(query, windows, self.errors, partial, self.arena, tuning.engine, clusters)
        self._made = made(query, self.executor)
        self.accounts = next((part for part in self._made if isinstance(part, GroupAccounts)), None)
        """Those of the groups that can leave memory."""
        self._progress = SlotProgress(self.errors)
        gather = self.executor.gather if self.accounts is None else self._gather
        self._gatherer = Gatherer(gather, self.results, self.executor.stems, tuning.engine.result_rows)
        self.version = 0
        self.batch_done: tuple[str, str] | None = None
        """The histories before and after a batch that is neither committed nor wound back yet."""
        self.relocated = "", ""
        """The history of the commit after which the slot has got the groups of the next batch, and a digest of the
        slot map by which it got them."""
        self.cpu = 0.0
        """CPU seconds of the last batch."""
        self.preferred: PreferredRows | None = None
        """Which rows of a batch come first."""
        self.pressure = NO_PRESSURE
        """The pressure of the input in this batch."""
        self.peak_rows = self.peak_bytes = 0
        """The state at the end of the last batch, before rows expired."""

    @property
    def parts(self) -> list[Part]:
        """Everything that the slot keeps, in the order in which it is committed."""
        own = self.input, self.results, self.plans, self._progress
        return [*self.executor.parts, *own, *self._made]

    @property
    def watermark(self) -> int | None:
        """The query's watermark at the end of the last batch."""
        return self._progress.watermark.now

    def _complete(self, packet: Packet) -> None:
        """Take complete tuples."""
        self._gatherer.add(packet)

    def _gather(self, packet: Packet) -> dict[Expr, pa.Array]:
        """Gather for complete tuples, and count them by group."""
        values = self.executor.gather(packet)
        assert self.accounts is not None
        self.accounts.count_results(packet)
        return values

    # Between two batches

    def replan(self) -> None:
        """Between a commit and the next batch: begin to change the plan if the plan source wants another, or finish the
        change."""
        new = self.plans.next_plan(self.executor)
        if self.executor.finish() if new is None else self.executor.turn_to(new):
            self.plans.changed(self.executor)

    def set_plan(self, tree: Tree) -> None:
        """Change the plan at once, however long that takes and whatever the plan source wants."""
        self.executor.set_plan(tree)
        self.plans.changed(self.executor)

    def forget(self, groups: NDArray[np.int64]) -> int:
        """Between a commit and the next batch: all rows of these groups leave memory. Returns how many."""
        gone = self.executor.forget(groups) + sum(part.forget(groups) for part in self.parts)
        self.plans.changed(self.executor)
        return gone

    def adopt(self, groups: NDArray[np.int64], state: Named) -> None:
        """Between a commit and the next batch: these groups come from the slot whose durable state this is. Their rows
        come with `take_over`."""
        for part in self.parts:
            part.adopt(groups, state)

    def prefer(self, preference: Preference, is_new: bool) -> None:
        """Between a commit and the next batch: process rows that satisfy a condition first. `is_new`: it was another
        one in the last batch."""
        of, settings = judges(plan_of(self.query), preference.text), self.settings
        keeps_order = self.query.counts_rows or settings.execution == "total"
        self.preferred = PreferredRows(self.query, of, preference.since + 1, keeps_order) if of else None
        access, eddy = self.executor.access, self.executor.eddy
        if access is not None:
            access.preferred, access.is_ranked = self.preferred, access.is_ranked and not is_new
        if is_new:
            what = f"rows with {preference.text} come first" if of else "no rows come first"
            eddy.decisions.add(Decision("preference", eddy.work.moment, what, "the user has changed the preference"))

    def regroup(self) -> None:
        """Between a commit and the next batch: tuples that stand for several are made again, because groups are on
        other parallel tracks than before."""
        self.executor.regroup()
        self.plans.changed(self.executor)

    def take_over(self, rows: Iterable[tuple[int, pa.RecordBatch]], accounts: Table = NO_ACCOUNTS) -> int:
        """Between a commit and the next batch: take rows of sources into memory, whose results are made. Returns how
        many. `accounts` are those that their groups had in other slots. A migration ends, and intermediate states are
        made again."""
        self.executor.give_up()
        for source, batch in rows:
            self.input.take_over(source, batch)
        taken = sum(stem.waiting for stem in self.executor.source_stems)
        self.executor.load()
        self.commit(self.version)
        if self.accounts is not None:
            self.accounts.take_over(accounts)
        self.executor.make_states()
        self.plans.changed(self.executor)
        return taken

    def load(
        self,
        watermarks: Mapping[str, int | None],
        query_watermark: int | None,
        version: int,
        held: Watermarks | None = None,
    ) -> None:
        """Build the received rows as the state of a version, without probing: their results are already emitted, or
        rows wait for answers, and results at the watermark `held` and later may be missing."""
        marks = AskedAgain() if self.executor.access is None else self.executor.access.marks
        released = self.input.release_counted(query_watermark, at=[at for _, at in sorted(marks.watermarks.items())])
        self.executor.load()
        marks.released(released, self.executor.built)
        self._progress.watermark.now = query_watermark
        if held is None:
            self.executor.expire(watermarks, self.watermark)
        else:
            self.executor.expire(held.by_stream, held.query)
        if self.accounts is not None:
            self.accounts.take_over(NO_ACCOUNTS)
        self.errors.count, self.errors.first = 0, ""
        self.commit(version)
        self.executor.make_states()
        self.plans.changed(self.executor)

    def resume(self, course: PlanCourse) -> None:
        """Take the course (`Executor.course`) of a slot whose state was lost. Call it after `load`."""
        self.executor.resume(course)
        self.plans.changed(self.executor)

    # A batch

    def feed(self, stream: str, batch: pa.RecordBatch) -> None:
        """Take rows of a stream or, before the first batch, of a table."""
        with self.meter.counted():
            self.input.feed(stream, batch)

    def watch(self, pulse: Callable[[float], None] | None) -> None:
        """In this batch `pulse` gets the share of the rows that are taken in, often; None: nothing does."""
        executor = self.executor
        executor.taken = 0.0
        executor.eddy.pulse = nothing if pulse is None else functools.partial(self._beat, pulse)

    def _beat(self, pulse: Callable[[float], None]) -> None:
        pulse(self.executor.taken)

    def receive(self, shipment: Shipment) -> None:
        """Take a shipment from the split."""
        with self.meter.counted():
            self.input.receive(shipment)

    def advance(
        self,
        watermarks: Mapping[str, int | None],
        query_watermark: int | None,
        held: Watermarks | None = None,
        waits: int | None = None,
    ) -> None:
        """The batch is complete, and no row below these times will come any more. While groups are on disk, results at
        the watermark `held` and later may be missing; while rows wait for an answer, in any slot, those at `waits` and
        later."""
        with self.meter.counted():
            self._take_in(query_watermark)
            for packet in self.executor.waiting():
                self._complete(packet)
                self._gatherer.flush()
            final = _least(query_watermark if held is None else held.query, waits)
            if final is not None:
                self.results.advance(final)
            self._progress.watermark.now = query_watermark
            self.peak_rows, self.peak_bytes = self.state_rows, self.state_bytes
            self.executor.expire(watermarks, self.watermark)
            for part in self.parts:
                part.end_batch()
        self.cpu = self.meter.take()
        self.plans.watch(self.executor, FinishedBatch(watermarks, self.peak_bytes, self.cpu, self.pressure))

    def end(self, newest: int | None) -> None:
        """Flush everything that waits: every stream has ended. `newest` is the newest time of any readable row."""
        self._take_in(FOREVER)
        self.results.end(newest)

    def _take_in(self, watermark: int | None) -> None:
        self.join(watermark)
        self._gatherer.flush()

    def join(self, watermark: int | None) -> None:
        """Build the rows that were received, and those that waited for this watermark, and route them."""
        self.input.release(watermark)
        for source, stem in enumerate(self.executor.source_stems):
            if stem.waiting:
                for part in self._made:
                    part.take_in(source, stem.rows, slice(stem.built, stem.rows.stored))
        self.executor.take_in()

    def drain(self) -> list[pa.RecordBatch]:
        """The results since the last call."""
        return self.results.drain()

    @property
    def cut(self) -> Cut:
        """How far the slot has come."""
        final, held = self.watermark, self.executor.held
        final = -FOREVER if final is None else final
        return Cut(self.watermark, final if held is None else min(final, held), self.results.next)

    def commit(self, version: int) -> None:
        """Commit: events before it cannot be undone any more, and expired rows are released."""
        cut = self.cut
        for part in self.parts:
            part.commit(cut)
        self.version = version

    def wind_back(self) -> None:
        """Undo everything since the last commit."""
        for part in reversed(self.parts):
            part.wind_back()
        self._gatherer.clear()

    def durable(self) -> Named:
        """What the rows of the log cannot rebuild, for the checkpoint."""
        cut = self.cut
        return [named for part in self.parts for named in part.durable(cut)]

    def restore_durable(self, own: Named, any_slot: Named) -> None:
        """Restore from the durable state of one or several slots; `any_slot` is that of one of them."""
        for part in self.parts:
            part.restore_durable(own, any_slot)

    def close(self) -> None:
        """Close the arena and drop everything that refers to it; the slot cannot be used any more."""
        self.executor.stems.clear()
        self.executor.rows_windows.clear()
        self.executor.eddy.close()
        self.arena.close()

    # Size

    @property
    def waiting(self) -> int:
        """Rows, and cells of groups, that wait for the watermark."""
        return self.input.state_rows + self.results.state_rows

    @property
    def state_rows(self) -> int:
        """Rows held in SteMs, waiting rows and panes."""
        return sum(part.state_rows for part in self.parts)

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return sum(part.state_bytes for part in self.parts)

    @property
    def spillable(self) -> Spillable:
        """What the driver must know, at the end of a batch, to let groups leave memory."""
        if self.accounts is None:
            return Spillable()
        shared = sum(stem.nbytes for stem in self.executor.stems[len(self.query.sources) :])
        stays = self.state_bytes - sum(stem.nbytes for stem in self.executor.stems)
        growth = sum(stem.growth for stem in self.executor.stems)
        added = sum(stem.added for stem in self.executor.stems)
        return Spillable(self.accounts.table(shared).tobytes(), stays, round(growth), round(added))
