"""One codec for everything that leaves a process: frozen types, as JSON that people can read or as MessagePack.

JSON is for the files of a checkpoint. MessagePack is for what one process hands to another: it is smaller and faster,
and it keeps infinite numbers, which JSON cannot. Reading gives a value of the declared type or raises Unreadable; it
never gives a value of another shape. So a reader needs no checks of its own, and no tuple is unpacked by position.

`schema` is a digest of a type and of all types inside it: their names, fields, and the order of fields. Nobody can
change what is written and forget to say so, because the digest changes with it.

>>> class Point(Snapshot, frozen=True):
...     x: int
...     y: float | None
>>> unpacked(packed(Point(3, None)), Point)
Point(x=3, y=None)
>>> of_json(as_json({"rows": 7, "newest": None}), dict[str, int | None])
{'newest': None, 'rows': 7}
>>> len(schema(Point))
16
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

Unreadable = msgspec.DecodeError
"""The bytes are not a value of the wanted type; a ValueError."""


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """State for another process. Fields are written in order and without their names."""


def as_json(value: object) -> bytes:
    """JSON in one line, keys sorted."""
    return json.dumps(msgspec.to_builtins(value, str_keys=True, enc_hook=_plain), sort_keys=True).encode()


def of_json(data: bytes, wanted: type[T]) -> T:
    """The value that `as_json` wrote; fields that the type does not have are passed over."""
    return msgspec.json.decode(data, type=wanted)


def packed(value: object) -> bytes:
    """MessagePack."""
    return _PACKER.encode(value)


def unpacked(data: bytes, wanted: type[T]) -> T:
    """The value that `packed` wrote."""
    unpacker = _UNPACKERS.get(wanted)
    if unpacker is None:
        unpacker = _UNPACKERS[wanted] = msgspec.msgpack.Decoder(wanted)
    found: T = unpacker.decode(data)
    return found


def schema(*types: Any) -> str:
    """A digest of what is written for these types: 16 hexadecimal digits."""
    known: set[type] = set()
    described = [_described(info, known) for info in msgspec.inspect.multi_type_info(types)]
    return hashlib.sha256("\n".join(described).encode()).hexdigest()[:16]


def _described(info: Any, known: set[type]) -> str:
    """A type in words: a class by its name and, the first time, with its fields. Where a class lives and what its
    defaults are changes nothing in what is written."""
    if isinstance(info, type):
        return info.__name__
    if isinstance(info, tuple):
        return f"({', '.join(_described(item, known) for item in info)})"
    if isinstance(info, msgspec.inspect.UnionType):
        return " | ".join(sorted(_described(item, set(known)) for item in info.types))
    if isinstance(info, msgspec.inspect.Field):
        return f"{info.encode_name}: {_described(info.type, known)}{'' if info.required else ', optional'}"
    if not isinstance(info, msgspec.inspect.Type):
        return repr(info)
    made_of: type | None = getattr(info, "cls", None)
    if made_of in known:
        return made_of.__name__
    known |= set() if made_of is None else {made_of}
    parts = (_described(getattr(info, name), known) for name in info.__struct_fields__)
    return f"{type(info).__name__}({', '.join(parts)})"


def _plain(number: Any) -> Any:
    """Numbers of NumPy."""
    return number.item()


_PACKER = msgspec.msgpack.Encoder(enc_hook=_plain)
_UNPACKERS: dict[Any, msgspec.msgpack.Decoder[Any]] = {}
"""By type: making one looks at all types inside it."""
