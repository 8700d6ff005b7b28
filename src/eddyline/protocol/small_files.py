"""The files of small state: what a slot cannot rebuild from rows (engine/small_state.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from eddyline.engine.slot import Slot
from eddyline.engine.small_state import SmallState
from eddyline.engine.snapshot import restore_small_state, small_state
from eddyline.protocol.checkpoint import SMALL
from eddyline.protocol.home import Home
from eddyline.state.log.segment import Segment, SegmentPart, written


@dataclass(frozen=True)
class SmallMeta:
    """The metadata of a segment of small state."""

    slot: int
    numbers: SmallState


def write_small(home: Home, slot: Slot, number: int, name: str) -> str:
    numbers, batches = small_state(slot)
    sections: dict[str, list[pa.RecordBatch]] = {}
    for section, batch in batches:
        sections.setdefault(section, []).append(batch)
    meta = SmallMeta(number, numbers)
    name, parts = f"{SMALL}/{name}", [SegmentPart(*item) for item in sections.items()]
    home.checkpoint.store.write_all(name, written(parts, meta, home.checkpoint.files.label(name)))
    return name


def restore_small(home: Home, slot: Slot, number: int, files: Sequence[str]) -> None:
    """Restore the slot's own small state. If there are fewer slots than before, the small state of each
    missing slot goes to one of the others."""
    segments = [(segment, segment.meta(SmallMeta)) for segment in map(home.checkpoint.segment, files)]
    if not segments:
        return
    mine = [(segment, meta) for segment, meta in segments if meta.slot % home.slots == number]
    batches = [named for segment, _ in mine for named in _batches(segment)]
    restore_small_state(slot, (mine or segments)[0][1].numbers, batches)


def _batches(segment: Segment) -> list[tuple[str, pa.RecordBatch]]:
    return [(name, batch) for name in segment.names for batch in segment.batches(name)]
