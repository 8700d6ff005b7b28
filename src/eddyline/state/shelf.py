"""Arrow data that a slot keeps beside its columns, as files of the arena's folder.

Everything on a shelf is immutable. So an object is written once, when it is first put, and read by mapping its file,
without copying. After all objects that are still needed were put again, `sweep` deletes the others. (A mapped file that
is deleted stays readable through existing mappings.) A file holds Arrow streams, one for each record batch, one after
the other, and at its end the CRC-32 of its label and of these (32 bits, little-endian). The label is the identity of
the arena and the name of the file, so a copy of another file does not match. A file that does not match its checksum is
refused (JobError).
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa

from eddyline.errors import JobError
from eddyline.os_errors import why

T = TypeVar("T")

END = ".arrow"
"""The end of the names of its files."""
_TAIL = struct.Struct("<I")


class Shelf:
    """Gives names to immutable objects, and stores them."""

    def __init__(self, folder: str, identity: str = "", shown: str | None = None) -> None:
        """`shown` is the name of the folder in messages, if it is another."""
        self._folder, self._identity, self._shown = folder, identity, shown or folder
        self._names: dict[int, tuple[object, str]] = {}
        """The objects by identity. Each object is referenced here, so that no other object can get its identity."""
        self._used: set[str] = set()
        self._next = 0

    def put(self, thing: T, batches: Callable[[T], Sequence[pa.RecordBatch]]) -> str:
        """The name of an object; it is written now if it is new."""
        known = self._names.get(id(thing))
        name = self._new_name() if known is None else known[1]
        if known is None:
            written = pa.BufferOutputStream()
            for batch in batches(thing):
                with pa.ipc.new_stream(written, batch.schema) as stream:
                    stream.write_batch(batch)
            data = written.getvalue()
            with self._errors(), pa.OSFile(self._path(name), "wb") as file:
                file.write(data)
                file.write(_TAIL.pack(self._checksum(name, data)))
            self._names[id(thing)] = thing, name
        self._used.add(name)
        return name

    def get(self, name: str, make: Callable[[list[pa.RecordBatch]], T]) -> T:
        """The object with this name."""
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
        """Delete the objects that were not put since the last sweep."""
        self._names = {at: (thing, name) for at, (thing, name) in self._names.items() if name in self._used}
        with os.scandir(self._folder) as files:
            for file in files:
                if file.name.endswith(END) and file.name.removesuffix(END) not in self._used:
                    os.unlink(file)
        self._used = set()

    def _read(self, name: str) -> pa.Buffer:
        """The contents of a file without its checksum; JobError if the checksum does not match."""
        with self._errors(), pa.memory_map(self._path(name)) as file:
            whole = file.read_buffer()
        at = whole.size - _TAIL.size
        if at < 0 or (self._checksum(name, whole[:at]),) != _TAIL.unpack(whole[at:]):
            raise JobError(f"{name}{END} in {self._shown} does not match its checksum")
        return whole[:at]

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """JobError with the folder if the system cannot read or write a file."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise JobError(f"cannot keep state in {self._shown}: {why(error)}") from None

    def _checksum(self, name: str, data: pa.Buffer) -> int:
        return zlib.crc32(data, zlib.crc32(f"{self._identity} {name}".encode()))

    def _new_name(self) -> str:
        self._next += 1
        return str(self._next - 1)

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name + END)
