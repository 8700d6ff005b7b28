"""The files behind a path: a file, a folder or a glob, in the order of their names."""

from __future__ import annotations

import glob
from pathlib import Path

from eddyline.errors import SettingError


def files(path: str) -> list[Path]:
    """Files to read. In folders, names that begin with . or _ are not data (writers use them for what is not complete
    yet).

    A path that names nothing is an error; a folder without files is an empty stream.
    """
    place = Path(path)
    if place.is_file():
        return [place]
    if place.is_dir():
        return sorted(f for f in place.iterdir() if f.is_file() and not f.name.startswith((".", "_")))
    if glob.has_magic(path):
        found = sorted(f for f in map(Path, glob.glob(path, recursive=True)) if f.is_file())
        if not found:
            raise SettingError(f"no file matches {path}")
        return found
    raise SettingError(f"there is no file or folder {path}")


def why(error: Exception) -> str:
    """The first line of a library's complaint, to be put behind the name of the file."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")
