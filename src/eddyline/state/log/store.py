"""Files of a checkpoint: on the local disk, or wherever pyarrow.fs can reach.

A file appears whole or not at all: it is written under another name and renamed; object stores, which cannot rename,
show a file only when it is complete. A failed write leaves nothing; a process that dies while it writes leaves at most
a file with an "unfinished" name. Names are relative, with `/`. Nothing is synced to the disk: files survive the death
of every process, but a crash of the machine only once the file system has written them. Local files and folders are
for the user alone (state/log/private.py).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import IO
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs as pafs

from eddyline.errors import JobError, SettingError
from eddyline.faults import reach
from eddyline.os_errors import is_full, why
from eddyline.setting_kinds import size_text
from eddyline.state.folder_lock import FolderLock, FolderTaken
from eddyline.state.log.private import FILE, make_folder, make_private, refuse_links
from eddyline.state.own_folder import is_own

UNFINISHED = ".tmp-"
"""The prefix of the names of unfinished files."""

OBJECT_STORES = ("s3", "gcs", "abfs")
"""File systems, as pyarrow calls them, whose files appear when they are closed."""


def as_name(text: str) -> str:
    """A text as the name of one file or folder, whatever characters it has.

    >>> as_name("Orders"), as_name("../a")
    ('orders', '%2E%2E%2Fa')
    """
    return quote(text.lower(), safe="").replace(".", "%2E")


class MissingFile(JobError):
    """A file that is not there."""


class Store:
    """A folder of files."""

    def __init__(self, root: str) -> None:
        self.root = root
        try:
            if "://" in root:
                self._fs, self._base = pafs.FileSystem.from_uri(root)
            else:
                self._fs, self._base = pafs.LocalFileSystem(), os.path.abspath(root)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise SettingError(f"cannot use {root} for a checkpoint: {error}") from None
        self.local = isinstance(self._fs, pafs.LocalFileSystem)
        if self.local and os.path.exists(self._base) and not os.path.isdir(self._base):
            raise SettingError(f"cannot use {root} for a checkpoint: it is a file, not a folder")
        self._renames = self._fs.type_name not in OBJECT_STORES
        self._lock = FolderLock()

    def path(self, name: str) -> str:
        """The full path of a file, for callers that write it themselves."""
        return f"{self._base}/{name}" if name else str(self._base)

    def hold(self) -> None:
        """Lock the folder until `let_go` or the end of the process; JobError if another process holds it. The lock is
        on the folder itself and leaves no file. It works only where files are local and the file system has such
        locks."""
        if not self.local:
            return
        self.refuse_links()
        try:
            make_folder(self._base, self._base)
            self._lock.take(self._base)
        except OSError as error:
            raise SettingError(f"cannot use {self.root} for a checkpoint: {why(error)}") from None
        except FolderTaken as other:
            raise JobError(
                f"the checkpoint {self.root} is in use: only one run may go on with it (the other run is {other})"
            ) from None
        if self._lock.held:
            make_private(self._base)

    def refuse_links(self) -> None:
        """SettingError if a link is in the folder."""
        if self.local:
            refuse_links(self._base, f"{self.root} for a checkpoint")

    def let_go(self) -> None:
        """Release the lock of `hold`. Others, such as Spark, may have written files with rights for others."""
        if self._lock.held:
            make_private(self._base)
            self._lock.let_go()

    def make_folder(self, name: str) -> str:
        """Make a local folder for files that others write; returns its path."""
        make_folder(self.path(name), self._base)
        return self.path(name)

    def __del__(self) -> None:
        if hasattr(self, "_lock"):
            self.let_go()

    def write(self, name: str, *parts: bytes | pa.Buffer) -> None:
        """Write a whole file, replacing one of the same name."""
        self.write_all(name, parts)

    def write_all(self, name: str, parts: Iterable[bytes | pa.Buffer]) -> int:
        """Write a whole file of parts that may be made as they are written; returns its size. If one cannot be made
        (JobError), nothing is left."""
        folder, _, last = self.path(name).rpartition("/")
        target = f"{folder}/{UNFINISHED}{uuid.uuid4().hex[:12]}-{last}" if self._renames else self.path(name)
        try:
            if self.local:
                make_folder(folder, self._base)
            else:
                self._fs.create_dir(folder, recursive=True)
            reach("store: before a file is written")
            with self._created(target) as stream:
                for part in parts:
                    stream.write(part)
                size: int = stream.tell()
            reach("store: before a file is renamed")
            if self._renames:
                self._rename(target, self.path(name))
            reach("store: a file is there")
            return size
        except (pa.ArrowException, OSError, JobError) as error:
            if self._renames:
                with contextlib.suppress(pa.ArrowException, OSError):
                    self._fs.delete_file(target)
            if isinstance(error, JobError):
                raise
            if self.local and is_full(error):
                raise JobError(self._full(name)) from error
            raise JobError(f"cannot write {name} under {self.root}: {why(error)}") from error

    def _created(self, path: str) -> IO[bytes] | pa.NativeFile:
        """A new file to write."""
        if not self.local:
            return self._fs.open_output_stream(path)
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE), "wb")

    def _full(self, name: str) -> str:
        """What to do where the disk has no room for a file."""
        disk = shutil.disk_usage(self._base)
        room = f"{self.root} has no room for {name} ({size_text(disk.free)} free of {size_text(disk.total)})"
        if is_own(self.root):
            return f"{room}: set spill_dir to a folder with more room"
        return f"{room}: make room, and run the job again; it continues from its last commit"

    def _rename(self, old: str, new: str) -> None:
        if self.local:
            os.replace(old, new)
            return
        if self._fs.get_file_info(new).type == pafs.FileType.File:  # not every file system replaces it
            self._fs.delete_file(new)
        self._fs.move(old, new)

    def read(self, name: str) -> pa.Buffer:
        """A whole file; MissingFile if it is not there."""
        return self.open(name).read()

    def open(self, name: str) -> StoredFile:
        """A file to read parts of; MissingFile if it is not there."""
        path = self.path(name)
        open_it = (lambda: pa.memory_map(path)) if self.local else lambda: self._fs.open_input_file(path)
        return StoredFile(f"{name} under {self.root}", open_it, keep=not self.local)

    def names(self, folder: str) -> list[str]:
        """The complete files in a folder, in order; none if there is no such folder."""
        return [name for name in self.all_names(folder) if not name.startswith(UNFINISHED)]

    def all_names(self, folder: str) -> list[str]:
        """All files in a folder, unfinished ones included."""
        return sorted(info.base_name for info in self._listed(folder) if info.type == pafs.FileType.File)

    def foreign(self) -> list[str]:
        """Top-level files and folders other than unfinished files: in a new store they belong to someone else."""
        found = self._listed("")
        return sorted(info.base_name for info in found if not info.base_name.startswith(UNFINISHED))

    def _listed(self, folder: str) -> list[pafs.FileInfo]:
        """The entries of a folder; none if there is no such folder."""
        try:
            found: list[pafs.FileInfo] = self._fs.get_file_info(
                pafs.FileSelector(self.path(folder), allow_not_found=True)
            )
            return found
        except (pa.ArrowException, OSError) as error:
            raise JobError(f"cannot list {folder} under {self.root}: {why(error)}") from error

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return bool(self._fs.get_file_info(self.path(name)).type == pafs.FileType.File)

    def delete(self, name: str) -> None:
        """Delete a file if it exists."""
        try:
            reach("store: before a file is deleted")
            self._fs.delete_file(self.path(name))
        except FileNotFoundError:
            pass
        except (pa.ArrowException, OSError) as error:
            raise JobError(f"cannot delete {name} under {self.root}: {why(error)}") from error

    def clean(self, folder: str, unneeded: Callable[[str], object]) -> None:
        """Delete the unfinished files of a folder, and the complete ones whose names are `unneeded`."""
        for name in self.all_names(folder):
            if name.startswith(UNFINISHED) or unneeded(name):
                self.delete(f"{folder}/{name}" if folder else name)


class StoredFile:
    """A complete file of a store. Local files are mapped for each part that is read, so that a part takes memory only
    as long as it is used; others stay open (`keep`)."""

    def __init__(self, name: str, open_it: Callable[[], pa.NativeFile], keep: bool) -> None:
        self._name, self._open, self._kept = name, open_it, None
        with self._errors():
            file = open_it()
            self.size: int = file.size()
            """In bytes."""
            if keep:
                self._kept = file

    def read(self, offset: int = 0, length: int | None = None) -> pa.Buffer:
        """A part, by default all from the offset on."""
        with self._errors():
            file = self._kept or self._open()
            file.seek(offset)
            return file.read_buffer(self.size - offset if length is None else length)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise MissingFile(f"cannot read {self._name}: {why(error)}") from error
        except (pa.ArrowException, OSError) as error:
            raise JobError(f"cannot read {self._name}: {why(error)}") from error
