"""`eddyline run --prefer-from FILE`: the preference is in a file, which is read again between batches if it changed."""

from __future__ import annotations

import os
from collections.abc import Callable

from eddyline.cli.streams import note
from eddyline.errors import SettingError

Prefer = Callable[[str | None], None]
"""Changes the preference; SettingError if it is wrong."""


class PreferFrom:
    """A file with a condition, or nothing. A file that does not exist says nothing: the preference stays."""

    def __init__(self, path: str, prefer: Prefer) -> None:
        """Raises SettingError if the file has a wrong condition now."""
        self._path, self._prefer, self._seen = path, prefer, ""
        self._look()

    def look(self) -> None:
        """Take up a change of the file. A wrong condition is a warning, and the old one stays."""
        try:
            self._look()
        except SettingError as error:
            note(f"warning: {error}; the preference stays as it was")

    def _look(self) -> None:
        try:
            state = os.stat(self._path)
            stamp = f"{state.st_mtime_ns} {state.st_size} {state.st_ino}"
            if stamp == self._seen:
                return
            with open(self._path, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
            raise SettingError(f"cannot read the preference in {self._path}: {reason}") from None
        self._seen = stamp
        self._prefer(text.strip() or None)
