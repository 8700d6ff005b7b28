"""Results batch by batch, exactly once: staged by tasks, published by the driver, replaced when a batch is run again.

The names of staged files begin with the batch, so that files that no commit will ever name are known by it: they go
when the batch is published, and when a job starts. Published files have the batch in their names too: those of a batch
after the newest commit go when the job starts again, and come back with the same rows.

Other sinks get the rows of a batch after they were staged in the checkpoint; they may get a batch again, if the job
died between that and the commit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.errors import JobError, SettingError
from eddyline.faults import reach
from eddyline.runtime.sinks.files import FileOptions, repeating
from eddyline.runtime.sinks.folder import Folder
from eddyline.runtime.sinks.parts import PartWriter
from eddyline.runtime.sources.paths import why
from eddyline.state.log.store import Store


class StagedSink(Protocol):
    """Takes the rows of a batch in two steps."""

    def stage(self, name: str, batches: Sequence[pa.RecordBatch]) -> list[str]:
        """In a task: keep rows under names that begin with `name`, which begins with the batch; returns them."""

    def publish(self, batch: int, files: Sequence[str]) -> None:
        """At the driver: these are the rows of the batch, and no others."""

    def forget_after(self, batch: int) -> None:
        """At the start: what later batches published was never committed."""


class BatchFiles:
    """Files of a job with a checkpoint, or on Spark: one folder for all (runtime/sinks/folder.py)."""

    def __init__(self, options: FileOptions, schema: pa.Schema, job: str) -> None:
        self._options, self._schema = options, schema
        self._folder = Folder(options.path, job)
        self._begun = -1
        """The newest batch whose publishing was begun: of later ones nothing is published."""
        self._kept: dict[int, list[Path]] | None = None
        """By batch the files that are published at the end; None if each batch is published by itself."""

    @property
    def path(self) -> Path:
        """The folder."""
        return self._options.path

    def check(self, last: int | None) -> None:
        """Refuses (SettingError) a folder with results that do not fit the checkpoint, whose newest commit is of batch
        `last`: of this job there may be results up to the batch after it, of others only as the mode allows."""
        self._folder.check(self._options.mode if last is None else "append")
        newest, last = max((batch for _, batch in self._folder.mine()), default=-1), -1 if last is None else last
        if newest > last + 1:
            raise SettingError(
                f"{self.path} holds batch {newest} of this job, but the newest commit of the checkpoint is of batch"
                f" {last}: the checkpoint is an old copy; remove what is newer, or choose another path"
            )

    def keep_until_the_end(self) -> None:
        """For a job that ends and cannot go on after a crash: with mode 'overwrite' the old results stay until then."""
        self._kept = {} if self._options.mode == "overwrite" else None

    def stage(self, name: str, batches: Sequence[pa.RecordBatch]) -> list[str]:
        parts = PartWriter(self._folder.staged, name, self._options, self._schema)
        files = parts.write(pa.Table.from_batches(batches, self._schema))
        return [str(file) for file in (*files, *parts.close(at_least_one=not files))]

    def publish(self, batch: int, files: Sequence[str]) -> None:
        staged = [Path(file) for file in files]
        if self._kept is not None:
            self._kept[batch] = staged
            return
        with self._told():
            if batch <= self._begun:
                self._folder.remove([file for file, of in self._folder.mine() if of == batch])
                reach("sink: what was published before is away")
            self._begun = batch
            self._folder.publish(batch, staged)
            reach("sink: published")
            self._folder.tidy(batch)

    def forget_after(self, batch: int) -> None:
        with self._told():
            if batch < 0 and self._options.mode == "overwrite" and self._kept is None:
                self._folder.clear()
            self._folder.remove([file for file, of in self._folder.mine() if of > batch])
            self._folder.leave()

    def close(self, batch: int) -> None:
        """The job is done: without any row there is one empty file, so that readers find the columns."""
        kept = self._kept
        with self._told():
            old = [] if kept is None else list(self._folder.others())
            for of, staged in (kept or {}).items():
                self._folder.publish(of, staged)
            there = self._folder.data() if kept is None else (file for staged in kept.values() for file in staged)
            if next(there, None) is None:
                self._folder.publish(batch, map(Path, self.stage(f"{batch:08}-empty", [])))
            self._kept = None
            self._folder.remove(old)
            self._folder.leave()

    def abandon(self) -> None:
        """The job is over and no run goes on with it. If it failed before it replaced old results, its files go."""
        if self._kept is not None:
            self._folder.withdraw()
        self._folder.leave()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise JobError(f"cannot write to {self.path}: {why(error)}") from None


class HandOver:
    """Rows go to a function, from files in the checkpoint: a print, a callback, a Spark writer. `folder` is where they
    are, and files are named by the folder and their own names, in the checkpoint wherever that is."""

    def __init__(
        self, store: Store, folder: str, schema: pa.Schema, give: Callable[[int, Sequence[str]], None]
    ) -> None:
        self._store, self._folder, self._schema, self._give = store, folder, schema, give

    def stage(self, name: str, batches: Sequence[pa.RecordBatch]) -> list[str]:
        out = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_batches(batches, self._schema), out, use_dictionary=repeating(self._schema))
        self._store.write(f"{self._folder}/{name}.parquet", out.getvalue())
        return [f"{self._folder}/{name}.parquet"]

    def staged(self, file: str) -> pa.Table:
        """The rows of a file, in the types that they had: parquet has no seconds, for example."""
        return pq.read_table(pa.BufferReader(self._store.read(file))).cast(self._schema)

    def publish(self, batch: int, files: Sequence[str]) -> None:
        if files:
            reach("sink: before rows are handed over")
            self._give(batch, files)
            reach("sink: rows are handed over")
        for name in self._store.names(self._folder):
            if int(name.split("-")[0]) <= batch:
                self._store.delete(f"{self._folder}/{name}")

    def forget_after(self, batch: int) -> None:
        for name in self._store.all_names(self._folder):
            self._store.delete(f"{self._folder}/{name}")
        if self._store.local:
            with contextlib.suppress(OSError):
                Path(self._store.path(self._folder)).rmdir()

    def close(self, batch: int) -> None:
        self.forget_after(batch)

    def abandon(self) -> None:
        """Nothing to undo: the checkpoint goes with the job."""
