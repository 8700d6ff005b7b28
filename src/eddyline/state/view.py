"""Another look at a SteM: its rows from `first` on, as far as somebody else has built them, in an order of their own.

The columns and indexes are those of the SteM. Indexes that it has not are made here, as rows are built, and can become
its own (`SteM.adopt`).
"""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.query.expr import Expr
from eddyline.state.arena import Arena
from eddyline.state.column import Column
from eddyline.state.hash_index import HashIndex
from eddyline.state.shelf import Saved
from eddyline.state.stem import SteM


class View(SteM):
    """Look again (`look`) whenever the SteM may have changed. A view of which nobody builds rows (`fed` is false) shows
    all that the SteM has built."""

    def __init__(self, arena: Arena, stem: SteM, indexes: Sequence[tuple[Expr, ...]], first: int, fed: bool) -> None:
        self.__dict__.update(stem.__dict__)
        self._stem, self.first, self.fed = stem, first, fed
        self._build_numbers, self._build_firsts = Column(arena, "i8"), Column(arena, "i8")
        self.made = {on: HashIndex(arena, self._key_column(on)) for on in indexes if not stem.is_indexed_by(on)}
        """The indexes that only the view has."""
        for index in self.made.values():
            index.release(first)
        self.rows = self._mark = first
        self.look()

    def look(self) -> None:
        """See what the SteM is now. What expired before it was built here is passed over."""
        stem = self._stem
        self._committed, self._sorts = stem._committed, stem._sorts
        self.min_live = max(self.first, stem.min_live)
        self._hashed = {**stem._hashed, **self.made}
        floor = stem._committed.min_live
        self._mark = max(self._mark, floor)
        self.rows = max(self.rows, floor) if self.fed else stem.rows
        if not self.fed:  # what was built is noted again when it is asked for: a region may not be known to be new
            self._build_firsts.truncate(0)

    @property
    def behind(self) -> int:
        """Rows that are not built here."""
        return self._stem.rows - self.rows

    def _add_to_indexes(self, first: int, last: int) -> None:
        for index in self.made.values():
            index.build(first, last, self._committed.min_live)

    def commit(self) -> None:
        """As the SteM, after it."""
        for index in self.made.values():
            index.release(self._stem.min_live)
        self.look()
        self._mark = self.rows
        self._forget_builds()

    def wind_back(self) -> None:
        """As the SteM, before it."""
        for index in self.made.values():
            index.pop(self._mark)
        self.rows = self._mark
        self._forget_builds()

    def free(self) -> None:
        """Give back what only the view has."""
        for index in self.made.values():
            index.free()
        self.let_go()

    def let_go(self) -> None:
        """The indexes have become those of the SteM."""
        self._build_numbers.free()
        self._build_firsts.free()

    def saved(self) -> Saved:
        builds = self._build_numbers.saved(), self._build_firsts.saved()
        return [self.first, self.rows, self._mark, builds, [index.saved() for index in self.made.values()]]

    def restore(self, saved: Saved) -> None:
        self.first, self.rows, self._mark, (numbers, firsts), made = saved
        self._build_numbers.restore(numbers)
        self._build_firsts.restore(firsts)
        for index, of_index in zip(self.made.values(), made, strict=True):
            index.restore(of_index)
        self._forget_builds()
        self.look()

    @property
    def nbytes(self) -> int:
        return sum(index.nbytes for index in self.made.values())
