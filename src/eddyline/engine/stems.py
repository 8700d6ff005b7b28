"""The SteMs of a slot: one for each source and for each intermediate state of its plan. Aliases of a stream may share
the rows of one (plan/sharing.py)."""

from __future__ import annotations

from eddyline.plan.plan import Plan
from eddyline.plan.spill_axis import SpillAxis
from eddyline.state.arena import Arena
from eddyline.state.row_groups import RowGroups
from eddyline.state.stem import SteM


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
