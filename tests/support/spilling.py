"""A slot whose partition groups leave memory and are swept, without a log: its rows are remembered in a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.engine.intake import event_times
from eddyline.engine.slot import Slot
from eddyline.engine.split import groups_along
from eddyline.engine.sweep.logged_places import CountedSpan, LoggedPlaces
from eddyline.engine.sweep.logged_rows import LoggedRows
from eddyline.engine.sweep.sweep import Sweep
from eddyline.engine.watermarks import Advanced, Watermarks
from eddyline.plan.bounds import FOREVER
from eddyline.plan.partition_groups import key_groups
from eddyline.plan.plan import plan_of
from eddyline.protocol.home import horizon
from eddyline.protocol.ledger import Ledger, Moves, Released
from eddyline.settings import Settings
from tests.support.jobs import Row, tuples
from tests.support.slot_steps import Step

Ints = NDArray[np.int64]

Logged = tuple[str, pa.RecordBatch, Ints | int]
"""Rows of a stream, and the epochs in which they came."""


def may_spill(settings: Settings, groups: int) -> Settings:
    """Settings with which this many partition groups can leave memory."""
    return replace(settings, memory=1 << 40, groups=groups)


def group_of(key: int, groups: int) -> int:
    """The partition group of a key."""
    return int(key_groups(pa.array([key]), groups)[0])


class ListLog:
    """A log in a list of streams, rows and the epochs in which they came. In a query with a ROWS window, `released`
    tells these epochs; rows below the watermark `counted` have been counted."""

    mapped = True

    def __init__(
        self, slot: Slot, logged: Sequence[Logged], released: Released | None = None, counted: int = -FOREVER
    ) -> None:
        self._slot, self._logged, self._released = slot, logged, released
        self.rows_windows = {
            source: LoggedPlaces(
                slot.query,
                source,
                partial(self._pieces, slot.query.sources[source].stream.name),
                CountedSpan(-FOREVER, FOREVER if released is None else released.until, counted, window.rows),
                at_a_time=3,
            )
            for source, window in slot.executor.rows_windows.items()
        }

    def _pieces(self, stream: str) -> Iterator[tuple[int, pa.RecordBatch]]:
        return ((number, rows) for number, (name, rows, _) in enumerate(self._logged) if name == stream)

    def rows(self, source: int, groups: Ints) -> Iterator[LoggedRows]:
        axis, plan = self._slot.executor.spill_axis, plan_of(self._slot.query)
        assert axis is not None
        stream = self._slot.query.sources[source].stream
        for number, rows in self._pieces(stream.name):
            of_rows = groups_along(axis, plan, source, rows)
            came = np.broadcast_to(np.asarray(self._logged[number][2], np.int64), of_rows.size).copy()
            here, places = np.isin(of_rows, groups), None
            if self._released is not None and stream.time is not None:
                times = event_times(rows.column(stream.time))
                came, here = self._released.came(times), here & ~self._released.wait(times)
                places = self.rows_windows[source].of(number, 0, times) if source in self.rows_windows else None
            yield LoggedRows(rows, of_rows, came, places=places).only(here)

    def sizes(self, source: int) -> NDArray[np.float64]:
        axis = self._slot.executor.spill_axis
        assert axis is not None
        groups = axis.first(source) + np.arange(axis.size)
        sizes = [sum(rows.nbytes for rows in self.rows(source, groups[n : n + 1])) for n in range(axis.size)]
        return np.array(sizes, np.float64)


class Spilling:
    """Does in turn what a slot's turn and the coordinator do (protocol/turn.py, protocol/coordinator.py)."""

    def __init__(self, slot: Slot, tables: Mapping[str, pa.RecordBatch] | None = None) -> None:
        """`tables` has the rows of tables that the slot has already."""
        self.slot, self.ledger = slot, Ledger()
        self._logged: list[Logged] = [(name, rows, 0) for name, rows in (tables or {}).items()]
        self._streams = [s.stream for s in slot.query.sources if not s.stream.is_table]
        self._advanced = Advanced()
        self._after: tuple[Ledger, Advanced, list[Logged]] | None = None
        self.swept: list[Row] = []
        """The rows that the sweep before the last batch made."""

    def batch(self, step: Step, moves: Moves = Moves()) -> list[Row]:  # noqa: B008
        """A batch that begins with these moves; it is neither committed nor wound back. At the end of the streams all
        groups on disk are swept."""
        slot, axis = self.slot, self.slot.executor.spill_axis
        assert axis is not None
        if step.last:
            moves = Moves(sweep=tuple(self.ledger.generations.clean))
        ledger = self.ledger.begin(moves, self._advanced, axis.size)
        slot.executor.generations = ledger.generations
        if moves.sweep:
            log = self._log(ledger.epoch, step.last)
            Sweep(slot, self.ledger.generations, log).run(np.array(moves.sweep))
        self.swept = tuples(slot.drain()) if slot.query.group is None else []
        if moves.leave:
            slot.forget(np.array(moves.leave))
        for name, rows in step.rows.items():
            if rows.num_rows:
                slot.feed(name, rows)
        advanced = self._advanced
        if step.last:
            slot.end(step.newest)
        else:
            held = None if ledger.held is None else self._watermarks(ledger.held)
            slot.advance(step.by_stream, step.watermark, held)
            newest = {s.name: t + s.lateness for s in self._streams if (t := step.by_stream[s.name]) is not None}
            advanced = Advanced(newest, used=step.watermark)
        found = self.swept + tuples(slot.drain())
        rows: list[Logged] = [(n, some, ledger.epoch) for n, some in step.rows.items()]

        def streams(group: int) -> list[str]:
            return [slot.query.sources[source].stream.name for source in axis.sources(group)]

        self._after = ledger.settled(streams, self._needed, axis.size), advanced, rows
        return sorted(found, key=repr)

    def _log(self, epoch: int, last: bool) -> ListLog:
        if not self.slot.query.counts_rows:
            return ListLog(self.slot, self._logged)
        used, marks = self._advanced.used, self.ledger.marks
        if last:  # rows that wait come with this batch
            marks = {**marks, epoch: self._advanced}
        released = replace(self.ledger, marks=marks).released(FOREVER if last else used)
        return ListLog(self.slot, self._logged, released, -FOREVER if used is None else used)

    def commit(self) -> None:
        """Commit the batch."""
        assert self._after is not None
        self.ledger, self._advanced, rows = self._after
        self._logged += rows
        self.slot.commit(self.slot.version + 1)

    def wind_back(self) -> None:
        """Undo the batch. Groups that have left memory before it are gone all the same."""
        self.slot.wind_back()

    def _watermarks(self, advanced: Advanced) -> Watermarks:
        found = Watermarks(self._streams)
        found.restore(advanced)
        return found

    def _needed(self, advanced: Advanced, held: Advanced | None) -> dict[str, int]:
        return horizon(plan_of(self.slot.query), self._watermarks(held or advanced), {}, held is not None)
