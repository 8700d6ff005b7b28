"""The executor: runs the plan of a slot. It has the SteMs, the eddy over them, and a migration to another plan.

The rows of a batch are stored, then taken in slice by slice; then expired rows are marked. `commit` makes this final;
`wind_back` in its place undoes it. Between a commit and the next batch nothing is in flight and nothing can be undone.
At that point a plan is exchanged for another, at once or at the end of a migration that went on in earlier batches
(migration/migration.py), and rows may be loaded into the SteMs or leave them. The executor does not know where rows
come from, why a plan is changed, or what becomes of complete tuples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.expr import Expr
from eddyline.bound.model import BoundQuery, WindowKind
from eddyline.engine.cpu_meter import CpuMeter
from eddyline.engine.input_batch import InputBatch
from eddyline.engine.lookups.modules import AccessModules
from eddyline.engine.plan_course import PlanCourse, Toward
from eddyline.engine.plan_source import NewPlan
from eddyline.engine.stems import Stems, make_stems
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.faults import reach
from eddyline.migration.migration import Migration
from eddyline.plan.bounds import FOREVER
from eddyline.plan.plan import plan_of
from eddyline.plan.spill_axis import SpillAxis
from eddyline.plan.tree import Tree, parse_tree
from eddyline.routing.eddy import Eddy
from eddyline.routing.packet import Packet
from eddyline.routing.rows_windows import RowsWindow
from eddyline.routing.tracked_rows import TrackedRows
from eddyline.settings import Settings
from eddyline.spill.generations import Generations
from eddyline.state.arena import Arena
from eddyline.state.layout import aliases_of
from eddyline.state.part import Cut, Part
from eddyline.state.stem import SteM

Ints = NDArray[np.int64]


class Executor:
    """Runs a plan over the rows of a slot, while a migration may prepare the next plan."""

    def __init__(
        self,
        query: BoundQuery,
        tree: Tree,
        settings: Settings,
        arena: Arena,
        clock: Callable[[], float],
        meter: CpuMeter,
        errors: ErrorCount,
        complete: Callable[[Packet], None],
        tuning: Tuning = DEFAULT,
        spill_axis: SpillAxis | None = None,
        owners: tuple[int, ...] = (),
    ) -> None:
        """`complete` takes the tuples that are whole. Along `spill_axis` groups of rows can leave memory. `owners` says
        which sources share a SteM (`Plan.owners`)."""
        self.spill_axis = spill_axis
        self._tuning = tuning
        self._query, self._arena, self._settings, self._meter = query, arena, settings, meter
        self.plan = plan_of(query, tree, owners=owners)
        self._kept = Stems(make_stems(arena, self.plan, spill_axis), len(query.sources))
        self.generations: Generations | None = None
        """Those of the groups that have left memory; rows of the cold ones are not taken into it."""
        windows, slide = [s.window for s in query.sources], None if query.group is None else query.group.slide
        self.rows_windows = {
            i: RowsWindow(arena, w.size, slide, i) for i, w in enumerate(windows) if w.kind is WindowKind.ROWS
        }
        """The counters of the sources with a ROWS window."""
        self.tracked = None if spill_axis is None else self._tracked_rows(spill_axis)
        """The rows of groups that are on a parallel track to other slots."""
        asked = query, self.plan, arena, clock, tuning.engine, self.source_stems
        self.access = AccessModules(*asked) if query.asks else None
        """The tables that are asked."""
        known = self.rows_windows, settings, errors, complete, clock, None, tuning.routing, self.tracked, self.access
        self.eddy = Eddy(self.plan, self.stems, *known)
        self.migration: Migration | None = None
        """The migration to another plan, if one is under way."""
        self.taken = 1.0
        """The share of the received rows that the eddy has taken in."""
        self.input_batch = InputBatch(settings.input_batch or settings.packet, tuning.engine)
        self._in_order = settings.execution == "total"
        self._pause = math.inf if settings.pause_ms is None else settings.pause_ms / 1000

    @property
    def parts(self) -> list[Part]:
        """The parts of a slot that run its plan."""
        optional = (self.tracked, self.migration, self.access)
        parts = [part for part in optional if part is not None]
        return [self._kept, *parts, *self.rows_windows.values(), self.input_batch, self.eddy]

    @property
    def stems(self) -> list[SteM]:
        """Those of the sources, then the intermediate ones."""
        return self._kept.all

    @property
    def source_stems(self) -> list[SteM]:
        """The SteMs of the sources, which hold the rows themselves."""
        return self.stems[: len(self._query.sources)]

    @property
    def built(self) -> list[int]:
        """Rows built so far, by source."""
        return [stem.built - moved for stem, moved in zip(self.source_stems, self._kept.moved, strict=True)]

    def _tracked_rows(self, axis: SpillAxis) -> TrackedRows:
        stems = enumerate(self.source_stems)
        return TrackedRows({source: stem.rows for source, stem in stems if axis.has(source)}, axis.size)

    def wants_groups(self, source: int) -> bool:
        """Whether `store` needs the groups of rows: to store them, or because some groups are cold."""
        cold = self.generations is not None and len(self.generations.cold) > 0
        return self.spill_axis is not None and (cold or self.stems[source].rows.stores_groups)

    # A batch

    def store(
        self,
        source: int,
        values: Mapping[Expr, pa.Array],
        times: Ints,
        ordinals: Ints | None,
        groups: Ints | None = None,
    ) -> None:
        """Rows that passed the filters of their source, for `take_in`. Those of cold groups are not stored."""
        if self.generations is not None and groups is not None and self.generations.cold:
            here = ~self.generations.is_cold(groups)
            values = {expr: array.filter(pa.array(here)) for expr, array in values.items()}
            times, groups = times[here], groups[here]
            ordinals = None if ordinals is None else ordinals[here]
        if times.size:
            self.stems[source].rows.append(values, times, ordinals, groups)

    def take_in(self) -> None:
        """Build the stored rows and route them through the eddy, one slice whenever the eddy has nothing else to do,
        until all rows and their tuples are processed. A slice has the same share of every source, because sources that
        are read side by side cover the same stretch of time. Within a slice, the rows of one source probe before those
        of the next are built, which would be too new for them."""
        eddy, work, stems = self.eddy, self.eddy.work, self.source_stems
        received = sum(stem.waiting for stem in stems)
        while left := sum(stem.waiting for stem in stems):
            self.taken = 1 - left / received
            calls, passed, built = work.calls, int(work.passed[0]), 0
            begin = eddy.clock()
            for source, rows in self._next_rows(stems, left):
                eddy.build(source, rows)
                built += rows
                (eddy.flush if self._in_order else eddy.run)()
            calls = work.calls - calls + len(stems)
            self.input_batch.observe(built, calls * work.call, int(work.passed[0]) - passed)
            self._move_some(eddy.clock() - begin, built)
        self.taken = 1.0
        eddy.flush()
        while self._track_has_more():
            eddy.flush()

    def _next_rows(self, stems: Sequence[SteM], left: int) -> list[tuple[int, int]]:
        """How many rows of which sources come next. In the totally synchronised model it is a single row, the oldest of
        the next rows of all sources, and it is processed completely before the next one."""
        waiting = [(source, stem) for source, stem in enumerate(stems) if stem.waiting]
        if self._in_order:
            return [(min(waiting, key=lambda item: item[1].rows.times.values[item[1].built])[0], 1)]
        slices = -(-left // self.input_batch.rows)
        return [(source, -(-stem.waiting // slices)) for source, stem in waiting]

    def _move_some(self, seconds: float, built: int) -> None:
        """After a slice of the input: let the migration work for the `seconds` that the slice took, and on at least
        twice as many rows as were `built`, so that it ends."""
        if self.migration is not None:
            reach("migration: before a step")
            with self._meter.left_out():
                self.migration.step(min(self._pause, seconds), least=2 * built)

    def _track_has_more(self) -> bool:
        """Drain the track at the end of a batch; returns whether the current plan has work to do as a result."""
        if self.migration is None:
            return False
        with self._meter.left_out():
            return self.migration.flush()

    def gather(self, packet: Packet) -> dict[Expr, pa.Array]:
        """Gather the columns that results need, for complete tuples, and for partial ones: what they lack is NULL."""
        needed = self.plan.gathered
        values = self.eddy.gather(packet, [column for column in needed if column.source in packet.rows])
        return values | {c: pa.nulls(packet.size, c.type) for c in needed if c.source not in packet.rows}

    def waiting(self) -> list[Packet]:
        """At the end of a batch: the tuples that are partial results."""
        return [] if self.access is None else self.access.waiting(self.eddy, [stem.rows for stem in self.source_stems])

    @property
    def held(self) -> int | None:
        """Rows that are as old as this or newer stay, and those that can join with them, because a part needs them: as
        if the oldest were still to come. None: no part does."""
        return min((since for part in self.parts if (since := part.needs_since) is not None), default=None)

    def expire(self, watermarks: Mapping[str, int | None], query_watermark: int | None) -> None:
        """Expire rows that no future row can join with. With a ROWS window the query's watermark counts for all
        streams."""
        now = [
            FOREVER if s.stream.is_table else query_watermark if self.rows_windows else watermarks[s.stream.name]
            for s in self._query.sources
        ]
        held = self.held
        if held is not None:
            now = [
                w if w is None or s.stream.is_table else min(w, held)
                for s, w in zip(self._query.sources, now, strict=True)
            ]
        bounds = self.plan.graph.bounds
        for source, stem in enumerate(self.stems):
            if stem.layout.components:  # after the SteMs of the sources
                stem.expire_tuples(self.stems)
                continue
            if stem.layout.timed and stem.owns_rows:
                horizon = min(bounds.horizon(alias, now) for alias in aliases_of(source, self.plan.owners))
                stem.expire(horizon if held is None else min(horizon, held))
            if source in self.rows_windows and held is None:
                stem.expire_ordinals(self.rows_windows[source].rows - self.rows_windows[source].size)

    # Between two batches

    def load(self) -> None:
        """Build the stored rows without routing them: their results are already emitted."""
        for stem in self.source_stems:
            stem.build(0, stem.waiting)

    def make_states(self) -> None:
        """Rebuild the intermediate states from rows that were loaded and committed."""
        tree, base = self.plan.tree, self.source_stems
        if not self.plan.materialised:
            return
        for stem in self.stems[len(base) :]:
            stem.free()
        self.stems[:] = base
        self.plan = plan_of(self._query, owners=self.plan.owners)
        self.eddy.change(self.plan)
        self.set_plan(tree)

    def regroup(self) -> None:
        """Tuples that stand for several are made again: other rows than before are told apart (`tracked`)."""
        if self.plan.grouped:
            self.give_up()
            self.make_states()

    def forget(self, groups: Ints) -> int:
        """All rows of these groups leave the SteMs; returns how many. A migration ends: the rows that it moved have
        other numbers."""
        kept = {source: self._without(stem, groups) for source, stem in enumerate(self.source_stems)}
        kept = {source: rows for source, rows in kept.items() if rows.size < self.stems[source].held}
        gone = sum(self.stems[source].held - rows.size for source, rows in kept.items())
        if not gone:
            return 0
        self.give_up()
        owners, stems = self.plan.owners, self.stems
        renumbered = {
            source: stems[source].retain(rows, {}) for source, rows in kept.items() if stems[source].owns_rows
        }
        renumbered |= {source: renumbered[owners[source]] for source in kept}
        for source, rows in kept.items():
            self._kept.moved[source] += rows.size
            if self.tracked is not None:
                self.tracked.renumber(source, rows, self.stems[source].built)
        if self.plan.grouped:  # a tuple may stand for rows of several groups
            self.make_states()
            return gone
        for stem in self.stems[len(self._query.sources) :]:
            live = np.arange(stem.rows.min_live, stem.built)
            for source, numbers in renumbered.items():
                if source in stem.rows.components:
                    of_source = stem.rows.components[source].values[live]
                    live = live[of_source >= numbers.first]
                    of_source = of_source[of_source >= numbers.first]
                    live = live[numbers.of(of_source) >= 0]
            stem.retain(live, renumbered)
        return gone

    @staticmethod
    def _without(stem: SteM, groups: Ints) -> Ints:
        """The live rows that are in none of these groups."""
        return stem.rows.outside(slice(stem.rows.min_live, stem.built), groups)

    def turn_to(self, new: NewPlan) -> bool:
        """Begin to change the plan, or change it at once; returns whether it is changed. Ends a migration to another
        plan."""
        self.give_up()
        if new.tree == self.plan.tree:
            return False
        if new.how == "at once":
            self.set_plan(new.tree, new.predicted)
            return True
        self.migrate(new.tree, new.how == "parallel track", predicted=new.predicted)
        return False

    def set_plan(self, tree: Tree, predicted: Mapping[str, float] | None = None) -> None:
        """Change the plan at once, however long that takes."""
        moving = self.migrate(tree, parallel=False, predicted=predicted)
        moving.step(math.inf)  # no row arrives meanwhile
        moving.end_batch()
        moving.commit(Cut(None, -FOREVER, None))
        self.change_plan()

    def migrate(
        self,
        tree: Tree,
        parallel: bool,
        first: Sequence[int] | None = None,
        predicted: Mapping[str, float] | None = None,
    ) -> Migration:
        """Begin to change the plan while batches go on. `first` is passed for a migration from a snapshot."""
        self.give_up()
        reach("migration: before it begins")
        state = self._arena, self.eddy, self.stems
        self.migration = Migration(
            *state, tree, parallel, self._settings, self.rows_windows, first, self._tuning.migration
        )
        self.migration.predicted = predicted or {}
        reach("migration: it has begun")
        return self.migration

    def give_up(self) -> None:
        """Give up the migration, if there is one; the current plan stays."""
        if self.migration is not None:
            self.migration.free()
            self.migration = None

    def finish(self) -> bool:
        """Change the plan if the migration to it is ready; returns whether it is changed."""
        if self.migration is None or not self.migration.is_ready:
            return False
        self.change_plan()
        return True

    def change_plan(self) -> None:
        """Change to the plan of the migration, which is ready; everything is committed."""
        assert self.migration is not None
        reach("migration: before the plan is changed")
        self.migration.exchange(self.stems)
        self.eddy.decisions.add(self.migration.decision)
        self.plan, self.migration = self.migration.plan, None
        self.eddy.change(self.plan)
        reach("migration: the plan is changed")

    @property
    def course(self) -> PlanCourse:
        """The current plan, and the migration to another plan."""
        moving = self.migration
        to = None if moving is None else Toward(moving.plan.text, moving.parallel, moving.moved)
        return PlanCourse(self.plan.text, to)

    def resume(self, course: PlanCourse) -> None:
        """Take the course of a slot whose state was lost: the rows that its migration had moved are moved again."""
        aliases = [s.alias for s in self._query.sources]
        self.set_plan(parse_tree(course.plan, aliases))
        if course.to is not None:
            self.migrate(parse_tree(course.to.plan, aliases), course.to.parallel)
