"""Rows in the order of their partition groups, cut into sections of whole groups.

The rows come in runs. The pieces of a run are in the order of groups; within a piece rows may be in any order. As in
any merge of sorted runs, the rows up to the smallest last group of the current pieces can be given: later pieces have
none before them. At most about `most` bytes are taken at a time (of each run, if one group has more), so a merge of
runs that are read piece by piece needs little memory however many rows they have. A group with many rows has several
sections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class GroupedRows:
    """Rows and the group of each."""

    batch: pa.RecordBatch
    groups: Ints

    def ordered(self) -> GroupedRows:
        """The rows in the order of groups; those of one group stay in their order."""
        if (self.groups[1:] >= self.groups[:-1]).all():
            return self
        order = _order(self.groups)
        return GroupedRows(self.batch.take(pa.array(order)), self.groups[order])

    def slice(self, first: int, last: int) -> GroupedRows:
        """Rows first..last-1."""
        return GroupedRows(_compact(self.batch.slice(first, last - first)), self.groups[first:last])


def in_sections(runs: Iterable[Iterable[GroupedRows]], least: int, most: int) -> Iterator[GroupedRows]:
    """All rows, in the order of groups, in sections of at least about `least` bytes; but a group that is as large by
    itself begins a section."""
    heads = [head for run in runs if (head := _RunHead(run)).left]
    rest: list[GroupedRows] = []
    while heads:
        upto = _upto(heads, most)
        taken = [head.take(upto, most) for head in heads if head.first <= upto]
        some = together([*rest, *taken]).ordered()
        heads = [head for head in heads if head.left]
        row = _row_bytes(some.batch)
        cuts = _cuts(some.groups, row, least)
        rest = [some.slice(*cuts.pop())] if (cuts[-1][1] - cuts[-1][0]) * row < least else []
        yield from (some.slice(*cut) for cut in cuts)
    yield from rest


class _RunHead:
    """The current piece of a run."""

    def __init__(self, run: Iterable[GroupedRows]) -> None:
        self._pieces = iter(run)
        self.left = True
        """Whether there are rows."""
        self._load()

    def _load(self) -> None:
        piece = next((some for some in self._pieces if some.groups.size), None)
        if piece is None:
            self.left = False
            return
        self._batch, self._at = piece.batch, 0
        in_order = (piece.groups[1:] >= piece.groups[:-1]).all()
        self._order = None if in_order else _order(piece.groups)
        self._groups = piece.groups if self._order is None else piece.groups[self._order]
        ends = np.append(np.flatnonzero(self._groups[1:] != self._groups[:-1]) + 1, self._groups.size)
        self.groups, self._ends = self._groups[ends - 1], ends
        self._row = _row_bytes(piece.batch)

    @property
    def first(self) -> int:
        """The group of the next row."""
        return int(self._groups[self._at])

    def _rows(self, groups: Ints) -> Ints:
        """How many rows of the piece are of groups up to each of these."""
        ends = np.append(0, self._ends)
        found: Ints = ends[self.groups.searchsorted(groups, side="right")]
        return found

    def size(self, groups: Ints) -> NDArray[np.float64]:
        """The bytes of the rows that are left of groups up to each of these."""
        return np.maximum(self._rows(groups) - self._at, 0) * self._row

    def take(self, upto: int, most: float) -> GroupedRows:
        """The next rows of the piece, of groups up to this one, at most about `most` bytes."""
        end = min(int(self._rows(np.array([upto]))[0]), self._at + max(1, int(most / self._row)))
        if self._order is None:
            batch = self._batch.slice(self._at, end - self._at)
        else:
            batch = self._batch.take(pa.array(self._order[self._at : end]))
        taken = GroupedRows(_compact(batch), self._groups[self._at : end])
        self._at = end
        if end == self._groups.size:
            self._load()
        return taken


def _upto(heads: Sequence[_RunHead], most: float) -> int:
    """The group up to which rows are taken next."""
    bound = min(int(head.groups[-1]) for head in heads)
    first = min(head.first for head in heads)
    known = np.unique(np.concatenate([head.groups for head in heads]))
    groups = known[(known >= first) & (known <= bound)]
    sizes = sum((head.size(groups) for head in heads), np.zeros(groups.size))
    return int(groups[max(0, int(np.searchsorted(sizes, most, side="right")) - 1)])


def _cuts(groups: Ints, row: float, least: float) -> list[tuple[int, int]]:
    """Where the sections of ordered rows begin and end."""
    starts = [0, *(np.flatnonzero(groups[1:] != groups[:-1]) + 1).tolist(), groups.size]
    found, begin = [], 0
    for first, end in pairwise(starts):
        if first > begin and ((first - begin) * row >= least or (end - first) * row >= least):
            found.append((begin, first))
            begin = first
    return [*found, (begin, groups.size)]


def together(some: Sequence[GroupedRows]) -> GroupedRows:
    """All rows, one part after the other."""
    if len(some) == 1:
        return some[0]
    table = pa.Table.from_batches([one.batch for one in some]).unify_dictionaries().combine_chunks()
    return GroupedRows(table.to_batches()[0], np.concatenate([one.groups for one in some]))


def _order(groups: Ints) -> Ints:
    """The rows in the order of groups; small numbers are sorted in linear time."""
    known = groups.astype(np.uint16) if groups.max() <= np.iinfo(np.uint16).max else groups
    order: Ints = known.argsort(kind="stable")
    return order


def _compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Without the values of large dictionaries that no row has: every section has its dictionaries."""
    for n in _dictionaries(batch):
        column = batch.column(n)
        if len(column.dictionary) > len(column):
            codes = column.indices.fill_null(0).to_numpy()
            used, places = np.unique(codes, return_inverse=True)
            mask = column.indices.is_null().to_numpy(zero_copy_only=False)
            indices = pa.array(places, column.type.index_type, mask=mask)
            found = pa.DictionaryArray.from_arrays(indices, column.dictionary.take(pa.array(used)))
            batch = batch.set_column(n, batch.schema.field(n), found)
    return batch


def _row_bytes(batch: pa.RecordBatch) -> float:
    dictionaries: int = sum(batch.column(n).dictionary.nbytes for n in _dictionaries(batch))
    size, rows = int(batch.nbytes), int(batch.num_rows)
    return max(1.0, (size - dictionaries) / rows)


def _dictionaries(batch: pa.RecordBatch) -> list[int]:
    return [n for n, type in enumerate(batch.schema.types) if pa.types.is_dictionary(type)]
