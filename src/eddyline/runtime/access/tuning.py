"""The constants of the access modules."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AccessTuning:
    """What tables do not set themselves; times in seconds."""

    breaker_failures: int = 5
    """Tries without an answer, one after the other, after which an access method is left alone."""
    breaker_pause: float = 2.0
    """How long it is left alone before it is probed."""
    first_pause: float = 0.1
    """The longest pause before the first retry; it doubles with each retry."""
    longest_pause: float = 5.0
    scan_parts: int = 4
    """Parts of a scan that may wait for the slot; then the scan waits."""
    closing: float = 5.0
    """How long the end of all connections may take."""
    gather: float = 0.02
    """An answer waits so many seconds for others, as long as more keys are asked."""


DEFAULT = AccessTuning()
