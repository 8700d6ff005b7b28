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
a checksum, and are read as their types (batch_decision.py, commit.py). Every file says which one it is and of which
checkpoint (state/log/labelled.py). docs/design/checkpoint.md describes the whole format.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, TypeVar

from eddyline.bound.types import SQL_NAMES
from eddyline.codec import Unreadable, as_json, of_json
from eddyline.cql.units import duration_text
from eddyline.errors import JobError, SettingError
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.commit import Commit
from eddyline.state.log.labelled import ABOUT, LabelledFiles
from eddyline.state.log.segment import Segment
from eddyline.state.log.store import Store

FORMAT = 8
"""Raise it when a job could misread the files of another version. tests/protocol/test_formats.py watches the types."""
LOG, SMALL, COMMITS, DECIDED = "log", "small", "commits", "decided"
_FOLDERS = {LOG, SMALL, COMMITS, DECIDED, "files", "frames", "given", "spark", "staged"}
"""All folders of a checkpoint."""
_OF_A_TURN = re.compile(r"[0-9]{8,}-")
"""How the names of segments begin: with their batch."""


T = TypeVar("T")


class Checkpoint:
    """The durable state of one job."""

    def __init__(self, store: Store) -> None:
        self.store, self.files = store, LabelledFiles(store)

    @property
    def history(self) -> str:
        """The history of the job before its first batch; it is unique to this checkpoint."""
        known: str = self.files.about["id"]
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
        self.files.describe(json.loads(as_json(known)))

    def check(self, about: Mapping[str, Any] | None) -> None:
        """Raise the errors that `open` would raise for this job; write nothing. If `about` is None, the job is not
        compared."""
        self.store.refuse_links()
        if not self.begun:
            foreign = self.store.foreign()
            if foreign and set(foreign) <= _FOLDERS:
                raise JobError(f"the checkpoint {self.store.root} is damaged: {ABOUT} is missing")
            if foreign:
                raise SettingError(
                    f"{self.store.root} is not empty and not a checkpoint (it holds {foreign[0]});"
                    " choose a new or an empty folder for the checkpoint"
                )
            return
        known = {what: value for what, value in self.files.read_about().items() if what != "id"}
        if known.get("format") != FORMAT:
            raise SettingError(
                f"the checkpoint {self.store.root} has format {known['format']}, and this version has format {FORMAT};"
                " finish the job with the version that began it, or give it a new checkpoint folder"
            )
        if about is not None:
            _compare(self.store.root, known, about)

    def last(self) -> Commit | None:
        """The newest commit, None before the first."""
        decided, newest = self._newest(DECIDED), self._newest()  # in this order: another process may go on
        if decided > newest + 1:
            raise JobError(f"the checkpoint is damaged: {COMMITS}/{decided - 1:08} is missing")
        return None if newest < 0 else self.commit_of(newest)

    def check_files(self, commit: Commit) -> None:
        """JobError if a segment that a commit names is missing. Whether segments are intact is known when they are
        read."""
        there = {f"{folder}/{name}" for folder in (LOG, SMALL) for name in self.store.names(folder)}
        if missing := sorted({*(entry.name for entry in commit.log), *commit.small} - there):
            raise JobError(f"the checkpoint is damaged: {missing[0]} is missing")

    def _newest(self, folder: str = COMMITS) -> int:
        return max((int(name) for name in self.store.names(folder) if is_batch(name)), default=-1)

    def expect(self, batch: int) -> None:
        """Check that the batch is not committed yet; JobError if it is: another run has taken over the job."""
        if self._newest() >= batch:
            raise JobError(f"batch {batch} was committed by another run of this job; only one may run at a time")

    def commit_of(self, batch: int) -> Commit:
        """The commit of a batch."""
        return self._read(f"{COMMITS}/{batch:08}", Commit)

    def decide(self, decision: BatchDecision) -> None:
        """Write the decision for a batch. It is durable before the batch begins."""
        self.files.write(f"{DECIDED}/{decision.batch:08}", as_json(decision))

    def decided(self, batch: int) -> BatchDecision | None:
        """The decision for a batch, None if there is none."""
        name = f"{DECIDED}/{batch:08}"
        return self._read(name, BatchDecision) if self.store.exists(name) else None

    def commit(self, commit: Commit) -> None:
        """Commit a batch: it counts from this one write on. A commit is never overwritten."""
        self.expect(commit.batch)
        self.files.write(f"{COMMITS}/{commit.batch:08}", as_json(commit))

    def collect(self, commit: Commit) -> None:
        """Delete the files that neither this commit nor a later batch needs: older commits, decisions up to this batch,
        files that the commit does not name, and unfinished files. Files whose names are not ours stay. No task of a
        later batch may be running."""
        keep = {entry.name for entry in commit.log} | set(commit.small)
        for folder in (LOG, SMALL):
            self.store.clean(folder, partial(_is_orphan, keep, folder))
        for folder, first in ((COMMITS, commit.batch), (DECIDED, commit.batch + 1)):
            self.store.clean(folder, partial(_is_before, first))
        self.store.clean("", lambda name: False)

    def segment(self, name: str) -> Segment:
        """The segment of this name."""
        return self.files.segment(name)

    def _read(self, name: str, wanted: type[T]) -> T:
        try:
            return of_json(self.files.read(name), wanted)
        except Unreadable as error:
            raise JobError(f"the checkpoint cannot be read: {name} was written by another version ({error})") from None


