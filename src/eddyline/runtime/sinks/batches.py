"""Results batch by batch, exactly once: staged by tasks, published by the driver, replaced when a batch is run again.

The names of staged files begin with the batch, so that files of failed attempts are recognised: they are deleted when
the batch is published, and when a job starts. The names of published files have the batch too: when the job starts
again, files of batches after the newest commit are deleted, and written again with the same rows.

Other sinks get the rows of a batch after they were staged in the checkpoint; they may get a batch again if the job dies
between that and the commit. Sinks that keep the number of a batch get it after the commit
(runtime/running/deliveries.py).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.errors import JobError, SettingError
from eddyline.faults import reach
from eddyline.os_errors import why
from eddyline.runtime.sinks.files import FileOptions, repeating
from eddyline.runtime.sinks.folder import Folder
from eddyline.runtime.sinks.parts import PartWriter
from eddyline.runtime.staged_types import restored, storable
from eddyline.state.log.labelled import LabelledFiles

_STAGED = re.compile(r"[0-9]{8,}-")
"""How the names of staged files begin: with their batch."""
_LABEL = b"eddyline.label"
"""The label of a staged file, in its metadata."""


class BatchFiles:
    """The files of a job with a checkpoint, or on Spark, in one folder (runtime/sinks/folder.py)."""

    def __init__(self, options: FileOptions, schema: pa.Schema, job: str) -> None:
        self._options, self._schema = options, schema
        self._folder = Folder(options.path, job)
        self._begun = -1
        """The newest batch whose publishing was begun: no later batch has published files."""
        self._kept: dict[int, list[Path]] | None = None
        """The files of each batch, if all batches are published at the end; None if each batch is published by
        itself."""

        self._begins = False
        """Whether the job has published nothing."""

    @property
    def path(self) -> Path:
        """The folder."""
        return self._options.path

    def claim(self) -> None:
        """At the driver: make the folder and keep other runs out until `release`."""
        self._folder.claim(self._options.mode)

    def release(self) -> None:
        """Let other runs in."""
        self._folder.release()

    def check(self, last: int | None) -> None:
        """SettingError for a folder whose results do not fit the checkpoint, whose newest commit is of batch `last`:
        results of this job may be of batches up to `last` + 1, and the mode must allow results of other jobs."""
        self._folder.check(self._options.mode if last is None else "append")
        self._begins = last is None
        newest, last = max((batch for _, batch in self._folder.mine()), default=-1), -1 if last is None else last
        if newest > last + 1 and last < 0:
            raise JobError(
                f"the checkpoint is damaged: its commits are missing, and {self.path} holds batch {newest} of this job;"
                " put the commits back, or begin again with a new checkpoint folder and an empty sink"
            )
        if newest > last + 1:
            raise SettingError(
                f"{self.path} holds batch {newest} of this job, but the newest commit of the checkpoint is of batch"
                f" {last}: the checkpoint is an old copy; remove what is newer, or choose another path"
            )

    def keep_until_the_end(self) -> None:
        """For a job that ends and cannot be continued after a crash: with mode 'overwrite' the old results stay until
        its end."""
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
        self._look_again()
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
        """End the job. A job without any row writes one empty file, so that readers find the columns."""
        kept = self._kept
        self._look_again()
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

    def pause(self) -> None:
        """End a run of a job that a later run may continue."""
        self._folder.pause()

    def abandon(self) -> None:
        """End a job that no run will continue. If it failed before it replaced old results, its files are deleted."""
        if self._kept is not None:
            self._folder.withdraw()
        self._folder.leave()

    def _look_again(self) -> None:
        """SettingError if another run has published since `check`, on a file system without locks."""
        if self._begins:
            self._folder.check(self._options.mode)
            self._begins = False

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise JobError(f"cannot write to {self.path}: {why(error)}") from None


class HandOver:
    """A sink that gives rows, from files in the checkpoint, to a function: a print, a callback, a Spark writer. The
    files are in `folder`; their names are relative to the checkpoint."""

    def __init__(
        self, checkpoint: LabelledFiles, folder: str, schema: pa.Schema, give: Callable[[int, Sequence[str]], None]
    ) -> None:
        self._files, self._folder, self._schema, self._give = checkpoint, folder, schema, give
        self._store = checkpoint.store

    def stage(self, name: str, batches: Sequence[pa.RecordBatch]) -> list[str]:
        out = pa.BufferOutputStream()
        rows = storable(pa.Table.from_batches(batches, self._schema))
        name = f"{self._folder}/{name}.parquet"
        rows = rows.replace_schema_metadata({_LABEL: self._files.label(name)})
        pq.write_table(rows, out, use_dictionary=repeating(self._schema))
        self._store.write(name, out.getvalue())
        return [name]

    def staged(self, file: str) -> pa.Table:
        """The rows of a file, in their types; JobError if it is another file."""
        rows = pq.read_table(pa.BufferReader(self._files.contents(file)))
        self._files.check(file, (rows.schema.metadata or {}).get(_LABEL, b"").decode())
        return restored(rows, self._schema)

    def has(self, file: str) -> bool:
        """Whether a staged file is there: it is deleted after its rows were given."""
        return self._store.exists(file)

    def publish(self, batch: int, files: Sequence[str]) -> None:
        if files:
            reach("sink: before rows are handed over")
            self._give(batch, files)
            reach("sink: rows are handed over")
        self._store.clean(self._folder, lambda name: _STAGED.match(name) and int(name.split("-")[0]) <= batch)

    def forget_after(self, batch: int) -> None:
        self._store.clean(self._folder, _STAGED.match)
        if self._store.local:
            with contextlib.suppress(OSError):
                Path(self._store.path(self._folder)).rmdir()

    def close(self, batch: int) -> None:
        self.forget_after(batch)

    def abandon(self) -> None:
        """Nothing to undo: the checkpoint is deleted with the job."""


class PassOn:
    """A sink that passes rows on at once, in a job of one process that no later run continues: nothing is staged."""

    def __init__(self, schema: pa.Schema, write: Callable[[pa.RecordBatch], None]) -> None:
        self._schema, self._write = schema, write

    def stage(self, name: str, batches: Sequence[pa.RecordBatch]) -> list[str]:
        for batch in batches:
            self._write(batch.select(self._schema.names))
        return []

    def publish(self, batch: int, files: Sequence[str]) -> None:
        """The rows are there already."""

    def forget_after(self, batch: int) -> None:
        """There was no earlier run."""

    def close(self, batch: int) -> None:
        """The owner of the sink closes it."""

    def abandon(self) -> None:
        """The owner of the sink abandons it."""
