"""Snapshots of a slot for the next process on the same host (protocol/attach.py).

The arena holds the rows. A snapshot is taken when a batch is done and drained. It has the current state of each part,
and everything that is needed to wind it back to the last commit. What goes to the checkpoint is smaller: the part of
the state that the rows of the log cannot rebuild (`Slot.durable`).
"""

from __future__ import annotations

from collections.abc import Callable

from eddyline.bound.model import BoundQuery
from eddyline.codec import Snapshot
from eddyline.engine.plan_source import MakePlanSource
from eddyline.engine.slot import Slot
from eddyline.engine.tuning import Tuning
from eddyline.plan.tree import parse_tree
from eddyline.settings import Settings
from eddyline.state.arena import Arena
from eddyline.state.part import PartSnapshot, restore_parts, save_parts


class Moving(Snapshot, frozen=True):
    """A migration under way: its target plan, its strategy, and the first new row of each source."""

    plan: str
    parallel: bool
    first: tuple[int, ...]


class SlotSnapshot(Snapshot, frozen=True):
    """A slot: which plan it runs, which commit its state is of, and the snapshots of its parts."""

    plan: str
    moving: Moving | None
    version: int
    batch_done: tuple[str, str] | None
    relocated: tuple[str, str]
    parts: tuple[PartSnapshot, ...]


def saved(slot: Slot) -> SlotSnapshot:
    """A snapshot for another process: everything that is not in the arena."""
    plan, migration = slot.executor.plan.text, slot.executor.migration
    moving = None
    if migration is not None:
        moving = Moving(migration.plan.text, migration.parallel, tuple(migration.first))
    return SlotSnapshot(plan, moving, slot.version, slot.batch_done, slot.relocated, save_parts(slot.parts))


def prepared(
    saved: SlotSnapshot,
    query: BoundQuery,
    settings: Settings,
    arena: Arena,
    clock: Callable[[], float],
    partial: bool,
    plans: MakePlanSource,
    tuning: Tuning,
    owners: tuple[int, ...] = (),
) -> Slot:
    """A slot with the plan and the migration of a snapshot, ready for `restore`. It takes as many regions of the arena
    as the slot of the snapshot had."""
    aliases, moving = [s.alias for s in query.sources], saved.moving
    slot = Slot(query, settings, arena, clock, partial, parse_tree(saved.plan, aliases), plans, tuning, owners)
    if moving is not None:
        slot.executor.migrate(parse_tree(moving.plan, aliases), moving.parallel, moving.first)
    return slot


def restore(slot: Slot, saved: SlotSnapshot) -> None:
    """Restore, into a `prepared` slot, the state that another process left in the same arena."""
    slot.version, slot.batch_done, slot.relocated = saved.version, saved.batch_done, saved.relocated
    restore_parts(slot.parts, saved.parts)


def counted(slot: Slot) -> dict[int, int | None]:
    """For each source with a ROWS window, the time before which rows are in no window any more; None: unknown."""
    return {source: window.horizon(slot.executor.held) for source, window in slot.executor.rows_windows.items()}
