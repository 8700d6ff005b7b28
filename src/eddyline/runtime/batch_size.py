"""How many rows a micro-batch has.

A number that was set stays. With `auto` batches get half as large when two in a row took longer than `batch_seconds`
(one may have compiled a kernel), and twice as large again when they take less than a quarter of it, never above the
default: larger ones would hold state longer without being quicker.
"""

from __future__ import annotations

from eddyline.settings import Settings

_LEAST = 256


class BatchSize:
    """The rows of the next batch."""

    def __init__(self, settings: Settings) -> None:
        self.rows = settings.batch_rows
        self._most = settings.batch_rows
        self._auto, self._seconds = settings.batch_rows_auto, settings.batch_seconds
        self._slow = 0

    def observe(self, seconds: float) -> None:
        """A batch took so long."""
        self._slow = self._slow + 1 if seconds > self._seconds else 0
        if self._auto and self._slow >= 2:
            self.rows, self._slow = max(_LEAST, self.rows // 2), 0
        elif self._auto and seconds < self._seconds / 4:
            self.rows = min(self._most, self.rows * 2)
