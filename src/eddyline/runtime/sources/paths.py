"""The files of a path: a file, all files below a folder, or the files of a glob; in the order of their paths.

A file is identified by its path relative to the folder that is read, so the folder may move.
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from eddyline.errors import CorruptFile, JobError, SettingError
from eddyline.os_errors import is_of_system, why
from eddyline.runtime.sources.source import Found

_PATH = "option path"
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_BLOCK = 1 << 20


def on_this_machine(path: str) -> str:
    """A path without the scheme of local files.

    >>> on_this_machine(Path("/x").as_uri()), on_this_machine("s3://x")
    ('/x', 's3://x')
    """
    scheme, sign, place = path.partition("://")
    return place if sign and scheme == "file" else path


def is_elsewhere(path: str) -> bool:
    """Whether a path is on a file system that only Spark reads."""
    return "://" in on_this_machine(path)


def files(path: str) -> list[Path]:
    """The files to read. In folders and globs, files and folders whose names begin with . or _ are skipped: writers use
    such names for incomplete files.

    A path that names nothing is an error; a folder without files is an empty stream.
    """
    path = on_this_machine(path)
    if is_elsewhere(path):
        raise SettingError(f"the local engine reads files of this machine, not {path}; use --engine spark", _PATH)
    place = Path(path)
    if place.is_file():
        return [place]
    if place.is_dir():
        return sorted(_below(place))
    if glob.has_magic(path):
        given = len(folder_of(path).parts)
        matches = (Path(match) for match in glob.glob(path, recursive=True))
        shown = [match for match in matches if not any(map(is_hidden, match.parts[given:]))]
        found = {file for match in shown for file in (_below(match) if match.is_dir() else [match])}
        if not found and not folder_of(path).is_dir():
            raise SettingError(f"no file matches {path}", _PATH)
        return sorted(found)
    raise SettingError(f"there is no file or folder {path}", _PATH)


def folder_of(path: str) -> Path:
    """The folder below which all files of a path are: files are identified by their paths relative to it."""
    path = on_this_machine(path)
    place = Path(path)
    if glob.has_magic(path) and not place.exists():
        return Path(*itertools.takewhile(lambda part: not glob.has_magic(part), place.parts))
    return place.parent if place.is_file() else place


def filled(path: str, found: Sequence[Path], declared: bool) -> list[Path]:
    """The files that are not empty; there must be one unless the columns are declared."""
    some = [file for file in found if _size(file)]
    if not some and not declared:
        if not found:
            raise no_columns(path)
        what = f"{path} is empty" if len(found) == 1 and not Path(path).is_dir() else f"every file of {path} is empty"
        raise SettingError(f"{what}, there are no columns to take from it; declare them")
    return some


def no_columns(path: str) -> SettingError:
    """The error to raise if there is no file from which to take the columns."""
    what = f"no file matches {path}" if glob.has_magic(path) and not Path(path).exists() else f"{path} holds no file"
    return SettingError(f"{what} to take the columns from; declare them", _PATH)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def find(path: str) -> list[Found]:
    """The files of a path with their current sizes and times; a file that is deleted meanwhile is left out."""
    seen = []
    folder = folder_of(path)
    for file in files(path):
        with contextlib.suppress(FileNotFoundError):
            seen.append(at_present(Found(str(file), os.path.relpath(file, folder), 0, 0)))
    return seen


def has_end(file: Found) -> bool:
    """Whether text in a file is whole, as far as the file shows it: compressed text has an end. It is decompressed for
    that."""
    try:
        with pa.input_stream(file.path, compression="detect") as stream:
            while Path(file.path).suffix in _COMPRESSED and stream.read(_BLOCK):
                pass
    except FileNotFoundError:
        raise
    except OSError as error:
        return "Truncated" not in str(error)
    return True


def at_present(file: Found) -> Found:
    """A file with its present size and time; FileNotFoundError if it is gone."""
    now = os.stat(file.path)
    return replace(file, size=now.st_size, changed=now.st_mtime_ns, number=now.st_ino)


def check_unchanged(file: Found) -> None:
    """JobError if a file has changed since it was found."""
    try:
        now = at_present(file)
    except FileNotFoundError:
        raise JobError(f"{file.path} is gone, and not all of it was read") from None
    if now != file:
        raise has_changed(file, now)


def has_changed(then: Found, now: Found) -> JobError:
    """The error to raise for a file that changed after it was read."""
    if not now.path:
        return JobError(f"{then.size} generated rows were read, and now there are {now.size}; a new job can read them")
    return JobError(
        f"{now.path} changed after it was read: it had {then.size} bytes of {_moment(then)}, and has {now.size} of"
        f" {_moment(now)}. A file is read once: put the old file back with its time (cp -p), and new rows into a new"
        " file; or begin again with a new checkpoint folder and a new sink"
    )


def unreadable(path: str | os.PathLike[str], format_: str, error: Exception) -> JobError:
    """The error to raise for a file that cannot be read: CorruptFile for its content. If the system failed, as a disk
    or a limit of the process does, the file may be whole, so it is never passed over."""
    kind = JobError if is_of_system(error) else CorruptFile
    return kind(f"{path} cannot be read as {format_}: {why(error)}")


def _moment(file: Found) -> str:
    return datetime.fromtimestamp(file.changed // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")


def overlap(sink: str, source: str) -> bool:
    """Whether a folder of results is, contains or is inside a path that is read. Of a glob only the files that it finds
    count."""
    folder, place = Path(sink).resolve(), Path(source)
    if glob.has_magic(source) and not place.exists():
        return any(file.resolve().is_relative_to(folder) for file in files(source))
    return nested(folder, place.resolve())


def nested(one: Path, other: Path) -> bool:
    """Whether one of two paths is the other or is inside it."""
    return one.is_relative_to(other) or other.is_relative_to(one)


def _below(folder: Path) -> Iterator[Path]:
    """The files in a folder and its subfolders; each folder once, however many links lead to it. A link to a folder
    below the top is not followed: its files would have two names."""
    seen, top = set(), os.path.realpath(folder)
    for root, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(root)
        shown = sorted(name for name in folders if not is_hidden(name))
        folders[:] = [] if real in seen else [n for n in shown if not _leads_below(top, os.path.join(root, n))]
        if real not in seen:
            yield from (Path(root, name) for name in names if not is_hidden(name) and Path(root, name).is_file())
        seen.add(real)


def _leads_below(top: str, folder: str) -> bool:
    """Whether a folder is a link to one below the top."""
    return os.path.islink(folder) and Path(os.path.realpath(folder)).is_relative_to(top)


def is_hidden(name: str) -> bool:
    """Whether a file or folder is skipped; a folder of a column, such as `_x=1`, is not."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
