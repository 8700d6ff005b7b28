"""The files of small state: what a slot cannot rebuild from rows (`Slot.durable`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.engine.slot import Slot
from eddyline.protocol.checkpoint import SMALL
from eddyline.protocol.home import Home
from eddyline.state.log.segment import Segment, SegmentPart, written
from eddyline.state.part import Named

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SmallMeta:
    """The metadata of a segment of small state."""

    slot: int


def write_small(home: Home, number: int, name: str, state: Named) -> str:
    """Write the durable state of a slot; returns the name of the file."""
    sections: dict[str, list[pa.RecordBatch]] = {}
    for section, batch in state:
        sections.setdefault(section, []).append(batch)
    name, parts = f"{SMALL}/{name}", [SegmentPart(*item) for item in sections.items()]
    home.checkpoint.store.write_all(name, written(parts, SmallMeta(number), home.checkpoint.files.label(name)))
    return name


def restore_small(home: Home, slot: Slot, number: int, files: Sequence[str]) -> None:
    """Restore the slot's own small state. If there are fewer slots than before, the small state of each
    missing slot goes to one of the others."""
    segments = _segments(home, files)
    if not segments:
        return
    mine = [segment for of, segment in segments if of % home.slots == number]
    own = [named for segment in mine for named in _batches(segment)]
    slot.restore_durable(own, _batches((mine or [segment for _, segment in segments])[0]))


def adopt_small(home: Home, slot: Slot, groups: Ints, senders: Ints, files: Sequence[str]) -> None:
    """Let the parts of a slot take what belongs to groups that come to it, each from the slot that had it."""
    if any(part.adopts for part in slot.parts):
        for of, segment in _segments(home, files):
            if (come := groups[senders == of]).size:
                slot.adopt(come, _batches(segment))


def _segments(home: Home, files: Sequence[str]) -> list[tuple[int, Segment]]:
    """The segments with the numbers of their slots."""
    segments = map(home.checkpoint.segment, files)
    return [(segment.meta(SmallMeta).slot, segment) for segment in segments]


def _batches(segment: Segment) -> Named:
    return [(name, batch) for name in segment.names for batch in segment.batches(name)]
