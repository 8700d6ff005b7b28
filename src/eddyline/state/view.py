"""A view: the rows of a SteM from a first row on, built a second time, in an order of the view's own.

The rows are those of the SteM, and so are the indexes that the SteM has. The view makes the other indexes as it builds
rows, and the SteM can adopt them (`SteM.adopt`). A view is committed after its SteM and wound back before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.codec import Snapshot
from eddyline.state.arena import Arena
from eddyline.state.builds import Builds, BuildsSnapshot, Unordered
from eddyline.state.indexes import Indexes, IndexesSnapshot
from eddyline.state.layout import Key
from eddyline.state.prober import Prober
from eddyline.state.stem import SteM


class ViewSnapshot(Snapshot, frozen=True):
    """The state that only the view has."""

    first: int
    builds: BuildsSnapshot
    made: IndexesSnapshot


class View:
    """Shows the rows that are built in the view. If no rows are built in it (`fed` is false), it shows the rows that
    the SteM has built: the track gets such rows only as components of larger tuples."""

    def __init__(self, arena: Arena, stem: SteM, keys: Sequence[Key], first: int, fed: bool) -> None:
        """`keys` are those of the wanted hash indexes."""
        self._stem, self.rows = stem, stem.rows
        self.made = Indexes(arena, stem.rows, [on for on in keys if on not in stem.indexes.hashed])
        """The indexes that only the view has."""
        self.made.release(first)
        self._builds = Builds(first)
        self._builds.skip(stem.rows.floor)
        hashed = {**stem.indexes.hashed, **self.made.hashed}
        shown = self._builds if fed else Unordered(stem.builds)
        self.prober = Prober(stem.rows, hashed, stem.indexes.ordered, shown, first)

    @property
    def built(self) -> int:
        """The first row that is not built here."""
        return self._builds.rows

    @property
    def behind(self) -> int:
        """How many rows the SteM has built and the view has not."""
        return self._stem.built - self.built

    def build(self, number: int, rows: int) -> tuple[int, int]:
        """Index the next `rows` rows, after the track has built `number` tuples; returns their numbers
        first..last-1."""
        self.made.build(self.built, self.built + rows, self.rows.floor)
        return self._builds.add(number, rows)

    def commit(self) -> None:
        """Commit after the SteM. Rows that expired before they were built here are skipped."""
        self.made.release(self.rows.min_live)
        self._builds.skip(self.rows.floor)
        self._builds.commit()

    def wind_back(self) -> None:
        """Wind back before the SteM."""
        self.made.pop(self._builds.mark)
        self._builds.wind_back()

    def free(self) -> None:
        """Release everything that only the view has."""
        self.made.free()

    def saved(self) -> ViewSnapshot:
        """A snapshot for another process, at the end of a batch."""
        return ViewSnapshot(self.prober.first, self._builds.saved(), self.made.saved())

    def restore(self, saved: ViewSnapshot) -> None:
        """Restore from a snapshot, after the SteM."""
        self.prober.first = saved.first
        self._builds.restore(saved.builds)
        self._builds.skip(self.rows.floor)
        self.made.restore(saved.made)

    @property
    def nbytes(self) -> int:
        """Bytes held in addition to those of the SteM."""
        return self.made.nbytes
