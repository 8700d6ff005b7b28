"""The checkpoint of a job: decisions and commits, each a small JSON file, and the segments that commits name.

    checkpoint.json      describes the job that the checkpoint belongs to: written once
    decided/00000042     the decision for batch 42, written before the batch runs
    commits/00000042     batch 42 is done
    log/00000042-...     rows of batch 42 (segments)
    small/00000042-...   state that cannot be rebuilt from rows (aggregates), as of batch 42 (segments)

A commit has a *history*: a checksum over the batches up to it. Two commits have the same history only if the same
batches of the same checkpoint led to them. So a history identifies a copy of the state on a host
(protocol/restoring.py).

A file under log/ or small/ counts if the newest commit names it; the others are orphans of failed attempts and are
deleted. A commit names all segments whose rows may still be needed. Their number stays small because segments of
similar size are merged, so a commit has a bounded size, and a restart reads only the newest one. JSON files begin with
a line that is the checksum of the rest, and are read as their types (decision.py, commit.py). docs/design/checkpoint.md
describes the whole format.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import Any, TypeVar

from eddyline.bound.types import SQL_NAMES
from eddyline.codec import Unreadable, as_json, of_json
from eddyline.cql.units import duration_text
from eddyline.errors import JobError, SettingError
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.commit import Commit
from eddyline.state.log.sealed import Broken, sealed, unsealed
from eddyline.state.log.segment import Segment
from eddyline.state.log.store import UNFINISHED, Store

FORMAT = 6
"""Raise it when a job could misread the files of another version. tests/protocol/test_formats.py watches the types."""
READABLE = (5, 6)
"""Formats that this version can continue from: 5 has no groups on disk, and all else as 6."""
LOG, SMALL, COMMITS, DECIDED, ABOUT = "log", "small", "commits", "decided", "checkpoint.json"


T = TypeVar("T")


class Checkpoint:
    """The durable state of one job."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @property
    def history(self) -> str:
        """The history of the job before its first batch; it is unique to this checkpoint."""
        known: str = self._read(ABOUT, dict[str, Any])["id"]
        return known

    def identity(self) -> str:
        """The id of the checkpoint, or a new id if there is no checkpoint yet."""
        return self.history if self.begun else uuid.uuid4().hex

    @property
    def begun(self) -> bool:
        """Whether the checkpoint exists."""
        return self.store.exists(ABOUT)

    def open(self, about: Mapping[str, Any], identity: str | None = None) -> None:
        """Create the checkpoint, or open an existing one. `about` describes the job: SettingError if the checkpoint is
        of another job. `identity` is the id that `identity()` returned: JobError if another run has created the
        checkpoint since then."""
        self.check(about)
        if self.begun and identity not in (None, self.history):
            raise JobError(f"the checkpoint {self.store.root} was begun by another run of this job; start it again")
        known = {"format": FORMAT, "id": identity or self.identity(), **about}
        if not self.begun or self._read(ABOUT, dict[str, Any]) != json.loads(as_json(known)):
            self.store.write(ABOUT, sealed(as_json(known)))

    def check(self, about: Mapping[str, Any]) -> None:
        """Raise the errors that `open` would raise for this job; write nothing."""
        if not self.begun:
            if self.store.names(COMMITS):
                raise JobError(f"the checkpoint {self.store.root} has commits, but its {ABOUT} is missing")
            if foreign := self.store.foreign():
                raise SettingError(
                    f"{self.store.root} is not empty and not a checkpoint (it holds {foreign[0]});"
                    " choose a new or an empty folder for the checkpoint"
                )
            return
        known = self._read(ABOUT, dict[str, Any])
        known.pop("id", None)
        if known.get("format") not in READABLE:
            raise SettingError(
                f"the checkpoint {self.store.root} has format {known['format']}, and this version has format {FORMAT};"
                " finish the job with the version that began it, or give it a new checkpoint folder"
            )
        _compare(self.store.root, known, about)

    def last(self) -> Commit | None:
        """The newest commit, None before the first."""
        newest = self._newest()
        return None if newest < 0 else self.commit_of(newest)

    def _newest(self) -> int:
        return max(map(int, self.store.names(COMMITS)), default=-1)

    def expect(self, batch: int) -> None:
        """Check that the batch is not committed yet; JobError if it is: another run has taken over the job."""
        if self._newest() >= batch:
            raise JobError(f"batch {batch} was committed by another run of this job; only one may run at a time")

    def commit_of(self, batch: int) -> Commit:
        """The commit of a batch."""
        return self._read(f"{COMMITS}/{batch:08}", Commit)

    def decide(self, decision: BatchDecision) -> None:
        """Write the decision for a batch. It is durable before the batch begins."""
        self.store.write(f"{DECIDED}/{decision.batch:08}", sealed(as_json(decision)))

    def decided(self, batch: int) -> BatchDecision | None:
        """The decision for a batch, None if there is none."""
        name = f"{DECIDED}/{batch:08}"
        return self._read(name, BatchDecision) if self.store.exists(name) else None

    def commit(self, commit: Commit) -> None:
        """Commit a batch: it counts from this one write on. A commit is never overwritten."""
        self.expect(commit.batch)
        self.store.write(f"{COMMITS}/{commit.batch:08}", sealed(as_json(commit)))

    def collect(self, commit: Commit) -> None:
        """Delete the files that neither this commit nor a later batch needs: older commits, decisions up to this batch,
        files that the commit does not name, and unfinished files. No task of a later batch may be running."""
        keep = {entry.name for entry in commit.log} | set(commit.small)
        for folder in (LOG, SMALL):
            for name in self.store.all_names(folder):
                if f"{folder}/{name}" not in keep:
                    self.store.delete(f"{folder}/{name}")
        for folder, first in ((COMMITS, commit.batch), (DECIDED, commit.batch + 1)):
            for name in self.store.all_names(folder):
                if name.startswith(UNFINISHED) or int(name) < first:
                    self.store.delete(f"{folder}/{name}")
        for name in self.store.all_names(""):
            if name.startswith(UNFINISHED):
                self.store.delete(name)

    def segment(self, name: str) -> Segment:
        """The segment of this name."""
        file = self.store.open(name)
        return Segment(name, file.size, file.read, self.store.local)

    def _read(self, name: str, wanted: type[T]) -> T:
        try:
            return of_json(unsealed(self.store.read(name).to_pybytes()), wanted)
        except Broken:
            raise JobError(f"the checkpoint is damaged: {name} does not match its checksum") from None
        except Unreadable as error:
            raise JobError(f"the checkpoint cannot be read: {name} was written by another version ({error})") from None


