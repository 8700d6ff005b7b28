"""The file of a record: one event a line, in parts of limited size, and the reading of it.

    FILE        the newest part
    FILE.1      the part before it, and so on; the oldest are removed

Every part begins with the `run` event. Each line is one write to a file that is opened for appending, so a crash leaves
at most one line that is not whole, the last; a reader passes over it. A part that is renamed stays open for a reader
that has it. If a write fails, as on a full disk, recording to the file ends with one warning, and what was written of
the line is taken back.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from eddyline.errors import EddylineError, SettingError
from eddyline.os_errors import why
from eddyline.runtime.recording.feed import Event

VERSION = 1
PART_BYTES, PARTS = 64_000_000, 16
"""The size from which on a part is closed, and the most parts that are kept."""


class RecordFile:
    """Writes the events of one run."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        warn: Callable[[str], None],
        part_bytes: int = PART_BYTES,
        parts: int = PARTS,
    ) -> None:
        """A record of an earlier run that is there becomes FILE.1; SettingError if the file is anything else, or cannot
        be written. `warn` gets the one warning if a write fails later."""
        self._path, self._warn, self._limit, self._parts = Path(path), warn, part_bytes, parts
        self._head: Event = {}
        try:
            if self._path.exists() and self._path.stat().st_size:
                if _first(self._path) is None:
                    raise SettingError(f"{path} exists and is no record of a run; give another file")
                self._rotate()
            self._file: int | None = self._open()
        except OSError as error:
            raise SettingError(f"cannot write the record {path}: {why(error)}") from None
        self._size = 0

    def write(self, event: Event) -> None:
        """Append an event."""
        if event["type"] == "run":
            self._head = event
        if self._file is None:
            return
        try:
            self._append(event)
            if self._size >= self._limit:
                os.close(self._file)
                self._file = None
                self._rotate()
                self._file, self._size = self._open(), 0
                self._append({**self._head, "t": event["t"]})
        except OSError as error:
            self.close()
            self._warn(f"recording to {self._path} ends here, and the job goes on: {why(error)}")

    def close(self) -> None:
        """End the file."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                os.close(file)

    def _append(self, event: Event) -> None:
        assert self._file is not None
        line = msgspec.json.encode(event) + b"\n"
        begin, left = self._size, line
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, begin)
            raise
        self._size += len(line)

    def _open(self) -> int:
        """A new part, which only this user can read: events have values of rows."""
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError):
            os.fchmod(file, 0o600)  # an empty file may have been there
        return file

    def _rotate(self) -> None:
        """Give every part the next number."""
        last = self._parts - 1
        with contextlib.suppress(FileNotFoundError):
            os.remove(_part(self._path, last))
        for number in reversed(range(last)):
            with contextlib.suppress(FileNotFoundError):
                os.rename(_part(self._path, number), _part(self._path, number + 1))


def read(path: str | os.PathLike[str]) -> Iterator[Event]:
    """The events of the newest run that was recorded to this file, oldest first. The run may still be going on.
    SettingError if the file is not a record that this version can read."""
    path = Path(path)
    try:
        head = _first(path)
    except OSError as error:
        raise SettingError(f"cannot read the record {path}: {why(error)}") from None
    if head is None:
        raise SettingError(f"{path} is no record of a run; `eddyline run --record FILE` writes one")
    if head.get("version") != VERSION:
        raise SettingError(
            f"{path} is a record of version {head.get('version')}; this version of Eddyline reads version {VERSION}"
        )
    parts, number = [path], 1
    while _part(path, number).exists() and _is_same(head, _first(_part(path, number))):
        parts.append(_part(path, number))
        number += 1
    return _events(parts[::-1])


@contextlib.contextmanager
def understood(path: str | os.PathLike[str]) -> Iterator[None]:
    """For whoever works on the events of a record: SettingError if they are not as Eddyline writes them. Anybody may
    have written the file."""
    try:
        yield
    except (EddylineError, OSError, MemoryError):
        raise
    except Exception as error:
        raise SettingError(f"{path} is no record that Eddyline wrote: an event in it cannot be read") from error


def _events(parts: list[Path]) -> Iterator[Event]:
    for number, part in enumerate(parts):
        for event in _lines(part):
            if number == 0 or event["type"] != "run":
                yield event


def _lines(part: Path) -> Iterator[Event]:
    """The events of a part; lines that are not whole, or are no events, are passed over."""
    with open(part, "rb") as file:
        for line in file:
            event = _event(line)
            if event is not None:
                yield event


def _event(line: bytes) -> Event | None:
    try:
        found: Any = msgspec.json.decode(line) if line.endswith(b"\n") else None
    except (msgspec.DecodeError, RecursionError):
        return None
    is_event = (
        isinstance(found, dict) and isinstance(found.get("type"), str) and isinstance(found.get("t"), int | float)
    )
    return found if is_event else None


def _first(path: Path) -> Event | None:
    """The run event with which a part begins; None if it is no part."""
    with open(path, "rb") as file:
        found = _event(file.readline(1 << 24))
    return found if found is not None and found["type"] == "run" else None


def _is_same(head: Event, other: Event | None) -> bool:
    """Whether another part is of the same run."""
    return other is not None and (other.get("began"), other.get("pid")) == (head.get("began"), head.get("pid"))


def _part(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path
