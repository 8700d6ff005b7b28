"""Bytes with their checksum: the first line is the CRC-32 of the rest, eight hexadecimal digits.

>>> sealed(b'{"batch": 7}')
b'ba7d5ff8\\n{"batch": 7}'
>>> unsealed(sealed(b'{"batch": 7}'))
b'{"batch": 7}'
"""

from __future__ import annotations

import zlib


class Broken(ValueError):
    """The checksum does not fit the rest."""


def sealed(body: bytes) -> bytes:
    """The content of a file, with its checksum before it."""
    return _checksum(body) + b"\n" + body


def unsealed(data: bytes) -> bytes:
    """The bytes that were sealed; raises Broken if the checksum does not fit."""
    checksum, _, body = data.partition(b"\n")
    if checksum != _checksum(body):
        raise Broken("it does not match its checksum")
    return body


def _checksum(body: bytes) -> bytes:
    return b"%08x" % zlib.crc32(body)
