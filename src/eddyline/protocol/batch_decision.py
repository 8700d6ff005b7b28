"""A batch decision: what a batch is to do. It is durable before any slot begins; tasks read it from the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from eddyline.engine.watermarks import Reached

BatchKind = Literal["load", "rows", "end"]
"""A batch loads tables, takes rows of streams, or flushes everything that waits because the streams have ended."""


@dataclass(frozen=True)
class BatchDecision:
    """What one batch is to do."""

    batch: int
    kind: BatchKind
    offsets: Any
    """Which rows, in the words of the sources."""
    watermarks: Reached
    """Those of the commit that the batch begins at."""
    slots: int
    merge: Mapping[int, tuple[str, ...]]
    """By slot the segments of the log that it should merge."""
    ended: tuple[str, ...] = ()
    """Streams that this is the last batch of."""
    before: str = ""
    """The history of the commit that the batch begins at."""
    after: str = ""
    """The history that the batch's commit ends."""
    quiet: tuple[str, ...] = ()
    """Streams that were silent for too long when the batch began: those without a row in it are idle after it."""
