"""Rows of the log, as a sweep takes them.

Most rows that a sweep reads are in no result: other sources do not have their key. So a sweep looks at keys first, and
only the rows that match are copied out of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.kernels.matches import find, mark

Ints = NDArray[np.int64]
Codes = NDArray[np.uint32]
T = TypeVar("T", bound=np.generic)

_CELLS = 8
"""So many cells for each row of the largest source: one of eight rows that do not match is taken for one that does."""
_SOURCES, _NEW = 7, 1 << 7
"""A cell has a bit for each of the first sources, and one for new rows."""


@dataclass(frozen=True)
class LoggedRows:
    """Rows of one source in the log, their groups, and the epochs in which they came."""

    stored: pa.RecordBatch
    """They and other rows, as they are in the log."""
    groups: Ints
    came: Ints
    chosen: Ints | None = None
    """Their numbers among the stored rows; None: they are all."""
    places: Ints | None = None
    """Their places in their stream, for a source with a ROWS window."""

    @property
    def batch(self) -> pa.RecordBatch:
        """The rows alone."""
        return self.stored if self.chosen is None else self.stored.take(pa.array(self.chosen))

    @property
    def copied(self) -> LoggedRows:
        """The same rows, without the others with which they are stored."""
        return self if self.chosen is None else LoggedRows(self.batch, self.groups, self.came, None, self.places)

    def of_them(self, values: NDArray[T]) -> NDArray[T]:
        """Of values of the stored rows, those of the rows."""
        return values if self.chosen is None else values[self.chosen]

    def only(self, which: NDArray[np.bool_]) -> LoggedRows:
        """Some of the rows."""
        if which.all():
            return self
        chosen = np.flatnonzero(which) if self.chosen is None else self.chosen[which]
        places = None if self.places is None else self.places[which]
        return LoggedRows(self.stored, self.groups[which], self.came[which], chosen, places)

    def slice(self, first: int, last: int) -> LoggedRows:
        """Rows first..last-1."""
        groups, came = self.groups[first:last], self.came[first:last]
        places = None if self.places is None else self.places[first:last]
        if self.chosen is None:
            return LoggedRows(self.stored.slice(first, last - first), groups, came, None, places)
        return LoggedRows(self.stored, groups, came, self.chosen[first:last], places)

    @property
    def nbytes(self) -> float:
        """About the bytes that they take in a sweep."""
        return size_of(self.stored.nbytes / max(1, self.stored.num_rows)) * self.came.size


def size_of(values: float) -> float:
    """About the bytes that a row with values of this size takes in a sweep: these in a SteM, and in Arrow arrays until
    all rows of its source are stored; its origin, group, codes of keys and indexes, which are there twice while they
    grow."""
    return 2 * values + 90


@dataclass(frozen=True)
class CodedRows:
    """Rows and codes of their keys: equal keys have equal codes."""

    rows: LoggedRows
    codes: Codes

    def only(self, which: NDArray[np.bool_]) -> CodedRows:
        """Some of the rows."""
        return self if which.all() else CodedRows(self.rows.only(which), self.codes[which])


def matching(
    given: Mapping[int, Sequence[CodedRows]], is_new: Callable[[LoggedRows], NDArray[np.bool_]] | None
) -> dict[int, list[CodedRows]]:
    """The rows of sources whose keys all sources have. With `is_new` their results have a new row: then they are those
    whose key a new row has. A few others may be there too."""
    most = max(sum(part.codes.size for part in parts) for parts in given.values())
    cells, every = _cells(most), 0 if is_new is None else _NEW
    for number, parts in enumerate(given.values()):
        bit = 1 << number if number < _SOURCES else 0
        every |= bit
        for part in parts:
            flags = np.full(part.codes.size, bit, np.uint8)
            if is_new is not None:
                flags[is_new(part.rows)] |= _NEW
            mark(part.codes, flags, cells)
    found = {}
    for source, parts in given.items():
        found[source] = [some for part in parts if (some := part.only(_found(part.codes, every, cells))).codes.size]
    return found


def having(given: Sequence[CodedRows], keys: Iterable[Codes]) -> list[LoggedRows]:
    """The rows whose key is among those with these codes; a few others may be there too."""
    cells = _cells(sum(part.codes.size for part in given))
    for codes in keys:
        mark(codes, np.ones(codes.size, np.uint8), cells)
    some = (part.only(_found(part.codes, 1, cells)).rows for part in given)
    return [rows for rows in some if rows.came.size]


def _cells(rows: int) -> NDArray[np.uint8]:
    return np.zeros(1 << (_CELLS * rows).bit_length(), np.uint8)


def _found(codes: Codes, every: int, cells: NDArray[np.uint8]) -> NDArray[np.bool_]:
    found = np.empty(codes.size, np.bool_)
    find(codes, every, cells, found)
    return found


def together(parts: Sequence[LoggedRows], most: int) -> Iterator[LoggedRows]:
    """Rows in as few parts as possible, of at most so many bytes: an Arrow array of text cannot have more."""
    batches = [part.batch for part in parts]
    ends = [0, *ends_of(np.array([batch.nbytes for batch in batches], np.float64), most), len(parts)]
    for first, end in pairwise(ends):
        if first < end:
            batch, some = batches[first], parts[first:end]
            if len(some) > 1:
                table = pa.Table.from_batches(batches[first:end])
                if any(pa.types.is_dictionary(field.type) for field in table.schema):
                    table = table.unify_dictionaries()
                (batch,) = table.combine_chunks().to_batches()
            places = [p.places for p in some if p.places is not None]
            yield LoggedRows(
                batch,
                np.concatenate([p.groups for p in some]),
                np.concatenate([p.came for p in some]),
                places=np.concatenate(places) if places else None,
            )


def cut(rows: Iterable[LoggedRows], first: int, last: int) -> list[LoggedRows]:
    """Rows first..last-1."""
    found, at = [], 0
    for some in rows:
        begin, end = max(first - at, 0), min(last - at, some.came.size)
        if begin < end:
            found.append(some.slice(begin, end))
        at += some.came.size
        if at >= last:
            break
    return found


def ends_of(sizes: NDArray[np.float64], most: float) -> list[int]:
    """Where to cut a list so that no part is larger than `most`, unless it has a single element.

    >>> ends_of(np.array([3.0, 3.0, 9.0, 1.0, 1.0]), 6)
    [2, 3]
    """
    ends, total = [], 0.0
    for at, size in enumerate(sizes.tolist()):
        if total and total + size > most:
            ends.append(at)
            total = 0.0
        total += size
    return ends
