"""The SteMs of a slot: one for each source and for each intermediate state of its plan. Aliases of a stream may share
the rows of one (plan/sharing.py)."""

from __future__ import annotations

from eddyline.codec import Snapshot
from eddyline.plan.plan import Plan
from eddyline.plan.spill_axis import SpillAxis
from eddyline.state.arena import Arena
from eddyline.state.part import Cut, Part
from eddyline.state.row_groups import RowGroups
from eddyline.state.stem import SteM, StemSnapshot


class StemsSnapshot(Snapshot, frozen=True):
    """The SteMs of a slot, and by source how many rows got a new number because others left."""

    stems: tuple[StemSnapshot, ...]
    moved: tuple[int, ...]


class Stems(Part):
    """The SteMs of the running plan: those of the sources, then the intermediate ones."""

    name, snapshot = "stems", StemsSnapshot

    def __init__(self, stems: list[SteM], sources: int) -> None:
        self.all = stems
        self.moved = [0] * sources
        """By source, how many rows got a new number because others left."""

    def commit(self, cut: Cut) -> None:
        for stem in self.all:
            stem.commit()

    def wind_back(self) -> None:
        for stem in self.all:
            stem.wind_back()

    def saved(self) -> StemsSnapshot:
        return StemsSnapshot(tuple(stem.saved() for stem in self.all), tuple(self.moved))

    def restore(self, saved: StemsSnapshot) -> None:
        for stem, of_stem in zip(self.all, saved.stems, strict=True):
            stem.restore(of_stem)
        self.moved = list(saved.moved)

    @property
    def state_rows(self) -> int:
        return sum(stem.held for stem in self.all if stem.owns_rows)

    @property
    def state_bytes(self) -> int:
        return sum(stem.nbytes for stem in self.all)


def make_stems(arena: Arena, plan: Plan, axis: SpillAxis | None) -> list[SteM]:
    """Those of the sources, then the intermediate ones. Along `axis` groups of rows can leave memory."""
    found = list[SteM]()
    for number, layout in enumerate(plan.layouts):
        is_source = number < len(plan.owners)
        owner = plan.owners[number] if is_source else number
        if owner != number:
            found.append(SteM(arena, layout, owner=(owner, found[owner])))
        else:
            found.append(SteM(arena, layout, _row_groups(plan, axis, number) if axis and is_source else None))
    return found


def _row_groups(plan: Plan, axis: SpillAxis, source: int) -> RowGroups:
    """The groups by which rows of a source can leave memory."""
    key = axis.key(source)
    return RowGroups(axis.first(source), axis.size, key if key in plan.layouts[source].keys else None)
