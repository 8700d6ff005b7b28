"""What every job with a checkpoint has, on whichever engine: a spec, a coordinator, sinks in two steps.

The checkpoint says what it is of (streams, columns, query, partition groups); a job that is something else is refused.
Settings may change from one run to the next: results do not depend on them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pyarrow.parquet as pq

from eddyline.cql.script import Script, WindowClause, parse
from eddyline.engine.coordinator import Coordinator
from eddyline.engine.turn import RESULTS, Home
from eddyline.errors import JobError
from eddyline.query.model import Query
from eddyline.runtime.job import Job
from eddyline.runtime.sinks.batches import BatchFiles
from eddyline.runtime.spec import AnySink, Spec, home_of, schema_text
from eddyline.settings import Settings
from eddyline.state.log.commits import Checkpoint, Commit
from eddyline.state.log.store import Store

COUNTS = ("rows_in", "rows_out", "rows_used", "rows_late", "rows_dead", "expression_errors")
"""What a commit counts, under the names of the summary."""


class Durable:
    """One job and its checkpoint; without a folder for that one that goes with the job."""

    def __init__(
        self,
        job: Job,
        text: str,
        settings: Settings,
        slots: int,
        checkpoint: str | None,
        arenas: str | None,
        modules: Sequence[str] = (),
    ) -> None:
        self._job = job
        self._temporary = None if checkpoint is not None else tempfile.mkdtemp(prefix="eddyline-checkpoint-")
        root = checkpoint or self._temporary or ""
        self.root = root if "://" in root else os.path.abspath(root)
        declared = {d.name.lower() for d in parse(text).declarations}
        self.spec = Spec(
            text,
            {i.name.lower(): schema_text(i.source.schema) for i in job.inputs},
            {i.name: (i.time, i.lateness) for i in job.inputs if i.name.lower() not in declared},
            asdict(replace(settings, slots=slots)),
            list(modules),
            self.root,
            None if arenas is None else arenas.format(name=_digest(self.root)),
            slots,
        )
        self.text = self.spec.as_json()
        self.checkpoint = Checkpoint(Store(self.root))
        self.home: Home = home_of(self.text)[1]
        self.sinks = self.spec.sinks(self.home.query, self._give)
        self.coordinator: Coordinator

    def start(self) -> None:
        """Begin, or go on from the newest commit."""
        self.checkpoint.open(about(self.spec, self.home.query))
        begun = self.checkpoint.last() is not None
        for sink in self.sinks.values():
            if isinstance(sink, BatchFiles):
                sink.check(begun)
        slots = self.spec.slots
        published = _Published(self.sinks)
        self.coordinator = Coordinator(self.checkpoint, self.home.watermarks, self.home.horizon, published, slots)
        if self.commit.finished:
            self.finished()  # a run may have died before it came to that
            raise JobError(
                "the job of this checkpoint is finished: its streams have ended and its results are complete;"
                " new data needs a new checkpoint"
            )

    @property
    def commit(self) -> Commit:
        """The newest commit."""
        return self.coordinator.commit

    @property
    def counts(self) -> dict[str, int]:
        """What the job has counted, over all its runs."""
        return {name: self.commit.counts.get(name, 0) for name in COUNTS}

    def finished(self) -> None:
        """The streams have ended and all is flushed."""
        for sink in self.sinks.values():
            sink.close(self.commit.batch)

    def close(self) -> None:
        """The run is over."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _give(self, what: str, batch: int, files: Sequence[str]) -> None:
        """Rows for a sink that is no files."""
        if what != RESULTS:
            return
        take_files = getattr(self._job.sink, "take_files", None)
        if take_files is not None:
            take_files(batch, files)
        else:
            for file in files:
                for rows in pq.read_table(file).to_batches():
                    self._job.sink.write(rows)


class _Published:
    """All sinks of a job as the coordinator sees them."""

    def __init__(self, sinks: Mapping[str, AnySink]) -> None:
        self._sinks = sinks

    def publish(self, batch: int, staged: Mapping[str, Sequence[str]]) -> None:
        for what, sink in self._sinks.items():
            sink.publish(batch, staged.get(what, ()))

    def forget_after(self, batch: int) -> None:
        for sink in self._sinks.values():
            sink.forget_after(batch)


def about(spec: Spec, query: Query) -> dict[str, Any]:
    """What a checkpoint is of: the streams with the columns that are read, the query with its windows, the groups."""
    streams: dict[str, dict[str, Any]] = {}
    for number, source in enumerate(query.sources):
        columns = {name: str(source.stream.schema.field(name).type) for name in query.columns_of_source(number)}
        known = streams.setdefault(source.stream.name, {})
        known |= columns | {"time": source.stream.time, "lateness": source.stream.lateness}
    return {
        "stream": {name: json.dumps(columns, sort_keys=True) for name, columns in streams.items()},
        "query": _query_text(spec.script),
        "groups": spec.settings["groups"],
    }


def _query_text(script: Script) -> str:
    """The query, however it is laid out."""
    windows = ", ".join(f"{s.alias} {_window(s.window)}" for s in script.sources)
    return f"{script.select.sql()} over {windows}"


def _window(window: WindowClause | None) -> str:
    return "" if window is None else f"{window.kind} {window.size} {window.slide or ''}".strip()


def _digest(root: str) -> str:
    return f"{os.getuid()}-{hashlib.sha256(root.encode()).hexdigest()[:16]}"
