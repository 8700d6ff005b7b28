"""What a format says of itself after it has read its options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eddyline.runtime.access.client import AccessClient


def _every(columns: Sequence[str]) -> str:
    return ""


@dataclass(frozen=True)
class ClientKind:
    """How a table of one format can be asked. Each format has a function
    `kind_of(options, schema, concurrency) -> ClientKind`."""

    open: Callable[[], AccessClient]
    batch: int
    """Keys of one request, unless the table says otherwise; 1 if a request has one key."""
    scans: bool = False
    no_index: Callable[[Sequence[str]], str] = _every
    """Why there is no index over some columns; nothing if there is one."""
    one_index: bool = False
    any_type: bool = False
    """Whether rows come as Arrow, in all types; else values are read as text or as plain values."""
    nested: bool = False
    """Whether lists, structs and maps can be read."""
    why_single: str = ""
    """Why a request has one key."""
