"""Results batch by batch, exactly once: staged by tasks, published by the driver, replaced when a batch is run again.

A file sink keeps each batch in a folder of its own, `batch-00000042`, which appears whole by one rename. What is not
published yet lies in `_staged`, under names that begin with the batch; readers do not look there (`_`). Files that no
commit will ever name are collected when a batch is published, and when a job starts.

Other sinks get the rows of a batch after they were staged in the checkpoint; they may get a batch again, if the job
died between that and the commit.
"""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.errors import JobError, SettingError
from eddyline.faults import reach
from eddyline.runtime.sinks.files import FileOptions, repeating, writer
from eddyline.runtime.sources.paths import why
from eddyline.state.log.store import Store

STAGED = "_staged"
_BATCH = "batch-"


class StagedSink(Protocol):
    """Takes the rows of a batch in two steps."""

    def stage(self, name: str, batches: Sequence[pa.RecordBatch]) -> str:
        """In a task: keep rows under a name that begins with the batch; returns where."""

    def publish(self, batch: int, files: Sequence[str]) -> None:
        """At the driver: these are the rows of the batch, and no others."""

    def forget_after(self, batch: int) -> None:
        """At the start: what later batches published was never committed."""


class BatchFiles:
    """A folder with a folder for each batch."""

    def __init__(self, options: FileOptions, schema: pa.Schema) -> None:
        self._options, self._schema, self._path = options, schema, options.path

    def check(self, last: int | None) -> None:
        """The folder can be made; results of others are not touched. `last` is the batch of the newest commit: ours are
        results up to the one after it."""
        if self._path.exists() and not self._path.is_dir():
            raise SettingError(f"{self._path} is a file; the path of a sink is a folder")
        if last is not None:
            if foreign := sorted(folder.name for folder, batch in self._batches() if batch > last + 1):
                raise SettingError(
                    f"{self._path} holds {foreign[-1]}, but the newest commit of the checkpoint is of batch {last}:"
                    " that is of another job, or the checkpoint is an old copy; remove what is newer,"
                    " or choose another path"
                )
            return
        if not self._path.is_dir():
            return
        there = [file for file in self._path.iterdir() if file.name != STAGED and not file.name.startswith(".")]
        if there and self._options.mode != "overwrite":
            raise SettingError(
                f"{self._path} already holds results; add mode 'overwrite', or choose another path"
                " (with a checkpoint, mode 'append' is not possible: each batch has a folder of its own)"
            )

    def stage(self, name: str, batches: Sequence[pa.RecordBatch]) -> str:
        folder = self._path / STAGED
        file = folder / f"{name}.{self._options.format}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            out = writer(file, self._options, self._schema)
            out.write(pa.Table.from_batches(batches, self._schema))
            reach("sink: before a staged file is closed")
            out.close()
            reach("sink: a file is staged")
        except (pa.ArrowException, OSError) as error:
            raise JobError(f"cannot write to {self._path}: {why(error)}") from None
        return str(file)

    def publish(self, batch: int, files: Sequence[str]) -> None:
        target, mark = self._path / f"{_BATCH}{batch:08}", uuid.uuid4().hex[:8]
        fresh, old = self._path / STAGED / f"{batch:08}-new-{mark}", self._path / STAGED / f"{batch:08}-old-{mark}"
        try:
            if files:
                fresh.mkdir(parents=True)
                for number, file in enumerate(files):
                    Path(file).rename(fresh / f"part-{number:05}.{self._options.format}")
            reach("sink: staged files are together")
            if target.exists():
                target.rename(old)
                reach("sink: what was published before is away")
            if files:
                fresh.rename(target)
            reach("sink: published")
            self._tidy(batch)
        except OSError as error:
            raise JobError(f"cannot write to {self._path}: {why(error)}") from None

    def forget_after(self, batch: int) -> None:
        if batch < 0 and self._options.mode == "overwrite" and self._path.is_dir():
            for there in self._path.iterdir():
                _remove(there)
        if self._path.is_dir():
            for folder, number in self._batches():
                if number > batch:
                    _remove(folder)
            self._tidy(1 << 62)

    def _batches(self) -> list[tuple[Path, int]]:
        """The folders of published batches, with their numbers."""
        there = [(folder, folder.name[len(_BATCH) :]) for folder in self._path.glob(f"{_BATCH}*")]
        return [(folder, int(number)) for folder, number in there if number.isdigit()]

    def close(self, batch: int) -> None:
        """The job is done: without any row there is one empty file, so that readers find the columns."""
        if not any(self._path.glob(f"{_BATCH}*")):
            self.publish(batch, [self.stage(f"{batch:08}-empty", [])])
        with contextlib.suppress(OSError):
            (self._path / STAGED).rmdir()

    def _tidy(self, batch: int) -> None:
        """What is staged for batches up to this one is no longer needed."""
        staged = self._path / STAGED
        for there in staged.iterdir() if staged.is_dir() else ():
            if int(there.name.split("-")[0]) <= batch:
                _remove(there)


class HandOver:
    """Rows go to a function, from files in the checkpoint: a print, a callback, a Spark writer. `folder` is where they
    are, and files are named by the folder and their own names, in the checkpoint wherever that is."""

    def __init__(
        self, store: Store, folder: str, schema: pa.Schema, give: Callable[[int, Sequence[str]], None]
    ) -> None:
        self._store, self._folder, self._schema, self._give = store, folder, schema, give

    def stage(self, name: str, batches: Sequence[pa.RecordBatch]) -> str:
        out = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_batches(batches, self._schema), out, use_dictionary=repeating(self._schema))
        self._store.write(f"{self._folder}/{name}.parquet", out.getvalue())
        return f"{self._folder}/{name}.parquet"

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


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
