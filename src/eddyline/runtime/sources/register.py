"""The register of a stream's files that were read, in the order of reading.

A place in this list says how far a stream was read, whatever the names of the files and whenever they appear. A file is
added before the decision of the batch that reads it, so an offset never names a missing place. Entries after the newest
offset belong to no batch: `keep` drops them.

In a checkpoint the list is a few files `files/STREAM/NUMBER`, each with the entries from some place on; later files
override earlier ones. A new file merges the files before it that are not much larger, so there are few files, and an
entry is rewritten only a few times.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable

from eddyline.errors import JobError
from eddyline.runtime.sources.paths import at_present, has_changed
from eddyline.runtime.sources.source import Found
from eddyline.state.log.sealed import Broken, sealed, unsealed
from eddyline.state.log.store import Store, as_name

_LIKE = 2
"""A file is merged into the next one unless it is more than this many times as large."""


class Register:
    """The files of one stream that were read. Without a store the list ends with the run; `at` makes a file from its
    name, size and time (Files.at)."""

    def __init__(self, at: Callable[[str, int, int], Found], store: Store | None = None, stream: str = "") -> None:
        self._store, self._folder = store, f"files/{as_name(stream)}"
        self._files: list[Found] = []
        self._places: dict[str, int] = {}
        self._parts: list[tuple[str, int]] = []
        """The files of the checkpoint: their names, and the place of their first entry."""
        self._saved = 0
        for name in [] if store is None else store.names(self._folder):
            first, files = self._read(f"{self._folder}/{name}")
            self.keep(first)
            self.add(at(*file) for file in files)
            self._parts.append((name, first))
        self._saved = len(self._files)

    def _read(self, name: str) -> tuple[int, list[tuple[str, int, int]]]:
        assert self._store is not None
        try:
            part = json.loads(unsealed(self._store.read(name).to_pybytes()))
        except Broken:
            raise JobError(f"the checkpoint is damaged: {name} does not match its checksum") from None
        return part["first"], part["files"]

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, place: int) -> Found:
        return self._files[place]

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
        """Keep only the first `places` files: the others were not read."""
        for file in self._files[places:]:
            del self._places[file.name]
        del self._files[places:]
        self._saved = min(self._saved, places)

    def unread(self, found: Iterable[Found]) -> list[Found]:
        """The files that are not in the list; JobError if a file in the list has changed."""
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
        if self._store is None or self._saved == len(self._files):
            return
        first, replaced = self._saved, []
        while self._parts and self._parts[-1][1] >= first - _LIKE * (len(self._files) - first):
            name, begins = self._parts.pop()
            first = min(first, begins)
            replaced.append(name)
        number = 1 + max([int(name) for name, _ in self._parts] + [int(name) for name in replaced], default=0)
        entries = [(file.name, file.size, file.changed) for file in self._files[first:]]
        body = json.dumps({"files": entries, "first": first})  # json, because it can write names that are not Unicode
        self._store.write(f"{self._folder}/{number:08}", sealed(body.encode()))
        self._parts.append((f"{number:08}", first))
        self._saved = len(self._files)
        for name in replaced:
            self._store.delete(f"{self._folder}/{name}")
