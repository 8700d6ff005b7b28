"""Snapshots of a slot, in two sizes.

The *whole* snapshot goes to the next process on the same host, together with the arena, which holds the rows
(protocol/attach.py). It is taken when a batch is done and drained. It has the current state, and everything that is
needed to wind back to the last commit. The *small* snapshot goes to the checkpoint: the part of the state that cannot
be rebuilt from the live rows of the log.
"""

from __future__ import annotations

from collections.abc import Callable

from eddyline.bound.model import BoundQuery
from eddyline.codec import Snapshot
from eddyline.engine.access import AccessSnapshot
from eddyline.engine.in_order import InOrderSnapshot
from eddyline.engine.input_batch import InputBatchSnapshot
from eddyline.engine.plan_source import MakePlanSource
from eddyline.engine.planner_snapshot import PlannerSnapshot
from eddyline.engine.results import GroupsSnapshot, Named
from eddyline.engine.slot import Slot
from eddyline.engine.small_state import SmallState
from eddyline.engine.tuning import Tuning
from eddyline.migration.migration import MigrationSnapshot
from eddyline.plan.bounds import FOREVER
from eddyline.plan.tree import parse_tree
from eddyline.routing.eddy import EddySnapshot
from eddyline.routing.rows_windows import RowsWindowSnapshot
from eddyline.routing.tracked_rows import TrackedRowsSnapshot
from eddyline.settings import Settings
from eddyline.spill.accounts import AccountsSnapshot
from eddyline.state.arena import Arena
from eddyline.state.stem import StemSnapshot


class CommittedNumbers(Snapshot, frozen=True):
    """The numbers of a slot at its last commit."""

    built: int
    watermark: int | None
    errors: int


class SlotSnapshot(Snapshot, frozen=True):
    """A slot: its current state, and everything that is needed to wind back to its last commit."""

    plan: str
    version: int
    built: int
    """The number of tuples that were ever built."""
    watermark: int | None
    errors: int
    first_error: str
    batch_done: tuple[str, str] | None
    relocated: tuple[str, str]
    committed: CommittedNumbers
    stems: tuple[StemSnapshot, ...]
    moved: tuple[int, ...]
    tracked: TrackedRowsSnapshot | None
    rows_windows: tuple[RowsWindowSnapshot, ...]
    access: AccessSnapshot | None
    waiting: tuple[InOrderSnapshot, ...]
    results: GroupsSnapshot | None
    accounts: AccountsSnapshot | None
    input_batch: InputBatchSnapshot
    eddy: EddySnapshot
    planner: PlannerSnapshot | None
    migration: MigrationSnapshot | None


def saved(slot: Slot) -> SlotSnapshot:
    """A snapshot for another process: everything that is not in the arena."""
    executor, shelf, migration = slot.executor, slot.arena.shelf, slot.executor.migration
    return SlotSnapshot(
        plan=executor.plan.text,
        version=slot.version,
        built=executor.eddy.number,
        watermark=slot.watermark,
        errors=slot.errors.count,
        first_error=slot.errors.first,
        batch_done=slot.batch_done,
        relocated=slot.relocated,
        committed=CommittedNumbers(executor.committed_number, slot.committed_watermark, slot.committed_errors),
        stems=tuple(stem.saved() for stem in executor.stems),
        moved=tuple(executor.moved),
        tracked=None if executor.tracked is None else executor.tracked.saved(),
        rows_windows=tuple(window.saved() for window in executor.rows_windows.values()),
        access=None if executor.access is None else executor.access.saved(),
        waiting=tuple(waiting.saved(shelf) for waiting in slot.input.waiting.values()),
        results=slot.results.saved(shelf),
        accounts=None if slot.accounts is None else slot.accounts.saved(),
        input_batch=executor.input_batch.saved(),
        eddy=executor.eddy.saved(),
        planner=slot.plans.saved(),
        migration=None if migration is None else migration.saved(),
    )


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
    aliases, moving = [s.alias for s in query.sources], saved.migration
    slot = Slot(query, settings, arena, clock, partial, parse_tree(saved.plan, aliases), plans, tuning, owners)
    if moving is not None:
        slot.executor.migrate(parse_tree(moving.plan, aliases), moving.parallel, moving.first)
    return slot


def restore(slot: Slot, saved: SlotSnapshot) -> None:
    """Restore, into a `prepared` slot, the state that another process left in the same arena."""
    executor, shelf, committed = slot.executor, slot.arena.shelf, saved.committed
    slot.version, slot.watermark, slot.batch_done = saved.version, saved.watermark, saved.batch_done
    slot.relocated = saved.relocated
    slot.errors.count, slot.errors.first = saved.errors, saved.first_error
    slot.committed_watermark, slot.committed_errors = committed.watermark, committed.errors
    executor.eddy.number, executor.committed_number = saved.built, committed.built
    for stem, of_stem in zip(executor.stems, saved.stems, strict=True):
        stem.restore(of_stem)
    executor.moved = list(saved.moved)
    if executor.tracked is not None and saved.tracked is not None:
        executor.tracked.restore(saved.tracked)
    if executor.migration is not None and saved.migration is not None:
        executor.migration.restore(saved.migration)
    for window, of_window in zip(executor.rows_windows.values(), saved.rows_windows, strict=True):
        window.restore(of_window)
    if executor.access is not None and saved.access is not None:
        executor.access.restore(saved.access)
    for waiting, of_waiting in zip(slot.input.waiting.values(), saved.waiting, strict=True):
        waiting.restore(of_waiting, shelf)
    slot.results.restore(saved.results, shelf)
    if slot.accounts is not None and saved.accounts is not None:
        slot.accounts.restore(saved.accounts)
    executor.input_batch.restore(saved.input_batch)
    executor.eddy.restore(saved.eddy)
    slot.plans.restore(saved.planner)


def small_state(slot: Slot) -> tuple[SmallState, Named]:
    """The part of the current state that cannot be rebuilt from live rows: cells, complete tuples that wait for ROWS
    windows, and how many rows these windows have counted."""
    results, batches = slot.results.small_state()
    batches = batches if slot.executor.access is None else [*batches, *slot.executor.access.small_state()]
    held = slot.executor.held
    final = -FOREVER if slot.watermark is None else slot.watermark
    at = final if held is None else min(final, held), slot.results.next
    return SmallState(results, {s: window.counted(*at) for s, window in slot.executor.rows_windows.items()}), batches


def restore_small_state(slot: Slot, numbers: SmallState, batches: Named) -> None:
    """Restore from the small state of one slot; or from the batches of several slots and the numbers of any of them,
    which are the same in all. A job that asks tables keeps its slots, so there it is that of one."""
    slot.results.restore_small_state(numbers.results, batches)
    if slot.executor.access is not None:
        slot.executor.access.restore_small_state(batches)
    for source, rows in numbers.clocks.items():
        slot.executor.rows_windows[source].start_at(rows)


def counted(slot: Slot) -> dict[int, int | None]:
    """For each source with a ROWS window, the time before which rows are in no window any more; None: unknown."""
    return {source: window.horizon(slot.executor.held) for source, window in slot.executor.rows_windows.items()}
