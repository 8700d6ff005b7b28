"""Arrow data that a slot keeps beside its columns, as files of the arena's folder.

What is kept is immutable, so a thing is written once, the first time it is put, and read by mapping its file: nothing
is copied. After everything that is still needed was put again, `sweep` deletes the rest. (A mapped file that is deleted
stays readable for those who map it.) Files hold Arrow streams, one for each record batch, one after the other, and at
the end the CRC-32 of all that (32 bits, little-endian): what does not match is not used (JobError).
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import TypeVar

import pyarrow as pa

from eddyline.errors import JobError

T = TypeVar("T")

END = ".arrow"
"""How the names of its files end."""
_TAIL = struct.Struct("<I")


class Shelf:
    """Names for immutable things."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._names: dict[int, tuple[object, str]] = {}
        """By identity; the thing is held, so that no other can get its identity."""
        self._used: set[str] = set()
        self._next = 0

    def put(self, thing: T, batches: Callable[[T], Sequence[pa.RecordBatch]]) -> str:
        """The name of a thing, which is written now if it is new."""
        known = self._names.get(id(thing))
        name = self._new_name() if known is None else known[1]
        if known is None:
            written = pa.BufferOutputStream()
            for batch in batches(thing):
                with pa.ipc.new_stream(written, batch.schema) as stream:
                    stream.write_batch(batch)
            data = written.getvalue()
            with pa.OSFile(self._path(name), "wb") as file:
                file.write(data)
                file.write(_TAIL.pack(zlib.crc32(data)))
            self._names[id(thing)] = thing, name
        self._used.add(name)
        return name

    def get(self, name: str, make: Callable[[list[pa.RecordBatch]], T]) -> T:
        """The thing with a name."""
        for thing, known in self._names.values():
            if known == name:
                return thing  # type: ignore[return-value]
        batches, file = [], pa.BufferReader(self._read(name))
        while file.tell() < file.size():
            batches += list(pa.ipc.open_stream(file))
        thing = make(batches)
        self._names[id(thing)] = thing, name
        self._next = max(self._next, int(name) + 1)
        return thing

    def sweep(self) -> None:
        """Delete what was not put since the last time."""
        self._names = {at: (thing, name) for at, (thing, name) in self._names.items() if name in self._used}
        with os.scandir(self._folder) as files:
            for file in files:
                if file.name.endswith(END) and file.name.removesuffix(END) not in self._used:
                    os.unlink(file)
        self._used = set()

    def _read(self, name: str) -> pa.Buffer:
        """A file without its checksum, which is right."""
        with pa.memory_map(self._path(name)) as file:
            whole = file.read_buffer()
        at = whole.size - _TAIL.size
        if at < 0 or (zlib.crc32(whole[:at]),) != _TAIL.unpack(whole[at:]):
            raise JobError(f"{name}{END} in {self._folder} does not match its checksum")
        return whole[:at]

    def _new_name(self) -> str:
        self._next += 1
        return str(self._next - 1)

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name + END)
