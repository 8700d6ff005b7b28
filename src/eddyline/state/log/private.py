"""The folder of a checkpoint belongs to its user alone: folders have mode 0700 and files 0600, whatever the umask is.

No link may be in it. Files behind a link would be read, overwritten and deleted as if they were ours.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from eddyline.errors import JobError, SettingError
from eddyline.os_errors import why

FOLDER, FILE = 0o700, 0o600
"""The modes."""


def make_folder(path: str, top: str) -> None:
    """Make a folder in the folder `top`, and those between them, if they do not exist. The folders above `top` get the
    user's modes."""
    if os.path.isdir(path):
        return
    if path == top:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    else:
        make_folder(os.path.dirname(path), top)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, FOLDER)


def refuse_links(folder: str, what: str) -> None:
    """SettingError if there is a link anywhere in a folder, JobError if it cannot be listed. The folder itself may be a
    link. `what` names it."""
    try:
        for entry in _below(folder):
            if entry.is_symlink():
                raise SettingError(
                    f"cannot use {what}: {os.path.relpath(entry.path, folder)} in it is a link, and files behind"
                    " links are never read or deleted; remove the link, or choose another folder"
                )
    except OSError as error:
        raise JobError(f"cannot use {what}: cannot list {error.filename or folder}: {why(error)}") from None


def make_private(folder: str) -> None:
    """Take all rights of others from a folder and all that is in it, as far as it belongs to this user."""
    with contextlib.suppress(OSError):
        _restrict(folder, os.stat(folder).st_mode)
        for entry in _below(folder):
            with contextlib.suppress(OSError):
                _restrict(entry.path, entry.stat(follow_symlinks=False).st_mode)


def _restrict(path: str, mode: int) -> None:
    if mode & 0o077 and not stat.S_ISLNK(mode):
        os.chmod(path, FOLDER if stat.S_ISDIR(mode) else FILE)


def _below(folder: str) -> Iterator[os.DirEntry[str]]:
    """All entries in a folder and its subfolders, links to folders without what is behind them. Files and folders that
    disappear meanwhile are left out."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _below(entry.path)
