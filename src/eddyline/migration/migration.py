"""A migration: builds the states of a new plan beside those of the running plan, until the running plan can be dropped.

Both strategies run the operators in which the plans differ on a second eddy, the *track*, over the same rows. The track
has views of the SteMs that both plans keep, and SteMs of its own for the states that only the new plan has. Old and new
rows are told apart by their row numbers. If the tuples of a state have passed fewer selections in the old plan, the
track has a view of that state too: its tuples start with their old signature, pass the missing selections, and are
built into the SteM of the new plan, where they may be grouped (see boxes.py).

- *Moving state* builds the live rows of the views in the track, a slice at a time between packets of the running plan:
  first the rows that are there, then those that have arrived meanwhile. The running plan makes all results, so nothing
  leaves the track. When the track has caught up, the plan can be changed.
- *Parallel track* builds only rows that arrive after its start. Its results, tuples of new rows only, go to the running
  plan, which drops the same tuples from its own output (`Scope.own`). So each result is made exactly once, by one of
  the two. When no old row is live any more, the states of the new plan are complete, and the plan can be changed.

A plan is changed between a commit and the next batch, when nothing is in flight. Until then the migration is committed
and wound back together with the slot. Results never depend on it: if its state is lost, the slot continues with the old
plan, and may begin the migration again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from eddyline.bound.evaluate import ErrorCount
from eddyline.codec import Snapshot
from eddyline.migration.boxes import boxes
from eddyline.migration.tuning import DEFAULT, MigrationTuning
from eddyline.plan.plan import plan_of
from eddyline.plan.tree import Tree, state_of
from eddyline.routing.decisions import Decision
from eddyline.routing.eddy import Eddy
from eddyline.routing.packet import Packet
from eddyline.routing.rows_windows import RowsWindow
from eddyline.routing.scope import OldRows, Scope, whole
from eddyline.settings import Settings
from eddyline.state.arena import Arena
from eddyline.state.part import Cut, Part
from eddyline.state.stem import SteM, StemSnapshot
from eddyline.state.view import View, ViewSnapshot


class MigrationSnapshot(Snapshot, frozen=True):
    """A migration under way: its progress, and its state beside that of the running plan."""

    views: tuple[ViewSnapshot, ...]
    stems: tuple[StemSnapshot, ...]
    moved: int
    batches: int
    seconds: float
    longest: float
    predicted: Mapping[str, float]


class Migration(Part):
    """The change from the plan that an eddy runs to another plan."""

    name, snapshot = "migration", MigrationSnapshot

    def __init__(
        self,
        arena: Arena,
        eddy: Eddy,
        stems: Sequence[SteM],
        tree: Tree,
        parallel: bool,
        settings: Settings,
        rows_windows: Mapping[int, RowsWindow],
        first: Sequence[int] | None = None,
        tuning: MigrationTuning = DEFAULT,
    ) -> None:
        """`stems` are those of the running plan. `first` is set if another process began the parallel track: the first
        new row of each source."""
        query, old = eddy.plan.query, eddy.plan
        self.plan, self.parallel = plan_of(query, tree, owners=old.owners), parallel
        self._eddy, self._stems = eddy, stems
        self.boxes = boxes(old.tree, tree, old.selections)
        self._sources = len(query.sources)
        self._streams = [s for s in range(self._sources) if not query.sources[s].stream.is_table]
        new = (stem.built for stem in stems[: self._sources])
        self.first = list(first or new)
        """The first new row of each source."""
        filtered = {span for b in self.boxes for span in b.filtered}
        streams = sum(1 << s for s in self._streams)
        tops = {b.top for b in self.boxes if b.top & streams} - filtered  # a table has no new rows
        leaves = {leaf for b in self.boxes for leaf in b.leaves}
        fresh = {span for b in self.boxes for span in b.fresh}
        held = {state_of(t): stem for t, stem in zip(old.materialised, stems[self._sources :], strict=True)}
        held |= {1 << s: stems[s] for s in range(self._sources)}
        self._spans = [*(1 << s for s in range(self._sources)), *map(state_of, self.plan.materialised)]
        """The state of each SteM of the new plan (`state_of`)."""
        self._views: dict[int, View] = {}
        self._own: dict[int, SteM] = {}
        track: list[SteM | View] = []
        for span, layout in zip(self._spans, self.plan.layouts, strict=True):
            stem = held.get(span)
            own = stem is None or span in fresh or span in filtered or not stem.fits(layout)
            if stem is not None and (span in leaves or not layout.components):
                indexes = () if own else layout.indexes
                self._views[span] = View(arena, stem, indexes, self._begin(span, stem), span in leaves)
            if stem is None or own:
                self._own[span] = stem = SteM(arena, layout)
                track.append(stem)
            else:
                track.append(self._views.get(span, stem))
        track += [view for view in self._views.values() if view.rows.carried is not None and view not in track]
        self._order = sorted(leaves, key=lambda leaf: (held[leaf].layout.timed, -held[leaf].held))
        """The leaves: those of tables first, as in the running plan, then the largest: tuples of the leaf that is built
        first find no matches."""
        self._handed: list[Packet] = []
        give = self._handed.append if parallel else _forget
        scope = Scope(
            given=frozenset(tops if parallel else ()),
            operators=frozenset(span if span > 0 else ~span for span in (fresh | tops if parallel else fresh)),
            filters=frozenset(filtered),
            past=not parallel,
        )
        told = give, eddy.clock, scope, eddy.tuning, eddy.tracked
        self._track = Eddy(self.plan, track, rows_windows, settings, ErrorCount(), *told)
        if parallel:
            old_rows = OldRows({s: self.first[s] for s in self._streams})
            eddy.enter(replace(whole(eddy.plan), old=old_rows, shared=scope.given))
        self._came = self._came_before = self._there
        """Rows and tuples that the leaves had at the last step, and at the last commit."""
        self.predicted: Mapping[str, float] = {}
        """The costs that the optimizer estimated when it proposed the migration (optimizer/migration_costs.py)."""
        self.duration = 0.0
        """How long the migration has taken, in seconds of event time; 0 if unknown."""
        self._chunk = tuning.chunk
        self.moved, self.batches, self.seconds, self.longest = 0, 0, 0.0, 0.0
        """Rows and tuples built in views, batches gone by, the total time, and the longest time of one step."""

    def _begin(self, span: int, stem: SteM) -> int:
        """The first row of a stem that the track sees."""
        if not self.parallel or not stem.layout.timed:  # tables are neither old nor new
            return stem.rows.min_live
        return stem.built if stem.layout.components else self.first[span.bit_length() - 1]

    # Progress

    def step(self, seconds: float, least: int = 0) -> None:
        """Work for `seconds`, or until nothing is left to do. In any case move at least `least` rows, and at least
        twice as many as the leaves got since the last step: otherwise rows could arrive faster than they are moved. A
        parallel track does not stop before it has caught up with the running plan."""
        begin = self._eddy.clock()
        until = math.inf if self.parallel else begin + seconds
        came = self._there
        least, self._came = self.moved + max(least, 2 * (came - self._came)), came
        while (leaf := self._behind) is not None:
            view = self._views[leaf]
            rows = min(view.behind, self._chunk)
            self._track.start(view, self._eddy.plan.signature(leaf), rows)
            self.moved += rows
            self._track.flush(until)
            if self._eddy.clock() >= until and self.moved >= least:
                break
        self._hand_over()
        self._took(begin)

    def _took(self, begin: float) -> None:
        took = self._eddy.clock() - begin
        self.seconds += took
        self.longest = max(self.longest, took)

    def flush(self) -> bool:
        """Finish all tuples in flight at the end of a batch; returns whether the running plan has work to do as a
        result. Rows that the running plan has made since the last step are moved too: otherwise some would always be
        left."""
        if self.parallel:
            self.step(math.inf)
        else:
            if self._there > self._came:
                self.step(0.0)
            begin = self._eddy.clock()
            self._track.flush()
            self._took(begin)
        return not self._eddy.is_idle

    def _hand_over(self) -> None:
        """Pass the track's results to the running plan. It is not probing at this moment, so it may build them."""
        for packet in self._handed:
            self._eddy.take_over(packet)
        self._handed.clear()

    @property
    def _behind(self) -> int | None:
        """A leaf with rows that are not built here yet; None if there is no such leaf."""
        return next((leaf for leaf in self._order if self._views[leaf].behind), None)

    @property
    def _there(self) -> int:
        """Rows and tuples of all leaves, built here or not."""
        return sum(self._views[leaf].built + self._views[leaf].behind for leaf in self._order)

    @property
    def is_ready(self) -> bool:
        """Whether the plan can be changed as soon as nothing is in flight and everything is committed."""
        if self._behind is not None:
            return False
        return not self.parallel or all(self._stems[s].rows.min_live >= self.first[s] for s in self._involved)

    @property
    def _involved(self) -> list[int]:
        spans = 0
        for box in self.boxes:
            spans |= box.top
        return [s for s in self._streams if spans >> s & 1]

    @property
    def decision(self) -> Decision:
        """The outcome of a migration that is ready, for the report."""
        how, took = "parallel track" if self.parallel else "moving state", f"{self.seconds:.3g} s"
        what = f"{self._eddy.plan.text} -> {self.plan.text} by {how}"
        batches = f"{self.batches} batch{'es' * (self.batches != 1)}"
        why = f"{self.moved:,} rows in {batches} and {took}, with a longest pause of {1000 * self.longest:.3g} ms"
        measured = {"rows": self.moved, "batches": self.batches, "seconds": self.seconds, "longest": self.longest}
        measured |= {"tuples": self.state_rows, "bytes": self.state_bytes}
        measured["duration"] = self.duration
        measured |= {f"predicted {name}": value for name, value in self.predicted.items()}
        return Decision("migration", self._eddy.work.moment, what, why, measured, self.predicted)

    # Ends

    def exchange(self, stems: list[SteM]) -> None:
        """Replace `stems`, those of the slot, by those of the new plan. The caller then changes its eddy to the new
        plan."""
        old = dict(zip(map(state_of, self._eddy.plan.materialised), stems[self._sources :], strict=True))
        old |= {1 << s: stems[s] for s in range(self._sources)}
        for span, layout in zip(self._spans, self.plan.layouts, strict=True):
            if span not in self._own:
                old[span].adopt(layout.indexes, self._views[span].made.hashed if span in self._views else {})
        stems[:] = [self._own[span] if span in self._own else old.pop(span) for span in self._spans]
        for stem in old.values():
            stem.free()

    def free(self) -> None:
        """Give the migration up: the old plan continues."""
        for part in self._parts:
            part.free()
        self._eddy.enter(whole(self._eddy.plan))

    # With the slot

    @property
    def _parts(self) -> list[SteM | View]:
        """Views and SteMs of the migration, beside the SteMs of the running plan."""
        return [*self._views.values(), *self._own.values()]

    def end_batch(self) -> None:
        """Expire tuples. Call it after the slot's SteMs have expired theirs."""
        for stem in self._own.values():
            stem.expire_tuples(self._stems)

    def commit(self, cut: Cut) -> None:
        """Commit. Call it after the slot's SteMs are committed."""
        self.batches += 1
        self._came_before = self._came
        for part in self._parts:
            part.commit()

    def wind_back(self) -> None:
        """Wind back to the last commit. Call it before the slot's SteMs are wound back."""
        for part in self._parts:
            part.wind_back()
        self._came = self._came_before
        self._track.clear()
        self._handed.clear()

    @property
    def state_bytes(self) -> int:
        """Bytes held beside those of the running plan."""
        return sum(part.nbytes for part in self._parts)

    @property
    def state_rows(self) -> int:
        """Tuples held beside those of the running plan."""
        return sum(stem.held for stem in self._own.values())

    def saved(self) -> MigrationSnapshot:
        """A snapshot for another process, at the end of a batch."""
        return MigrationSnapshot(
            views=tuple(view.saved() for view in self._views.values()),
            stems=tuple(stem.saved() for stem in self._own.values()),
            moved=self.moved,
            batches=self.batches,
            seconds=self.seconds,
            longest=self.longest,
            predicted=dict(self.predicted),
        )

    def restore(self, saved: MigrationSnapshot) -> None:
        """Restore from a snapshot."""
        for view, of_view in zip(self._views.values(), saved.views, strict=True):
            view.restore(of_view)
        for stem, of_stem in zip(self._own.values(), saved.stems, strict=True):
            stem.restore(of_stem)
        self.moved, self.batches, self.seconds, self.longest = saved.moved, saved.batches, saved.seconds, saved.longest
        self.predicted = saved.predicted
        self._came = self._came_before = self._there


def _forget(packet: Packet) -> None:
    """Drop a packet whose results the running plan has already made."""
