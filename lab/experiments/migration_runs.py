"""A chain of four streams whose plan is changed while it runs, as in chapter 16 of dissertation 002.

The old plan is (((A B) C) D) and the new one (A ((B C) D)), as in figure 10.1: they have no intermediate state in
common. Joins are nested loops, as in the paper's cost model. Times are CPU times.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from time import process_time

from eddyline.engine.slot import Slot
from eddyline.errors import InternalError
from eddyline.migration.migration import Migration
from eddyline.plan.tree import Tree, parse_tree
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench.timed_joins import TimedJoin
from lab.experiments.paced import MeasuredBatch

OLD, NEW = "(((A B) C) D)", "(A ((B C) D))"
MOVING, PAUSING, PARALLEL, NEWEST = "moving state", "moving state, pausing", "parallel track", "newest component"
"""The strategies: moving state between packets, or all at once as in the paper; parallel track with exact expiry, or
with the paper's purge by the newest component of a tuple."""

SETTINGS = Settings(optimizer="off")


class ByNewest(Migration):
    """A parallel track that lasts as long as the paper's. In the paper a tuple stays in a state of the old box until
    its newest component is out of the window, so a tuple of an old and a new row stays for up to two windows. In
    Eddyline such tuples expire earlier; this class records, when they are made, how long they would have stayed."""

    def __init__(self, slot: Slot, tree: Tree, window: float) -> None:
        super().__init__(slot.arena, slot.executor.eddy, slot.executor.stems, tree, True, SETTINGS, {})
        self._window, self._seen = int(window * 1e6), [stem.built for stem in slot.executor.stems]
        self._until = 0

    def end_batch(self) -> None:
        """Called after a batch, before the memory of expired rows is freed."""
        super().end_batch()
        for number, stem in enumerate(self._stems):
            rows = slice(self._seen[number], stem.built)
            self._seen[number] = stem.built
            old = stem.rows.times.values[rows] < 0
            for source, component in stem.rows.components.items():
                old |= component.values[rows] < self.first[source]
            newest = int(stem.rows.times.values[rows][old].max(initial=0))
            self._until = max(self._until, newest + self._window)

    @property
    def is_ready(self) -> bool:
        """Whether the track may end, by our rule and by the paper's."""
        now = min(int(stem.rows.times.values[stem.built - 1]) for stem in self._stems if not stem.layout.components)
        return super().is_ready and now > self._until


@dataclass(frozen=True)
class Changed:
    """A run with a migration: its batches (`state_rows` counts the tuples of intermediate states; a pause is a batch
    without rows), the event times at which the migration began and ended, and the CPU seconds of the migration
    alone."""

    batches: list[MeasuredBatch]
    begin: float
    end: float
    seconds: float

    @property
    def length(self) -> float:
        """The length of the migration in seconds of event time."""
        return self.end - self.begin

    @property
    def results(self) -> int:
        """The number of results of the whole run."""
        return sum(batch.results for batch in self.batches)


def change(
    join: TimedJoin, how: str | None, at: float, batch: float, window: float, plans: tuple[str, str] = (OLD, NEW)
) -> Changed:
    """Run a join in batches of `batch` seconds, and change its plan at the time `at`, unless `how` is None.
    InternalError if the migration is not complete when the rows end."""
    aliases = [s.alias for s in join.query.sources]
    old, new = (parse_tree(text, aliases) for text in plans)
    engine, done, end = BatchDriver(join.query, SETTINGS, process_time), list[MeasuredBatch](), at
    slot = engine.slot
    slot.set_plan(old)
    for number, rows in enumerate(join.batches(batch)):
        begin, now = process_time(), number * batch
        if how is not None and number == round(at / batch):
            _begin(slot, new, how, window)
            if how == PAUSING:
                done.append(MeasuredBatch(now, 0, process_time() - begin, 0, _between(slot), slot.peak_bytes))
                begin = process_time()
        going = slot.executor.migration is not None
        results = sum(found.num_rows for found in engine.batch(rows).results)
        if going and slot.executor.migration is None:
            end = now
        count = sum(part.num_rows for _, part in rows)
        done.append(MeasuredBatch(now + batch, count, process_time() - begin, results, _between(slot), slot.peak_bytes))
    if how is not None and slot.executor.plan.tree != new:
        raise InternalError(f"the plan is still {slot.executor.plan.text} after {join.seconds:g} s")
    changes = [d for d in slot.executor.eddy.decisions.recent if d.kind == "migration"]
    return Changed(done, at, end, changes[-1].measured["seconds"] if how is not None else 0.0)


def pauses(join: TimedJoin, at: float, batch: float, rounds: int) -> float:
    """The CPU seconds to move all state at once at the time `at`; the least of some rounds, between which it is moved
    back."""
    aliases = [s.alias for s in join.query.sources]
    old, new = (parse_tree(text, aliases) for text in (OLD, NEW))
    engine, least = BatchDriver(join.query, SETTINGS, process_time), inf
    slot = engine.slot
    slot.set_plan(old)
    for number, rows in enumerate(join.batches(batch), 1):
        engine.batch(rows)
        if number == round(at / batch):
            break
    for _ in range(rounds):
        begin = process_time()
        slot.set_plan(new)
        least = min(least, process_time() - begin)
        slot.set_plan(old)
    return least


def _between(slot: Slot) -> int:
    """The number of tuples in intermediate states."""
    held = sum(stem.held for stem in slot.executor.stems if stem.layout.components)
    return held + (0 if slot.executor.migration is None else slot.executor.migration.state_rows)


def _begin(slot: Slot, tree: Tree, how: str, window: float) -> None:
    if how == PAUSING:
        slot.set_plan(tree)
    elif how == NEWEST:
        slot.executor.migration = ByNewest(slot, tree, window)
    else:
        slot.executor.migrate(tree, parallel=how == PARALLEL)
