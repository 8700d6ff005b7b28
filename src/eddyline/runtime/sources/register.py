"""The register of a stream's files that were read, in the order of reading.

A place in this list says how far a stream was read, whatever the names of the files and whenever they appear. A file is
added before the decision of the batch that reads it, so an offset never names a missing place. Entries after the newest
offset belong to no batch: `keep` drops them.

A file that was only renamed is the same file: its number on the disk, size and time are those of an entry whose name
is gone or means another file now. The entry gets the new name.

In a checkpoint the list is a few files `files/STREAM/NUMBER`, each with the entries from some place on; later files
override earlier ones. A new file merges the files before it that are not much larger, so there are few files, and an
entry is rewritten only a few times.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Sequence

from eddyline.errors import JobError
from eddyline.runtime.sources.paths import at_present, has_changed
from eddyline.runtime.sources.source import Found
from eddyline.state.log.labelled import LabelledFiles
from eddyline.state.log.store import as_name

_LIKE = 2
"""A file is merged into the next one unless it is more than this many times as large."""


class Register:
    """The files of one stream that were read. Without a checkpoint the list ends with the run; `at` makes a file from
    its name, size, time and number (Files.at)."""

    def __init__(
        self, at: Callable[[str, int, int, int], Found], checkpoint: LabelledFiles | None = None, stream: str = ""
    ) -> None:
        self._checkpoint, self._folder = checkpoint, f"files/{as_name(stream)}"
        self._files: list[Found] = []
        self._places: dict[str, int] = {}
        self._parts: list[tuple[str, int]] = []
        """The files of the checkpoint: their names, and the place of their first entry."""
        self._saved = 0
        for name in [] if checkpoint is None else checkpoint.store.names(self._folder):
            assert checkpoint is not None
            part = json.loads(checkpoint.read(f"{self._folder}/{name}"))
            self.keep(part["first"])
            self.add(at(name, size, changed, *number or [0]) for name, size, changed, *number in part["files"])
            self._parts.append((name, part["first"]))
        self._saved = len(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, place: int) -> Found:
        if place >= len(self._files):
            raise self._incomplete()
        return self._files[place]

    def _incomplete(self) -> JobError:
        return JobError(
            f"the checkpoint is damaged: {self._folder}, the list of files read so far, is missing or has lost a part"
        )

    def add(self, files: Iterable[Found]) -> None:
        """Add files that are read next."""
        for file in files:
            self._places[file.name] = len(self._files)
            self._files.append(file)

    def see_anew(self, place: int) -> None:
        """Accept the current size and time of the file at a place, because none of its rows was used yet. A file that
        is gone keeps its old entry."""
        file = self._files[place]
        with contextlib.suppress(FileNotFoundError):
            self._files[place] = at_present(file)
            self._saved = min(self._saved, place)

    def keep(self, places: int) -> None:
        """Keep only the first `places` files: the others were not read. JobError if the list has fewer files."""
        if len(self._files) < places:
            raise self._incomplete()
        self._places = {name: place for name, place in self._places.items() if place < places}
        del self._files[places:]
        self._saved = min(self._saved, places)

    def rename(self, found: Iterable[Found]) -> None:
        """Take the present names of files in the list that were renamed since they were read."""
        here = {file.name: file for file in found}
        new = [file for file in here.values() if self._at(file.name) != file]
        known = {_identity(file): place for place, file in enumerate(self._files) if file.number} if new else {}
        renamed = {}
        for file in new:
            if (place := known.get(_identity(file))) is not None:
                other = here.get(self._files[place].name)
                if other is None or _identity(other) != _identity(file):  # else it is a second name of the file
                    renamed[place] = file
        for place in renamed:
            self._places.pop(self._files[place].name, None)
        for place, file in renamed.items():
            self._files[place], self._places[file.name] = file, place
            self._saved = min(self._saved, place)

    def _at(self, name: str) -> Found | None:
        return None if (place := self._places.get(name)) is None else self._files[place]

    def unread(self, found: Sequence[Found]) -> list[Found]:
        """The files that are not in the list; JobError if a file in the list has changed."""
        self.rename(found)
        new = []
        for file in found:
            place = self._places.get(file.name)
            if place is None:
                new.append(file)
                continue
            then = self._files[place]
            if (then.size, then.changed) != (file.size, file.changed):
                raise has_changed(then, file)
        return new

    def save(self) -> None:
        """Write the added files to the checkpoint."""
        if self._checkpoint is None or self._saved == len(self._files):
            return
        first, replaced = self._saved, []
        while self._parts and self._parts[-1][1] >= first - _LIKE * (len(self._files) - first):
            name, begins = self._parts.pop()
            first = min(first, begins)
            replaced.append(name)
        number = 1 + max([int(name) for name, _ in self._parts] + [int(name) for name in replaced], default=0)
        entries = [(file.name, file.size, file.changed, file.number) for file in self._files[first:]]
        body = json.dumps({"files": entries, "first": first})  # json, because it can write names that are not Unicode
        self._checkpoint.write(f"{self._folder}/{number:08}", body.encode())
        self._parts.append((f"{number:08}", first))
        self._saved = len(self._files)
        for name in replaced:
            self._checkpoint.store.delete(f"{self._folder}/{name}")


def _identity(file: Found) -> tuple[int, int, int]:
    return file.number, file.size, file.changed
