"""The SteM: the rows of one source, or (an intermediate SteM) the tuples of a larger span; built once, probed many
times.

A SteM composes four parts, each in a file of its own: its rows in columns (rows.py), the count and order of its builds
(builds.py), the indexes by which rows are found (indexes.py), and the prober through which other code reads it
(prober.py).

Rows are appended as they arrive, many at a time. They are built in the same order when the eddy wants them; building
indexes them, and from then on probes find them. The rows from `built` to `rows.stored` wait. All rows are built before
a commit.

Several aliases of a stream may keep their rows in one SteM, that of their *owner* (plan/sharing.py). Each alias then
has builds and a prober of its own over the rows and indexes of the owner: it finds exactly the rows that were built for
it. A row is indexed when the first alias builds it. It is above every bound for the other aliases until they build it
too (`Builds.before`). The owner is expired, committed and wound back for all of them.

Wind-back: `wind_back` pops every index, the newest rows first, and drops the rows appended since the last commit. No
expired row is released before the commit, so expiry is undone by lowering `min_live`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eddyline.bound.expr import of_source
from eddyline.codec import Snapshot
from eddyline.errors import InternalError
from eddyline.state.arena import Arena
from eddyline.state.builds import Builds, BuildsSnapshot
from eddyline.state.column import RowNumbers
from eddyline.state.hash_index import HashIndex
from eddyline.state.indexes import Indexes, IndexesSnapshot
from eddyline.state.layout import Key, Layout
from eddyline.state.prober import Prober
from eddyline.state.row_groups import RowGroups
from eddyline.state.rows import Renumbered, Rows, RowsSnapshot


class StemSnapshot(Snapshot, frozen=True):
    """The rows of a SteM, how many of them are built, and its indexes."""

    rows: RowsSnapshot | None
    """None if they are those of another SteM, and so are the indexes."""
    builds: BuildsSnapshot
    indexes: IndexesSnapshot


class SteM:
    """The State Module of one span."""

    def __init__(
        self,
        arena: Arena,
        layout: Layout,
        groups: RowGroups | None = None,
        owner: tuple[int, SteM] | None = None,
    ) -> None:
        """With `groups` every row has a partition group. `owner` is the number of another source, and its SteM with the
        same layout (`together`): the rows and indexes are those."""
        self.layout, self.builds = layout, Builds()
        self.owns_rows = owner is None
        """Whether its rows are not those of another SteM."""
        order_keys = layout.order_keys if layout.probed else ()
        if owner is None:
            self.rows = Rows(arena, layout, groups)
            self.indexes = self._inserted = Indexes(arena, self.rows, layout.indexes, order_keys)
            self._orders = [self.builds]
            """The builds of all aliases."""
        else:
            source, stem = owner
            self.rows, self._inserted, self._orders = stem.rows, stem.indexes, stem._orders
            self._orders.append(self.builds)
            self.rows.add_names(layout, source)
            keys = {on: tuple(of_source(e, source) for e in on) for on in layout.indexes}
            self.indexes = stem.indexes.named(keys, {e: of_source(e, source) for e in order_keys})
        self.prober = Prober(self.rows, self.indexes.hashed, self.indexes.ordered, self.builds)

    @property
    def built(self) -> int:
        """How many rows are built, including those that have expired."""
        return self.builds.rows

    @property
    def held(self) -> int:
        """How many rows are built and have not expired."""
        return self.builds.rows - self.rows.min_live

    @property
    def waiting(self) -> int:
        """How many rows are stored and not built."""
        return self.rows.stored - self.builds.rows

    @property
    def growth(self) -> float:
        """Bytes by which the SteM grows between two commits, if what comes and expires is as since the last one."""
        gone = self.rows.min_live - self.rows.floor
        return self.added - gone * self.row_bytes

    @property
    def added(self) -> float:
        """Bytes of the rows that were built since the last commit."""
        return (self.builds.rows - self.builds.mark) * self.row_bytes

    @property
    def row_bytes(self) -> float:
        """The bytes that a row takes on average, its share of the indexes included."""
        return self.nbytes / max(1, self.rows.stored - self.rows.floor)

    def build(self, number: int, rows: int) -> tuple[int, int]:
        """Index the next `rows` stored rows, after the slot has built `number` tuples; returns their numbers
        first..last-1."""
        indexed, last = max(builds.rows for builds in self._orders), self.builds.rows + rows
        if last > indexed:
            self._inserted.build(indexed, last, self.rows.floor)
        return self.builds.add(number, rows)

    # Other indexes, when the plan is changed

    def fits(self, layout: Layout) -> bool:
        """Whether it has everything that another layout needs, except indexes that can be made over its keys."""
        return layout.order_keys == self.layout.order_keys and all(map(self.rows.has_key, layout.indexes))

    def adopt(self, keys: Sequence[Key], made: Mapping[Key, HashIndex]) -> None:
        """At a commit, change to the hash indexes of these keys; `made` has the new ones. Where aliases share the SteM,
        these are always the same."""
        if len(self._orders) > 1:
            assert tuple(keys) == self.layout.indexes
            return
        self.indexes.adopt(keys, made)
        if self.layout.components:
            self.rows.drop_keys(keys)
        self.layout = replace(self.layout, indexes=tuple(keys))

    # Forget rows: only between a commit and the next batch

    def retain(self, rows: RowNumbers, renumbered: Mapping[int, Renumbered]) -> Renumbered:
        """Keep only these rows of those that live, under new numbers (`Rows.retain`). Only for a SteM that owns its
        rows."""
        first = self.built
        found = self.rows.retain(rows, renumbered)
        self.indexes.renew(found.first, found.numbers, first + rows.size)
        for builds in self._orders:
            builds.add(0, rows.size)
            builds.commit()
        return found

    # Expire, commit, wind back, hand over

    def expire(self, horizon: int) -> None:
        """Expire rows with a time below `horizon`: they cannot join any more."""
        self.rows.expire(horizon, self.built)

    def expire_ordinals(self, least: int) -> None:
        """Expire rows whose ordinal in the stream is below `least`: they are in no window any more."""
        self.rows.expire_ordinals(least, self.built)

    def expire_before(self, row: int) -> None:
        """Expire all rows before this one."""
        self.rows.min_live = max(self.rows.min_live, row)

    def expire_tuples(self, stems: Sequence[SteM]) -> None:
        """Expire tuples with an expired component. Call it after the SteMs of the sources have expired their rows."""
        self.rows.expire_tuples([stem.rows for stem in stems], self.built)

    def commit(self) -> None:
        """Release expired rows. Events before this commit cannot be undone any more."""
        if self.owns_rows:
            self.indexes.release(self.rows.min_live)
            self.rows.commit()
        self.builds.commit()

    def wind_back(self) -> None:
        """Undo everything since the last commit."""
        if self.owns_rows:
            self.indexes.pop(self.builds.mark)
            self.rows.wind_back(self.builds.mark)
        self.builds.wind_back()

    def free(self) -> None:
        """Release everything; the SteM cannot be used any more. Only for a larger span."""
        self.indexes.free()
        self.rows.free()

    def saved(self) -> StemSnapshot:
        """A snapshot for another process, at the end of a batch."""
        if not self.owns_rows:
            return StemSnapshot(None, self.builds.saved(), IndexesSnapshot((), ()))
        return StemSnapshot(self.rows.saved(), self.builds.saved(), self.indexes.saved())

    def restore(self, saved: StemSnapshot) -> None:
        """Restore from a snapshot."""
        if (saved.rows is None) == self.owns_rows:
            raise InternalError("the snapshot is of a SteM that shares its rows in another way")
        self.builds.restore(saved.builds)
        if saved.rows is not None:
            self.rows.restore(saved.rows)
            self.indexes.restore(saved.indexes)

    @property
    def nbytes(self) -> int:
        """Bytes held; those of shared rows count for their owner."""
        return self.rows.nbytes + self.indexes.nbytes if self.owns_rows else 0
