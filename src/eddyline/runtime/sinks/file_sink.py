"""Results of a run without a checkpoint on the local engine, as files: the whole run is one batch.

A file is published when it is complete. With `mode 'overwrite'` all files are published when the run has succeeded, and
only then are the old results deleted. If publishing fails, the new files are deleted and the old ones stay.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa

from eddyline.errors import JobError
from eddyline.os_errors import why
from eddyline.runtime.sinks.files import FileOptions
from eddyline.runtime.sinks.folder import JOB_DIGITS, Folder
from eddyline.runtime.sinks.parts import PartWriter

_GROUP_ROWS = 65536
"""Rows are collected up to this number, so that small batches do not become small row groups."""
_BATCH = 0


class FileSink:
    """A folder of result files, to which rows are written as they come."""

    def __init__(self, options: FileOptions, schema: pa.Schema) -> None:
        self._options, self._schema = options, schema
        self._folder = Folder(options.path, uuid.uuid4().hex[:JOB_DIGITS])
        self._parts = PartWriter(self._folder.staged, f"{_BATCH:08}", options, schema)
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._complete: list[Path] = []
        """Complete files that are not published yet."""
        self._published = 0
        self._replaces = options.mode == "overwrite"
        """Whether old results are still to be replaced."""

    def check(self) -> None:
        """SettingError if the folder cannot be made, or holds results that the mode does not allow."""
        self._folder.check(self._options.mode)

    def open(self) -> None:
        """Make the folder and keep other runs out; old results in it stay for now."""
        self._folder.claim(self._options.mode)
        self.check()  # another run may have ended since the first look

    def write(self, batch: pa.RecordBatch) -> None:
        """Collects rows and writes them when there are enough."""
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        if self._pending_rows >= _GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        """Complete and publish the last file; a run without any row writes one empty file, so that readers find the
        columns."""
        self._flush()
        nothing = not self._published and not self._complete
        empty = nothing and (self._replaces or next(self._folder.data(), None) is None)
        self._complete += self._parts.close(at_least_one=empty)
        old = list(self._folder.others()) if self._replaces else []
        self._publish()
        self._replaces = False
        self._folder.remove(old)
        self._folder.leave()
        self._folder.release()

    def abandon(self) -> None:
        """Removes files that are not published, and those that should have replaced old results."""
        self._complete = []
        if self._replaces:
            self._folder.withdraw()
        self._folder.leave()
        self._folder.release()

    def _flush(self) -> None:
        if self._pending:
            table = pa.Table.from_batches(self._pending, self._schema)
            self._pending, self._pending_rows = [], 0
            self._complete += self._parts.write(table)
            if not self._replaces:
                self._publish()

    def _publish(self) -> None:
        if not self._published:
            self.check()  # on a file system without locks another run may have published since
        try:
            self._folder.publish(_BATCH, self._complete, self._published)
        except OSError as error:
            raise JobError(f"cannot write to {self._options.path}: {why(error)}") from None
        self._published += len(self._complete)
        self._complete = []
