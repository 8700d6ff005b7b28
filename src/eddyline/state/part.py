"""Parts: whatever a slot keeps is a part, and every part has the same life.

    take_in -> end_batch -> commit | wind_back          in each batch
    forget, adopt                                       between two batches, for partition groups that go or come
    saved, restore                                      for the next process on this host, beside the arena
    durable, restore_durable                            for the checkpoint: what the rows of the log cannot rebuild

A slot loops over its parts and knows none by name: parts are committed in their order, and wound back in the reverse
order, so a part may rely on those before it. Every method does nothing unless a part overrides it. A new capability is
a part in a folder of its own, and a line where parts are put together (engine/parts.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.codec import Snapshot, as_json, of_json, packed, schema, unpacked
from eddyline.errors import InternalError
from eddyline.state.rows import Rows

T = TypeVar("T")

Named = list[tuple[str, pa.RecordBatch]]
"""Record batches, each with the name of its kind. No two parts use the same name."""


@dataclass(frozen=True)
class Cut:
    """How far a slot has come when it commits or writes a checkpoint."""

    watermark: int | None
    """The query's watermark."""
    final: int
    """Everything below this time is final: the watermark, or the oldest time for which something is still pending."""
    next: int | None
    """The first slide boundary that is not emitted yet; None without slides."""


class Part:
    """A piece of a slot's state that has a committed twin."""

    name: str = ""
    """Unique within a slot; the snapshot has the part under this name."""
    snapshot: ClassVar[Any] = None
    """The type of what `saved` returns; None if there is nothing to save."""
    adopts: ClassVar[bool] = False
    """Whether `adopt` needs the durable state of the slots from which groups come."""

    def take_in(self, source: int, rows: Rows, new: slice) -> None:
        """Rows of a source are taken in with this batch."""

    def end_batch(self) -> None:
        """The rows of the batch are joined, and those that no future row can join with have expired."""

    def commit(self, cut: Cut) -> None:
        """Commit: events before it cannot be undone any more."""

    def wind_back(self) -> None:
        """Undo everything since the last commit."""

    def saved(self) -> Any:
        """A snapshot for another process, when the batch is done and drained: everything that is not in the arena."""

    def restore(self, saved: Any) -> None:
        """Restore from a snapshot."""

    def durable(self, cut: Cut) -> Named:
        """What cannot be rebuilt from the live rows of the log."""
        return []

    def restore_durable(self, own: Named, any_slot: Named) -> None:
        """Restore from the durable state of one or several slots; `any_slot` is that of one of them, for what is the
        same in all."""

    def forget(self, groups: NDArray[np.int64]) -> int:
        """These groups leave memory or go to another slot; returns how many rows were dropped."""
        return 0

    def adopt(self, groups: NDArray[np.int64], state: Named) -> None:
        """These groups come from the slot whose durable state this is."""

    @property
    def needs_since(self) -> int | None:
        """Rows that are as old as this, or newer, must stay, and those that can join with them; None: no rows."""
        return None

    @property
    def state_rows(self) -> int:
        """Rows held."""
        return 0

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return 0


class Versioned(Generic[T]):
    """A value with a committed twin."""

    def __init__(self, value: T) -> None:
        self.now = self.committed = value

    def commit(self) -> None:
        self.committed = self.now

    def wind_back(self) -> None:
        self.now = self.committed

    def start(self, value: T) -> None:
        """Set the value, committed."""
        self.now = self.committed = value

    @property
    def saved(self) -> tuple[T, T]:
        """The value and its twin, for a snapshot."""
        return self.now, self.committed

    def restore(self, saved: tuple[T, T]) -> None:
        self.now, self.committed = saved


class PartSnapshot(Snapshot, frozen=True):
    """The snapshot of a part: its name, a digest of the type, and the packed value."""

    name: str
    layout: str
    state: bytes


def save_parts(parts: Iterable[Part]) -> tuple[PartSnapshot, ...]:
    """The snapshots of the parts that have something to save."""
    states = ((part, part.saved()) for part in parts if part.snapshot is not None)
    return tuple(
        PartSnapshot(part.name, _layout(part.snapshot), packed(state)) for part, state in states if state is not None
    )


def restore_parts(parts: Iterable[Part], saved: Sequence[PartSnapshot]) -> None:
    """Restore the parts in their order; InternalError if a snapshot is of no part, or of another layout."""
    states = {one.name: one for one in saved}
    for part in parts:
        state = states.pop(part.name, None)
        if state is None:
            continue
        if state.layout != _layout(part.snapshot):
            raise InternalError(f"the part {part.name} was saved in another layout")
        part.restore(unpacked(state.state, part.snapshot))
    if states:
        raise InternalError(f"the slot has no part {', '.join(states)}")


def named(batches: Named, name: str) -> list[pa.RecordBatch]:
    """The batches of a kind."""
    return [batch for kind, batch in batches if kind == name]


def of_number(value: object) -> pa.RecordBatch:
    """A small value as a record batch, for `durable`."""
    return pa.record_batch({"json": [as_json(value).decode()]})


def number_of(batches: Sequence[pa.RecordBatch], wanted: type[T]) -> T:
    """The value that `of_number` wrote, from the first of the batches."""
    return of_json(batches[0].column(0)[0].as_py().encode(), wanted)


@cache
def _layout(snapshot: Any) -> str:
    return schema(snapshot)
