"""A parallel track: groups that are moving to another slot while both slots get their rows (002, chapter 21).

The *receiver* has the rows that came since the track began, the *sender* has these and all earlier ones. A result is
the sender's if one of its placed rows came before the track began, and the receiver's otherwise
(docs/design/relocation.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NOT_BEGUN = -1
"""The epoch of a track that a placer asks for: the driver sets it when it commits the slot map."""


@dataclass(frozen=True)
class Track:
    """Groups of one sender that begin a track together. The slot map has their receivers."""

    groups: tuple[int, ...]
    sender: int
    epoch: int = NOT_BEGUN
    """The epoch that begins with the track (protocol/ledger.py): earlier rows are old."""
    newest: Mapping[str, int] = field(default_factory=dict)
    """By stream the newest time of any row that came before the track began."""

    def __post_init__(self) -> None:
        if not self.groups or self.epoch < NOT_BEGUN:
            raise ValueError(f"a track of {len(self.groups)} groups that begins with epoch {self.epoch}")

    @property
    def begun(self) -> bool:
        """Whether the driver has set when it begins."""
        return self.epoch != NOT_BEGUN
