"""Bytes with their checksum: the first line begins with the CRC-32 of the rest, eight hexadecimal digits.

A label may follow it in the line. It says which file this is; the checksum covers it too.

>>> sealed(b'{"batch": 7}')
b'ba7d5ff8\\n{"batch": 7}'
>>> unsealed(sealed(b'{"batch": 7}'))
b'{"batch": 7}'
>>> with_label(sealed(b'{"batch": 7}', "commits/7"))
('commits/7', b'{"batch": 7}')
"""

from __future__ import annotations

import zlib


class Broken(ValueError):
    """The checksum does not fit the rest."""


def sealed(body: bytes, label: str = "") -> bytes:
    """The content of a file, with its checksum and its label before it."""
    if not label:
        return _checksum(body) + b"\n" + body
    rest = label.encode() + b"\n" + body
    return _checksum(rest) + b" " + rest


def unsealed(data: bytes) -> bytes:
    """The bytes that were sealed; raises Broken if the checksum does not fit."""
    return with_label(data)[1]


def with_label(data: bytes) -> tuple[str, bytes]:
    """The label, empty if there is none, and the bytes that were sealed; raises Broken if the checksum does not fit."""
    checksum, mark, rest = data[:8], data[8:9], data[9:]
    if mark not in (b" ", b"\n") or checksum != _checksum(rest):
        raise Broken("it does not match its checksum")
    if mark == b"\n":
        return "", rest
    label, _, body = rest.partition(b"\n")
    return label.decode(), body


def _checksum(body: bytes) -> bytes:
    return b"%08x" % zlib.crc32(body)
