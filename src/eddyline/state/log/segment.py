"""A segment: named Arrow record batches and a little JSON in one file, each part with its checksum.

    EDDYLINE SEGMENT 1\\n | section | section | ... | footer | length, crc32 of the footer (2 x u32) | EDDYEND1

A section is an Arrow IPC stream. It is padded with zeros to begin at a multiple of 64 bytes, the alignment that Arrow
recommends. The footer is JSON: {"sections": [{"name", "offset", "length", "crc32", "rows"}], "meta": {...}, "label"};
the label says which file this is (state/log/labelled.py). There may be several sections of one name, with the rows of
one range of partition groups each, in the order of these; the footer has its "first" and "last" group, by group from
the first one on the number of rows ("counts", left out where most groups have none), and the range of the times of the
rows ("times"). A section whose rows are in any order may have "groups": b0, e0, b1, e1, ..., where its rows are of
groups b0..e0-1 or b1..e1-1 or so on. A reader gets exactly the written data, or a JobError that names the file; it
reads the footer and the sections that it is asked for.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.codec import as_json, of_json
from eddyline.errors import JobError

MAGIC, END = b"EDDYLINE SEGMENT 1\n", b"EDDYEND1"
_ALIGNED = 64
_TAIL = struct.Struct("<II8s")
_LIKELY = 1 << 14
"""The footer is likely to be within so many bytes of the end."""

T = TypeVar("T")


@dataclass(frozen=True)
class SegmentPart:
    """The rows of a section; all batches have one schema. If they are in the order of groups, `first` and `last` are
    the range of these, and `counts` has the rows of each, unless most have none."""

    name: str
    batches: Sequence[pa.RecordBatch]
    first: int | None = None
    last: int | None = None
    counts: tuple[int, ...] | None = None
    times: tuple[int, int] | None = None
    """The range of their times."""
    groups: tuple[int, ...] | None = None
    """If they are in any order: where runs of neighbouring groups begin and end, among which are those of the rows."""


@dataclass(frozen=True)
class Section:
    """An entry of the footer."""

    name: str
    offset: int
    length: int
    crc32: int
    rows: int
    first: int | None = None
    last: int | None = None
    counts: tuple[int, ...] | None = None
    times: tuple[int, int] | None = None
    groups: tuple[int, ...] | None = None

    @property
    def runs(self) -> tuple[int, ...] | None:
        """Where runs of groups begin and end, among which are those of its rows; None if that is not known."""
        return self.groups if self.first is None or self.last is None else (self.first, self.last + 1)

    def may_have_of(self, groups: NDArray[np.int64]) -> bool:
        """Whether it may have rows of these groups, which are in order."""
        if self.runs is None:
            return True
        begins, ends = np.array(self.runs).reshape(-1, 2).T
        return bool((groups.searchsorted(begins) < groups.searchsorted(ends)).any())


@dataclass(frozen=True)
class _Footer:
    sections: tuple[Section, ...]
    meta: msgspec.Raw
    label: str = ""


class _Parts:
    """A file in memory that keeps the buffers written to it without copying them."""

    closed = False

    def __init__(self) -> None:
        self.given: list[bytes | pa.Buffer] = []
        self.size = self.crc32 = 0

    def write(self, data: bytes | pa.Buffer) -> int:
        self.given.append(data)
        self.size += len(data)
        self.crc32 = zlib.crc32(data, self.crc32)
        return len(data)

    def flush(self) -> None:
        pass


def written(parts: Iterable[SegmentPart], meta: object, label: str = "") -> Iterator[bytes | pa.Buffer]:
    """The bytes of a file with these sections. They are the buffers of the batches themselves where possible, and are
    made one section after the other."""
    yield MAGIC
    index, offset = list[dict[str, object]](), len(MAGIC)
    for part in parts:
        if not part.batches:
            continue
        made = _Parts()
        with pa.ipc.new_stream(pa.PythonFile(made, "w"), part.batches[0].schema) as stream:
            for batch in part.batches:
                stream.write_batch(batch)
        rows = sum(batch.num_rows for batch in part.batches)
        yield bytes(-offset % _ALIGNED)
        offset += -offset % _ALIGNED
        about = part.first, part.last, part.counts, part.times, part.groups
        entry = Section(part.name, offset, made.size, made.crc32, rows, *about)
        index.append({name: value for name, value in vars(entry).items() if value is not None})
        yield from made.given
        offset += made.size
    footer = as_json({"sections": index, "meta": meta, "label": label})
    yield footer
    yield _TAIL.pack(len(footer), zlib.crc32(footer), END)


class Segment:
    """A segment in a file; the checksum of a section is checked when the section is first read."""

    def __init__(self, name: str, size: int, read: Callable[[int, int], pa.Buffer], mapped: bool = False) -> None:
        """`read` gives the bytes at an offset, so many; if they are `mapped`, they take no memory of this process."""
        self._name, self._read, self.mapped = name, read, mapped
        self._checked: set[int] = set()
        """The offsets of the sections that match their checksums."""
        if size < len(MAGIC) + _TAIL.size or read(0, len(MAGIC)).to_pybytes() != MAGIC:
            raise self._damaged("it does not begin as a segment does")
        known = min(size, _LIKELY)
        ending = read(size - known, known)
        length, crc, end = _TAIL.unpack(ending.slice(known - _TAIL.size).to_pybytes())
        at = size - _TAIL.size - length
        if end != END or at < len(MAGIC):
            raise self._damaged("its end is missing")
        before = at - (size - known)
        footer = (ending.slice(before, length) if before >= 0 else read(at, length)).to_pybytes()
        if zlib.crc32(footer) != crc:
            raise self._damaged("its index does not match its checksum")
        parsed = of_json(footer, _Footer)
        self._meta, self.label = bytes(parsed.meta), parsed.label
        self._index: dict[str, list[Section]] = {}
        for section in parsed.sections:
            self._index.setdefault(section.name, []).append(section)

    def meta(self, wanted: type[T]) -> T:
        """The metadata of the segment."""
        return of_json(self._meta, wanted)

    @property
    def names(self) -> list[str]:
        """The names of the sections."""
        return list(self._index)

    def sections(self, name: str) -> list[Section]:
        """The sections of this name."""
        return self._index.get(name, [])

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """The batches of the sections of this name."""
        for section in self.sections(name):
            yield from self.read(section)

    def read(self, section: Section) -> list[pa.RecordBatch]:
        """The batches of a section."""
        data = self._read(section.offset, section.length)
        if section.offset not in self._checked:
            if zlib.crc32(data) != section.crc32:
                raise self._damaged(f"section {section.name} does not match its checksum")
            self._checked.add(section.offset)
        return list(pa.ipc.open_stream(data))

    def _damaged(self, why: str) -> JobError:
        return JobError(f"the checkpoint is damaged: {self._name}: {why}")
