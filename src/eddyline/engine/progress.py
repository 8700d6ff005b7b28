"""How far a slot has come, as a part of it."""

from __future__ import annotations

from eddyline.bound.evaluate import ErrorCount
from eddyline.codec import Snapshot
from eddyline.state.part import Cut, Part, Versioned


class ProgressSnapshot(Snapshot, frozen=True):
    """The watermark and the expression errors, each with its committed twin, and the first error."""

    watermark: tuple[int | None, int | None]
    errors: tuple[int, int]
    first_error: str


class SlotProgress(Part):
    """How far a slot has come: the query's watermark at the end of the last batch, and the errors of expressions."""

    name, snapshot = "progress", ProgressSnapshot

    def __init__(self, errors: ErrorCount) -> None:
        self.watermark = Versioned[int | None](None)
        self._errors, self._committed = errors, errors.count

    def commit(self, cut: Cut) -> None:
        self.watermark.commit()
        self._committed = self._errors.count

    def wind_back(self) -> None:
        self.watermark.wind_back()
        self._errors.count = self._committed

    def saved(self) -> ProgressSnapshot:
        return ProgressSnapshot(self.watermark.saved, (self._errors.count, self._committed), self._errors.first)

    def restore(self, saved: ProgressSnapshot) -> None:
        self.watermark.restore(saved.watermark)
        (self._errors.count, self._committed), self._errors.first = saved.errors, saved.first_error
