"""A segment: named Arrow record batches and a little JSON in one file, each part with its checksum.

    EDDYLINE SEGMENT 1\\n | section | section | ... | footer | length, crc32 of the footer (2 x u32) | EDDYEND1

A section is an Arrow IPC stream. It is padded with zeros to begin at a multiple of 64 bytes, the alignment that Arrow
recommends. The footer is JSON: {"sections": [{"name", "offset", "length", "crc32", "rows"}], "meta": {...}}. A reader
gets exactly the written data, or a JobError that names the file.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import pyarrow as pa

from eddyline.codec import as_json, of_json
from eddyline.errors import JobError

MAGIC, END = b"EDDYLINE SEGMENT 1\n", b"EDDYEND1"
_ALIGNED = 64
_TAIL = struct.Struct("<II8s")

T = TypeVar("T")


@dataclass(frozen=True)
class _Section:
    name: str
    offset: int
    length: int
    crc32: int
    rows: int


@dataclass(frozen=True)
class _Footer:
    sections: tuple[_Section, ...]
    meta: msgspec.Raw


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


def written(sections: Sequence[tuple[str, Sequence[pa.RecordBatch]]], meta: object) -> list[bytes | pa.Buffer]:
    """The parts of a file with these sections; all batches of a section have one schema. The parts are the buffers of
    the batches themselves where possible."""
    parts: list[bytes | pa.Buffer] = [MAGIC]
    index, offset = [], len(MAGIC)
    for name, batches in sections:
        if not batches:
            continue
        section = _Parts()
        with pa.ipc.new_stream(pa.PythonFile(section, "w"), batches[0].schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
        rows = sum(batch.num_rows for batch in batches)
        parts.append(bytes(-offset % _ALIGNED))
        offset += -offset % _ALIGNED
        index.append(_Section(name, offset, section.size, section.crc32, rows))
        parts += section.given
        offset += section.size
    footer = as_json({"sections": index, "meta": meta})
    return [*parts, footer, _TAIL.pack(len(footer), zlib.crc32(footer), END)]


class Segment:
    """A segment that was read; the checksum of a section is checked when the section is read."""

    def __init__(self, name: str, data: pa.Buffer) -> None:
        self._name, self._data = name, data
        if data.size < len(MAGIC) + _TAIL.size or data.slice(0, len(MAGIC)).to_pybytes() != MAGIC:
            raise self._damaged("it does not begin as a segment does")
        length, crc, end = _TAIL.unpack(data.slice(data.size - _TAIL.size).to_pybytes())
        at = data.size - _TAIL.size - length
        if end != END or at < len(MAGIC):
            raise self._damaged("its end is missing")
        footer = data.slice(at, length).to_pybytes()
        if zlib.crc32(footer) != crc:
            raise self._damaged("its index does not match its checksum")
        parsed = of_json(footer, _Footer)
        self._meta = bytes(parsed.meta)
        self._index = {section.name: section for section in parsed.sections}

    def meta(self, wanted: type[T]) -> T:
        """The metadata of the segment."""
        return of_json(self._meta, wanted)

    @property
    def names(self) -> list[str]:
        """The names of the sections."""
        return list(self._index)

    def batches(self, name: str) -> list[pa.RecordBatch]:
        """The batches of a section, none if there is no such section."""
        entry = self._index.get(name)
        if entry is None:
            return []
        data = self._data.slice(entry.offset, entry.length)
        if zlib.crc32(data) != entry.crc32:
            raise self._damaged(f"section {name} does not match its checksum")
        return list(pa.ipc.open_stream(data))

    def _damaged(self, why: str) -> JobError:
        return JobError(f"the checkpoint is damaged: {self._name}: {why}")
