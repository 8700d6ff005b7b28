"""What the distribution manager remembers from batch to batch.

It is part of a commit, so a restarted job goes on with the same decisions. It has a few numbers per slot, and the
groups that have moved lately.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from eddyline.balance.decided import Balanced
from eddyline.balance.reports import Floats


@dataclass(frozen=True)
class WatchedMove:
    """A move that is compared with its prediction later. Loads are multiples of the mean of all slots, so that more or
    less load in the whole job does not count."""

    groups: tuple[int, ...]
    sender: int
    receiver: int
    measure: Balanced
    batch: int
    """The batch after which it was decided."""
    before: float
    """The load of the more loaded of the two slots before the move."""
    predicted: float
    """The same after it."""
    amount: float
    """The load of the groups."""


@dataclass(frozen=True)
class Resting:
    """Groups that do not move until then."""

    until: float
    groups: bytes
    """Packed (`packed_groups`)."""


@dataclass(frozen=True)
class Pressing:
    """For how many batches in a row slots have been out of balance in one measure, and whether groups are moving for
    it: then they go on moving until slots are nearer to each other than when it began."""

    batches: int = 0
    moving: bool = False


@dataclass(frozen=True)
class PressingKey:
    """For how many batches in a row a key should have been shared, or should not have been."""

    code: int
    batches: int


@dataclass(frozen=True)
class Forcing:
    """Spilling on demand."""

    bytes: int = 0
    """Bytes that slots were forced to spill and that are still on disk."""
    batches: int = 0
    """For how many batches in a row productivity has differed."""


@dataclass(frozen=True)
class ManagerState:
    """The memory of the distribution manager."""

    batch: int = 0
    """The number of batches seen."""
    at: float = 0.0
    """The time after the last of them, in seconds."""
    cpu: bytes = b""
    """Smoothed CPU seconds by slot, as 32-bit floats."""
    seconds: float = 0.0
    """The smoothed time of a batch."""
    noise: float = 0.0
    """The standard deviation of a slot's CPU in one batch, as a share of it; smoothed."""
    looked_at: float | None = None
    """When groups were chosen last."""
    factor: int = 1
    """By how much the interval is longer, because moves did not pay."""
    pressing: Mapping[Balanced, Pressing] = field(default_factory=dict)
    """By measure; none where slots are balanced."""
    watched: tuple[WatchedMove, ...] = ()
    resting: tuple[Resting, ...] = ()
    stuck_slots: Mapping[Balanced, tuple[int, ...]] = field(default_factory=dict)
    """By measure the slots that could give nothing away when groups were chosen last."""
    forcing: Forcing = Forcing()
    keys: tuple[PressingKey, ...] = ()

    @property
    def slot_cpu(self) -> Floats:
        """Smoothed CPU seconds by slot."""
        return np.frombuffer(self.cpu, "<f4").astype(np.float64)


def packed_cpu(cpu: Floats) -> bytes:
    """The `cpu` of a state."""
    return cpu.astype("<f4").tobytes()


def packed_groups(groups: Iterable[int]) -> bytes:
    """Groups as few bytes.

    >>> unpacked_groups(packed_groups(range(7, 1000))).sum(), len(packed_groups(range(7, 1000))) < 100
    (np.int64(499479), True)
    """
    return zlib.compress(
        np.diff(np.sort(np.fromiter(groups, np.int32)), prepend=np.int32(0)).astype("<i4").tobytes(), 1
    )


def unpacked_groups(packed: bytes) -> NDArray[np.int64]:
    """The groups that `packed_groups` packed, in order."""
    return np.cumsum(np.frombuffer(zlib.decompress(packed), "<i4"), dtype=np.int64)
