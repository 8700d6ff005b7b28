"""A query driven batch by batch, for tests and benchmarks: the engine's own parts with a journal that keeps nothing.

Beside what a run does, a batch may be left uncommitted, and be wound back; slots are at hand between batches, also
after a batch that has failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from eddyline.bound.model import BoundQuery
from eddyline.counts import Counts
from eddyline.engine.groups.online import RunningEstimate, running_estimates
from eddyline.engine.lookups.answers import Failure
from eddyline.engine.lookups.look_up import Lookups
from eddyline.engine.plan_source import MakePlanSource
from eddyline.engine.planner import plan_source
from eddyline.engine.slot import Slot
from eddyline.engine.standing import Standing, StateSize
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.errors import InternalError
from eddyline.optimizer.pressure import NO_PRESSURE, Pressure
from eddyline.plan.judges import Preferences
from eddyline.protocol.batch_decision import BatchDecision, BatchKind
from eddyline.protocol.coordinator import NothingKept
from eddyline.protocol.home import Home, MemoryKeeper
from eddyline.protocol.in_process import Arrived, InProcess
from eddyline.protocol.outlet import Outlet
from eddyline.protocol.packing import REASON
from eddyline.protocol.record import Record
from eddyline.routing.report import Report
from eddyline.runtime.running.job_driver import JobDriver
from eddyline.settings import Settings


@dataclass(frozen=True)
class BatchResult:
    """The output of a batch: result rows, late rows by stream, and dead rows by stream with their reasons."""

    results: list[pa.RecordBatch] = field(default_factory=list)
    late: list[tuple[str, pa.RecordBatch]] = field(default_factory=list)
    dead: list[tuple[str, pa.RecordBatch, pa.Array]] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    """Lookups that have failed for good: rows that waited for them are dead."""


class SlotsAtHand(MemoryKeeper):
    """Keeps all slots, also while they take their turns, and after turns that failed."""

    def open(self, number: int) -> Slot:
        if number not in self.slots:
            self.slots[number] = self._make()
        return self.slots[number]


class BatchDriver:
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
        self.query, self._asked = query, {s.stream.name for s in query.sources if s.stream.is_asked}
        more = plans, tuning, lookups, clock, clock
        self.home = Home(query, settings, settings.slots or 1, None, None, self._stage, True, *more)
        self._keeper = self.home.keeper = SlotsAtHand(self.home._make)
        self._asks = lookups is not None
        self._ask_anew([""] * len(self.slots))
        self._here = InProcess(self.home)
        self._driver = JobDriver(self.home, settings, here=self._here)
        self._coordinator = self._driver.begin(NothingKept(), self)
        self._found, self._has_begun = BatchResult(), False
        self._open: tuple[BatchDecision, list[Record]] | None = None
        """A batch that is neither committed nor wound back."""

    @property
    def slots(self) -> list[Slot]:
        """All slots."""
        return [self._keeper.open(number) for number in range(self.home.slots)]

    @property
    def slot(self) -> Slot:
        """The first slot; the only one unless the settings ask for more."""
        return self._keeper.open(0)

    def watch(self, pulse: Callable[[float], None]) -> None:
        """During batches, `pulse` gets the share of the rows that are taken in, often."""
        self._here.pulse = pulse

    def load_table(self, stream: str, batch: pa.RecordBatch) -> None:
        """Load rows of a static table, before the first batch."""
        if self._has_begun:
            raise InternalError("rows of a table came after the first batch")
        self._run("load", [(stream, batch, True)])
        self.commit()

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
        self._has_begun, arrived = True, [(name, some, True) for name, some in rows]
        found = self._run("rows", arrived, sorted(ended), unread, pressure)
        if commit:
            self.commit()
        return found

    def end(self) -> BatchResult:
        """Flush everything that waits, in a batch of its own: all streams have ended."""
        found = self._run("end", ())
        self.commit()
        return found

    def commit(self) -> None:
        """Commit the batch; it cannot be undone any more."""
        if self._open is not None:
            self._driver.finish(*self._open)
            self._open = None

    def wind_back(self) -> None:
        """Undo everything since the last commit."""
        self._open, commit = None, self._driver.commit
        histories = [commit.history + commit.attempts.get(number, "") for number in range(self.home.slots)]
        for slot, history in zip(self.slots, histories, strict=True):
            slot.wind_back()
            slot.batch_done = "", history
        self.home.close()
        self._ask_anew(histories)

    def _ask_anew(self, histories: Sequence[str]) -> None:
        """Make what asks for each slot, which continues from a history."""
        for number, history in enumerate(histories if self._asks else ()):
            self.home.keep_lookups(number, history, self.home.lookups(number, history)[0])

    def _run(
        self,
        kind: BatchKind,
        arrived: Sequence[Arrived],
        ended: Sequence[str] = (),
        unread: Collection[str] = (),
        pressure: Pressure = NO_PRESSURE,
    ) -> BatchResult:
        self._found = BatchResult()
        number = self._coordinator.commit.batch + 1
        decision = self._coordinator.begin(number, kind, None, ended, unread, pressure=pressure)
        if decision is None:
            raise InternalError(f"batch {number} is committed already")
        self._open = decision, self._here.run(decision, arrived)
        return self._found

    def _stage(self, outlet: Outlet, name: str, batches: Sequence[pa.RecordBatch]) -> list[str]:
        for batch in batches:
            if outlet.kind == "results":
                self._found.results.append(batch)
            elif outlet.kind == "late":
                self._found.late.append((outlet.stream, batch))
            else:
                rows, reasons = batch.drop_columns([REASON]), batch.column(REASON)
                if outlet.stream in self._asked:
                    self._found.failed.append(Failure(outlet.stream, rows, reasons[0].as_py()))
                else:
                    self._found.dead.append((outlet.stream, rows, reasons))
        return []

    def publish(self, batch: int, staged: Mapping[Outlet, Sequence[str]]) -> None:
        """The rows were returned already."""

    def forget_after(self, batch: int) -> None:
        """There was no earlier run."""

    def close(self) -> None:
        """Stop to ask."""
        self.home.close()

    # What is known after the last batch

    @property
    def preferences(self) -> Preferences:
        """Which rows come first; they may be changed between two batches."""
        return self.home.preferences

    @property
    def standing(self) -> Standing:
        """The counts and the state of the run."""
        return self._driver.account.standing

    @property
    def counts(self) -> Counts:
        """The counts of all committed batches."""
        return self.standing.job

    @property
    def held(self) -> StateSize:
        """The state after the last commit."""
        return self.standing.held

    @property
    def peak(self) -> StateSize:
        """The largest state at the end of a batch, before expired rows were released."""
        return self.standing.peak

    @property
    def waits(self) -> bool:
        """Whether rows wait for the answer of a table."""
        return self._coordinator.commit.waits

    @property
    def decisions(self) -> dict[str, int]:
        """Decisions so far, by kind. A wind-back does not undo decisions about routes."""
        return self._driver.account.decisions

    def estimates(self, totals: Mapping[str, int], groups: int | None = None) -> tuple[RunningEstimate, ...]:
        """Estimates of the aggregates of open groups. `totals` are the numbers of rows of the streams that know it."""
        return running_estimates(self.query, self._here.moment, totals, groups)

    def report(self, seconds: float = 0.0) -> Report:
        """The work of the eddies so far, `seconds` after the start."""
        return self._driver.account.report(seconds)

    def explain(self) -> str:
        """The plan, and the measurements on it so far."""
        return self._driver.account.explain()
