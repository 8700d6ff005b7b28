"""A job without a checkpoint, all of it in this process: nothing is written but results, and no run continues it.

Rows for the sinks stay in memory until every slot has taken its turn, so a batch that is abandoned leaves nothing in a
sink. They are written when the batch is published: its results first, then late and dead rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from eddyline.protocol.coordinator import Coordinator, NothingKept
from eddyline.protocol.home import Home
from eddyline.protocol.in_process import InProcess
from eddyline.protocol.outlet import RESULTS, Outlet
from eddyline.runtime.access.job_lookups import lookups_of
from eddyline.runtime.running.job import Job
from eddyline.runtime.running.job_driver import JobDriver
from eddyline.runtime.running.spec import as_dead_rows
from eddyline.runtime.sinks.sink import Sink
from eddyline.settings import Settings


class UnkeptJob:
    """One job without a checkpoint."""

    temporary = True
    unclean = 0
    """No row leaves memory."""

    def __init__(self, job: Job, settings: Settings) -> None:
        self._sinks: dict[Outlet, Sink] = {RESULTS: job.sink}
        self._schemas: dict[Outlet, pa.Schema] = {}
        outlets = [(Outlet("late", i.name), i.late, i.source.schema) for i in job.inputs]
        outlets += [(Outlet("dead", i.name), i.dead, i.source.schema) for i in job.inputs]
        outlets += [(Outlet("dead", table.stream.name), table.dead, table.schema) for table in job.asked]
        for outlet, sink, schema in outlets:
            if sink is not None:
                self._sinks[outlet], self._schemas[outlet] = sink, schema
        self._staged: dict[str, Sequence[pa.RecordBatch]] = {}
        slots, lookups = settings.slots or 1, lookups_of(job.query, [table.declaration for table in job.asked])
        self.home = Home(job.query, settings, slots, None, None, self._stage, lookups=lookups)
        for number in range(slots):  # a plan that cannot work is refused before a row is read
            self.home.keeper.leave(number, self.home.keeper.open(number))
        self.here = InProcess(self.home)
        self.driver = JobDriver(self.home, settings, here=self.here)

    def start(self) -> Coordinator:
        """Begin."""
        return self.driver.begin(NothingKept(), self)

    def _stage(self, outlet: Outlet, name: str, batches: Sequence[pa.RecordBatch]) -> list[str]:
        if outlet not in self._sinks:
            return []
        if outlet.kind == "late":
            batches = [batch.select(self._schemas[outlet].names) for batch in batches]
        elif outlet.kind == "dead":
            batches = [as_dead_rows(self._schemas[outlet], batch) for batch in batches]
        self._staged[name] = batches
        return [name]

    def publish(self, batch: int, staged: Mapping[Outlet, Sequence[str]]) -> None:
        """Write the rows of the batch to the sinks."""
        for outlet, sink in self._sinks.items():
            for name in staged.get(outlet, ()):
                for rows in self._staged.pop(name):
                    sink.write(rows)
        self._staged.clear()

    def forget_after(self, batch: int) -> None:
        """There was no earlier run."""

    def end(self) -> None:
        """The owner of the sinks closes them."""

    def close(self) -> None:
        """Stop to ask."""
        self.home.close()
