"""JSON with its checksum: the first line is the CRC-32 of the rest, eight hexadecimal digits.

>>> sealed({"batch": 7})
b'ba7d5ff8\\n{"batch": 7}'
>>> unsealed(sealed({"batch": 7}))
{'batch': 7}
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any


class Broken(ValueError):
    """The checksum is not that of the rest."""


def sealed(value: Mapping[str, Any], default: Callable[[Any], Any] | None = None) -> bytes:
    """An object as a file has it; `default` makes of other things what JSON knows."""
    body = json.dumps(value, sort_keys=True, default=default).encode()
    return _checksum(body) + b"\n" + body


def unsealed(data: bytes) -> dict[str, Any]:
    """What was sealed, or Broken."""
    checksum, _, body = data.partition(b"\n")
    if checksum != _checksum(body):
        raise Broken("it does not match its checksum")
    read: dict[str, Any] = json.loads(body)
    return read


def _checksum(body: bytes) -> bytes:
    return b"%08x" % zlib.crc32(body)
