"""The files of a checkpoint, each with a label: the id of the checkpoint, and the name under which it was written.

Names are not used twice, and those of a slot's files have the batch, the slot and the attempt. So a file that lies in
the place of another one, of this checkpoint or of another, does not have the label of its place, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from eddyline.codec import as_json, of_json
from eddyline.errors import JobError
from eddyline.state.log.sealed import Broken, sealed, unsealed, with_label
from eddyline.state.log.segment import Segment
from eddyline.state.log.store import MissingFile, Store

ABOUT = "checkpoint.json"
"""Describes the checkpoint, with its `id`. It has no label itself."""


class LabelledFiles:
    """Reads and writes the files of one checkpoint."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._about: dict[str, Any] | None = None

    @property
    def about(self) -> dict[str, Any]:
        """The description of the checkpoint, read once; JobError if there is none, or if it is damaged."""
        return self._about or self.read_about()

    def read_about(self) -> dict[str, Any]:
        """The present description of the checkpoint."""
        try:
            self._about = of_json(unsealed(self.contents(ABOUT).to_pybytes()), dict[str, Any])
        except Broken:
            raise JobError(f"the checkpoint is damaged: {ABOUT} does not match its checksum") from None
        return self._about

    def describe(self, about: dict[str, Any]) -> None:
        """Write the description, unless it is the same."""
        if not self.store.exists(ABOUT) or self.about != about:
            self.store.write(ABOUT, sealed(as_json(about)))
            self._about = about

    def label(self, name: str) -> str:
        """The label of the file of this name."""
        return f"{self.about['id']} {name}"

    def check(self, name: str, label: str) -> None:
        """JobError if the file of this name has a label that belongs elsewhere."""
        if label == self.label(name):
            return
        checkpoint, _, written_as = label.partition(" ")
        if not label:
            why = "does not say which file it is"
        elif checkpoint == self.about["id"]:
            why = f"is a copy of {written_as}"
        else:
            why = f"is {written_as} of another checkpoint"
        raise JobError(f"the checkpoint is damaged: {name} {why}")

    def write(self, name: str, body: bytes) -> None:
        """Write a file with its checksum and its label."""
        self.store.write(name, sealed(body, self.label(name)))

    def read(self, name: str) -> bytes:
        """The body of a file; JobError if it is damaged or another file."""
        try:
            label, body = with_label(self.contents(name).to_pybytes())
        except Broken:
            raise JobError(f"the checkpoint is damaged: {name} does not match its checksum") from None
        self.check(name, label)
        return body

    def contents(self, name: str) -> pa.Buffer:
        """All bytes of a file, whose label the caller checks; JobError if it is missing."""
        with _missing(name):
            return self.store.read(name)

    def segment(self, name: str) -> Segment:
        """The segment of this name; JobError if it is another file."""
        with _missing(name):
            file = self.store.open(name)
        segment = Segment(name, file.size, file.read, self.store.local)
        self.check(name, segment.label)
        return segment


@contextmanager
def _missing(name: str) -> Iterator[None]:
    """JobError for a file that must be there and is not."""
    try:
        yield
    except MissingFile:
        raise JobError(f"the checkpoint is damaged: {name} is missing") from None
