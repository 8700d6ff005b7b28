"""A folder of results: which file belongs to which job, and how files are published and deleted. Both engines use this
layout.

    out/part-00000042-00000-3f2a9c0b17de.parquet      the first file of batch 42 of the job 3f2a9c0b17de
    out/country=de/part-00000042-00001-...            a file of a sink with PARTITION BY (country)
    out/_staged/3f2a9c0b17de/...                      files of that job that are not published yet

A file is written under `_staged`, which readers skip because of its `_`, and published by one rename when it is
complete. Its name has the job and the batch, so a job finds its own files and never touches those of other jobs.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from eddyline.errors import JobError, SettingError
from eddyline.faults import reach
from eddyline.os_errors import why
from eddyline.runtime.sinks.sink import taken
from eddyline.state.folder_lock import FolderLock, FolderTaken

STAGED = "_staged"
JOB_DIGITS = 12
"""The number of digits of a job's random id in the names of its files: if ten thousand jobs append to one folder, two
of them share these digits with a chance of one in a million."""
_OURS = re.compile(r"part-(?P<batch>[0-9]{8,})-[0-9]{5,}-(?P<job>[0-9a-f]+)\.")
_JOB = re.compile(rf"[0-9a-f]{{{JOB_DIGITS}}}")
_OLD_BATCH = re.compile(r"batch-[0-9]+$")
_COMPRESSED = {".gz", ".bz2", ".zst", ".lz4", ".snappy"}
_FORMATS = {".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".orc", ".avro", ".arrow", ".feather"}


class Folder:
    """The results at a path, as one job sees them."""

    def __init__(self, path: Path, job: str) -> None:
        self.path, self.staged = path, path / STAGED / job
        self._job, self._lock = job, FolderLock()

    def check(self, mode: str) -> None:
        """SettingError for a path that is a file, for links in the folder and, with mode 'error', for results of other
        jobs. Files behind a link would be published and not found again, or deleted as if they were ours."""
        if self.path.exists() and not self.path.is_dir():
            raise SettingError(f"{self.path} is a file; the path of a sink is a folder")
        if (link := next(_links(self.path), None)) is not None:
            what = "a link to a folder" if os.path.isdir(link) else "a link"
            raise SettingError(f"{link} is {what}; remove the link, or choose another path")
        if mode == "error" and (other := next(self.others(), None)) is not None:
            raise SettingError(
                f"{self.path} already holds results ({other.relative_to(self.path)});"
                " add mode 'overwrite' or mode 'append', or choose another path"
            )

    def claim(self, mode: str) -> None:
        """Make the folder, and keep other runs out of it until `release` or the end of the process, but with mode
        'append'; JobError if another run is in it."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if mode != "append":
                self._lock.take(str(self.path))
        except OSError as error:
            raise JobError(f"cannot write to {self.path}: {why(error)}") from None
        except FolderTaken as other:
            raise taken(self.path, other) from None

    def release(self) -> None:
        """Let other runs in."""
        self._lock.let_go()

    def data(self) -> Iterator[Path]:
        """The files that hold rows, of all jobs and other programs: files with the name of a result or of a format, and
        all files in folders of batches and of partition values. No other file is listed, so no other file is ever
        deleted."""
        if not self.path.is_dir():
            return
        for entry in os.scandir(self.path):
            if _holds_rows(entry):
                yield from _below(entry)

    def mine(self) -> Iterator[tuple[Path, int]]:
        """The published files of this job, with their batches."""
        for file in self.data():
            match = _OURS.match(file.name)
            if match is not None and match["job"] == self._job:
                yield file, int(match["batch"])

    def others(self) -> Iterator[Path]:
        """The files that hold rows and do not belong to this job."""
        mine = {file for file, _ in self.mine()}
        return (file for file in self.data() if file not in mine)

    def publish(self, batch: int, files: Iterable[Path], first: int = 0) -> None:
        """Publish staged files as files of the batch, numbered from `first`; each appears whole, by one rename."""
        for number, file in enumerate(files, first):
            folder = self.path / file.relative_to(self.staged).parent
            if folder != self.path:
                folder.mkdir(parents=True, exist_ok=True)
            reach("sink: before a file is published")
            file.rename(folder / f"part-{batch:08}-{number:05}-{self._job}{file.suffix}")

    def remove(self, files: Sequence[Path]) -> None:
        """Delete these files, and the folders that are empty afterwards."""
        for file in files:
            file.unlink(missing_ok=True)
        for folder in {file.parent for file in files}:
            _prune(folder, self.path)

    def withdraw(self) -> None:
        """Delete the published files of this job, as far as the file system permits."""
        with contextlib.suppress(OSError):
            self.remove([file for file, _ in self.mine()])

    def clear(self) -> None:
        """Delete all files that hold rows and all staged files, also those of other jobs."""
        self.remove(list(self.data()))
        for staged in (self.path / STAGED).glob("*"):
            if _JOB.fullmatch(staged.name):
                shutil.rmtree(staged, ignore_errors=True)
        _prune(self.path / STAGED, self.path)

    def tidy(self, batch: int) -> None:
        """Delete the staged files of this job for batches up to this one; their names begin with the batch. Hidden
        files belong to the file system: NFS keeps a deleted file that is still open under a hidden name. The staging
        folder stays for the next batch: to remove and make folders takes longer than to rename files."""
        for root, _, names in os.walk(self.staged, topdown=False):
            for name in names:
                if not name.startswith(".") and int(name.split("-")[0]) <= batch:
                    Path(root, name).unlink(missing_ok=True)
            _prune(Path(root), self.staged)

    def pause(self) -> None:
        """Remove this job's staging folder if it is empty: a later run may continue the job."""
        _prune(self.staged, self.path)

    def leave(self) -> None:
        """Remove this job's staging folder: the job stages no more files."""
        shutil.rmtree(self.staged, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.staged.parent.rmdir()


def _prune(folder: Path, top: Path) -> None:
    """Remove a folder if it is empty, and then the folders above it, up to `top`, which stays."""
    with contextlib.suppress(OSError):
        while folder != top:
            folder.rmdir()
            folder = folder.parent


def _links(folder: Path) -> Iterator[str]:
    """The links among the files and folders that we list, write to or delete."""
    for entry in os.scandir(folder) if folder.is_dir() else ():
        if entry.name == STAGED or "=" in entry.name or _holds_rows(entry):
            yield from _links_from(entry)


def _links_from(entry: os.DirEntry[str]) -> Iterator[str]:
    if entry.is_symlink():
        yield entry.path
    elif entry.is_dir(follow_symlinks=False):
        for inner in os.scandir(entry.path):
            yield from _links_from(inner)


def _holds_rows(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    if entry.is_dir(follow_symlinks=False):
        return not name.startswith(".") and ("=" in name[1:] or _OLD_BATCH.match(name) is not None)
    stem, suffix = os.path.splitext(name)
    format_ = os.path.splitext(stem)[1] if suffix in _COMPRESSED else suffix
    return not name.startswith((".", "_")) and (name.startswith("part-") or format_ in _FORMATS)


def _below(entry: os.DirEntry[str]) -> Iterator[Path]:
    """A file, or all files in a folder; a link to a folder is not followed."""
    if not entry.is_dir(follow_symlinks=False):
        yield Path(entry.path)
        return
    for inner in os.scandir(entry.path):
        yield from _below(inner)