def _compare(root: str, known: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Raise SettingError if the checkpoint is of another job, and name the difference."""
    now = json.loads(json.dumps(about))
    for what in sorted(now.keys() | (known.keys() - {"format"})):
        was, is_now = known.get(what), now.get(what)
        if was == is_now:
            continue
        if isinstance(was, dict) and isinstance(is_now, dict):
            inner = next(k for k in sorted(was.keys() | is_now.keys()) if was.get(k) != is_now.get(k))
            was, is_now, what = was.get(inner), is_now.get(inner), f"{what} {inner}"
            if was is not None and is_now is not None:
                was, is_now, what = _column_that_differs(was, is_now, what)
        raise SettingError(
            f"the checkpoint {root} does not fit: {what} was {_short(was)} and is {_short(is_now)};"
            " give the job a new checkpoint folder"
        )


def _column_that_differs(was: str, is_now: str, what: str) -> tuple[Any, Any, str]:
    """The first field in which two descriptions of a stream differ: its value in each, and its name."""
    old, new = json.loads(was), json.loads(is_now)
    name = next(k for k in sorted(old.keys() | new.keys()) if old.get(k) != new.get(k))
    if name == "lateness":
        return duration_text(old[name]), duration_text(new[name]), f"{what}: {name}"
    return old.get(name), new.get(name), f"{what}: {name}"


def _short(value: Any) -> str:
    if isinstance(value, str) and value in SQL_NAMES:
        return SQL_NAMES[value]
    text = "not there" if value is None else value if isinstance(value, str) else json.dumps(value)
    text = re.sub(r" +(?=,|$)", "", text)  # no blanks where a stream has no window
    text = re.sub(r'"lateness": (\d+)', lambda found: f'"lateness": "{duration_text(int(found[1]))}"', text)
    text = re.sub(r'"([^"]+)"', lambda found: f'"{SQL_NAMES.get(found[1], found[1])}"', text)
    return re.sub(r"\b(RANGE|ROWS|UNBOUNDED) (\d+)(?: (\d+))?", _window, text)


def _window(found: re.Match[str]) -> str:
    """A window as users write it; a checkpoint's description has lengths of time in microseconds."""
    kind, size, slide = found.groups()
    size = {"RANGE": duration_text(int(size)), "ROWS": size, "UNBOUNDED": ""}[kind]
    return f"{kind} {size}{f' SLIDE {duration_text(int(slide))}' if slide else ''}".replace("  ", " ").rstrip()
