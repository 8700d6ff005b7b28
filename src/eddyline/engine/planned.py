"""What a slot has under a plan, and how it comes to have another: SteMs, the eddy over them, a migration.

A plan changes between a commit and the next batch (`replan`), at once or by a migration that goes on in the batches
between (migration/migration.py). Nothing here knows where rows come from or what becomes of results.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from eddyline.engine.planner import Planner
from eddyline.faults import reach
from eddyline.migration.migration import Migration
from eddyline.plan.grouped import check
from eddyline.plan.plan import plan_of
from eddyline.plan.tree import Tree, parse_tree, shape, ungrouped
from eddyline.query.evaluate import ErrorCount
from eddyline.query.model import Query, WindowKind
from eddyline.routing.eddy import Eddy
from eddyline.routing.packet import Packet
from eddyline.routing.rows_windows import Clock
from eddyline.settings import Settings
from eddyline.state.arena import Arena
from eddyline.state.shelf import Saved
from eddyline.state.stem import SteM


class Planned:
    """A slot is one."""

    def __init__(
        self, query: Query, settings: Settings, arena: Arena, clock: Callable[[], float], tree: Tree | None
    ) -> None:
        """`tree` is the shape to begin with, if it is not what the settings say."""
        self.arena, self._settings, sources = arena, settings, query.sources
        asked = shape(settings.plan, [s.alias for s in sources])
        check(query, asked)
        self._wanted, tree = None if settings.plan == "auto" else asked, tree or asked
        self.query, self.plan, self.errors = query, plan_of(query, tree), ErrorCount()
        self.stems = [SteM(arena, layout) for layout in self.plan.layouts]
        """Those of the sources, then the intermediate ones."""
        self._clocks = {
            i: Clock(arena, s.window.size) for i, s in enumerate(sources) if s.window.kind is WindowKind.ROWS
        }
        self.eddy = Eddy(self.plan, self.stems, self._clocks, settings, self.errors, self._complete, clock)
        wanted_plan = settings.plan == "auto" and settings.optimizer != "off" and len(sources) > 2
        self._cpu = time.thread_time if clock is time.perf_counter else clock
        """CPU seconds: what else the machine does is no fault of a plan. A clock that was given stands for both."""
        self.planner = Planner(self.plan, settings, self._cpu) if wanted_plan else None
        self._spent = 0.0
        """CPU seconds for what was fed since the last batch, less those for a migration."""
        self.migration: Migration | None = None
        """To another plan, while it goes on."""
        self._pause = math.inf if settings.pause_ms is None else settings.pause_ms / 1000

    def _complete(self, packet: Packet) -> None:
        """Tuples that are whole."""
        raise NotImplementedError

    @property
    def _base_stems(self) -> list[SteM]:
        return self.stems[: len(self.query.sources)]

    @property
    def built(self) -> list[int]:
        """Rows built so far, by source."""
        return [stem.built for stem in self._base_stems]

    # Plan

    def replan(self) -> None:
        """Between a commit and the next batch: take another plan, if there is one that pays, or the one that was asked
        for, if the state is of another."""
        moving, wanted = self.migration, self._wanted
        if moving is not None and wanted in (None, moving.plan.tree):
            if moving.is_ready:
                moving.duration = 0.0 if self.planner is None else self.planner.optimizer.since
                self.change_plan()
            return
        tree, move = None if wanted == self.plan.tree else wanted, None
        if wanted is None and self.planner is not None and self.plan.grouped:  # the optimizer knows of no weights
            tree = ungrouped(self.plan.tree)
        elif wanted is None and self.planner is not None:
            move = self.planner.propose(self.plan, self._base_stems, self.eddy)
            tree = None if move is None else move.tree
        if tree is None:
            return
        at_once, asked = self._settings.pause_ms is None, self._settings.migration == "parallel-track"
        self.migrate(tree, parallel=not at_once and (asked if move is None else move.parallel))
        assert self.migration is not None
        self.migration.predicted = {} if move is None else move.figures
        if at_once:
            self._move_all()
            self.change_plan()

    def set_plan(self, tree: Tree) -> None:
        """Take another shape at once, between a commit and the next batch, however long it takes."""
        self.migrate(tree, parallel=False)
        self._move_all()
        self.change_plan()

    def migrate(self, tree: Tree, parallel: bool, first: Sequence[int] | None = None) -> None:
        """Begin to take another shape while batches go on, between a commit and the next batch. `first` is from a slot
        that was saved."""
        self.give_up()
        reach("migration: before it begins")
        state = self.arena, self.eddy, self.stems
        self.migration = Migration(*state, tree, parallel, self._settings, self._clocks, first)
        reach("migration: it has begun")

    @property
    def course(self) -> Saved:
        """The plan of now, and the one that it is on the way to, by which strategy and how far."""
        moving = self.migration
        to = None if moving is None else {"plan": moving.plan.text, "parallel": moving.parallel, "moved": moving.moved}
        return {"plan": self.plan.text, "to": to}

    def resume(self, course: Saved) -> None:
        """Take the course that a slot whose state was lost had: what was moved then is moved again."""
        aliases = [s.alias for s in self.query.sources]
        self.set_plan(parse_tree(course["plan"], aliases))
        if course["to"] is not None:
            self.migrate(parse_tree(course["to"]["plan"], aliases), course["to"]["parallel"])

    def give_up(self) -> None:
        """The plan of now stays."""
        if self.migration is not None:
            self.migration.free()
            self.migration = None

    def _move_all(self) -> None:
        """Nothing comes meanwhile."""
        assert self.migration is not None
        self.migration.step(math.inf)
        self.migration.expire()
        self.migration.commit()

    def change_plan(self) -> None:
        """The migration is ready, and all is committed."""
        assert self.migration is not None
        reach("migration: before the plan is changed")
        self.migration.adopt(self.stems)
        self.eddy.decisions.add(self.migration.decision)
        self.plan, self.migration = self.migration.plan, None
        self.eddy.change(self.plan)
        if self.planner is not None:
            self.planner.go_on(self._base_stems, self.eddy)
        reach("migration: the plan is changed")

    def _make_states(self) -> None:
        """Intermediate results, of which there are none, of rows that were loaded: as if there had been none to keep
        before."""
        tree, base = self.plan.tree, self._base_stems
        for stem in self.stems[len(base) :]:
            stem.free()
        self.stems[:] = base
        self.plan = plan_of(self.query)
        self.eddy.change(self.plan)
        self.set_plan(tree)

    # In a batch

    def _move_some(self, seconds: float, built: int) -> None:
        """After a slice of the input, which took so long and had so many rows: the migration goes on for as long, and
        for twice as many, so it ends."""
        if self.migration is not None:
            reach("migration: before a step")
            aside = self._cpu()
            self.migration.step(min(self._pause, seconds), least=2 * built)
            self._spent -= self._cpu() - aside

    def _track_has_more(self) -> bool:
        """Drain the track at the end of a batch; whether the plan of now has something to do with what came."""
        if self.migration is None:
            return False
        aside = self._cpu()
        more = self.migration.flush()
        self._spent -= self._cpu() - aside
        return more