def is_batch(name: str) -> bool:
    """Whether a file has the name of a commit or a decision: the number of a batch.

    >>> is_batch("00000042"), is_batch("notes")
    (True, False)
    """
    return name.isascii() and name.isdecimal()


def _is_before(batch: int, name: str) -> bool:
    """Whether a file is a commit or a decision of an earlier batch."""
    return is_batch(name) and int(name) < batch


def _is_orphan(keep: Collection[str], folder: str, name: str) -> bool:
    """Whether a file is a segment that is not among those to keep."""
    return _OF_A_TURN.match(name) is not None and f"{folder}/{name}" not in keep


_BORROWED = re.compile(r"\b(TUMBLE|HOP|CUMULATE)(?= \d+ \d+)")
"""Windows with borrowed names. Versions before them wrote RANGE in their place, and counted as RANGE does."""


def _compare(root: str, known: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Raise SettingError if the checkpoint is of another job, and name the difference."""
    now = json.loads(json.dumps(about))
    for what in sorted(now.keys() | (known.keys() - {"format"})):
        was, is_now = known.get(what), now.get(what)
        if was == is_now:
            continue
        if what == "query" and was == _BORROWED.sub("RANGE", is_now):
            raise SettingError(
                f"the checkpoint {root} was written with windows that count a row at their end and not at their start; "
                "windows with borrowed names now mean [start, end): give the job a new checkpoint folder"
            )
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
    return re.sub(r"\b(RANGE|ROWS|UNBOUNDED|TUMBLE|HOP|CUMULATE) (\d+)(?: (\d+))?(?: (-?\d+))?", _window, text)


def _window(found: re.Match[str]) -> str:
    """A window as users write it; a checkpoint's description has lengths of time in microseconds."""
    kind, size, slide, offset = found.groups()
    if kind in ("TUMBLE", "HOP", "CUMULATE"):
        lengths = [size] if kind == "TUMBLE" else [slide, size]
        text = f"{kind} {', '.join(duration_text(int(length)) for length in lengths)}"
        return text + (f" OFFSET {duration_text(int(offset))}" if offset else "")
    size = {"RANGE": duration_text(int(size)), "ROWS": size, "UNBOUNDED": ""}[kind]
    return f"{kind} {size}{f' SLIDE {duration_text(int(slide))}' if slide else ''}".replace("  ", " ").rstrip()
