"""The files behind a path: a file, a folder with all that is below it, or a glob; in the order of their paths."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from eddyline.errors import SettingError
from eddyline.runtime.sources.source import Piece

_ROW_BYTES = 64
"""A guess of the bytes of a line."""


def files(path: str) -> list[Path]:
    """Files to read. In folders and behind globs, names (of files and of folders) that begin with . or _ are not data:
    writers use them for what is not complete yet.

    A path that names nothing is an error; a folder without files is an empty stream.
    """
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
        if not found:
            raise SettingError(f"no file matches {path}")
        return sorted(found)
    raise SettingError(f"there is no file or folder {path}")


def folder_of(path: str) -> Path:
    """The folder below which all files of a path are: by their names in it they are known wherever it is."""
    place = Path(path)
    if glob.has_magic(path) and not place.exists():
        return Path(*itertools.takewhile(lambda part: not glob.has_magic(part), place.parts))
    return place.parent if place.is_file() else place


def filled(path: str, found: Sequence[Path], declared: bool) -> list[Path]:
    """The files that are not empty; there must be one unless the columns are declared."""
    some = [file for file in found if file.stat().st_size]
    if not some and not declared:
        if not found:
            raise SettingError(f"{path} holds no file to take the columns from; declare them")
        what = f"{path} is empty" if len(found) == 1 and not Path(path).is_dir() else f"every file of {path} is empty"
        raise SettingError(f"{what}, there are no columns to take from it; declare them")
    return some


def whole_files(found: Sequence[Path]) -> list[Piece]:
    """Each file as a piece, with a guess of its rows."""
    return [Piece(str(file), file.stat().st_size // _ROW_BYTES + 1) for file in found]


def overlap(sink: str, source: str) -> bool:
    """Whether a folder of results is, contains or lies in what is read. Of a glob only the files that it finds are."""
    folder, place = Path(sink).resolve(), Path(source)
    if glob.has_magic(source) and not place.exists():
        return any(file.resolve().is_relative_to(folder) for file in files(source))
    place = place.resolve()
    return folder.is_relative_to(place) or place.is_relative_to(folder)


def why(error: Exception) -> str:
    """The first line of a library's complaint, to be put behind the name of the file."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")


def _below(folder: Path) -> Iterator[Path]:
    """The files in a folder and its sub-folders; each folder once, however many links lead to it."""
    seen = set()
    for root, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(root)
        folders[:] = [] if real in seen else [name for name in folders if not is_hidden(name)]
        if real not in seen:
            yield from (Path(root, name) for name in names if not is_hidden(name) and Path(root, name).is_file())
        seen.add(real)


def is_hidden(name: str) -> bool:
    """Whether a file or folder is none to read; a folder of a column `_x=1` is one."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
