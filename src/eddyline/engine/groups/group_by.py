"""GROUP BY over slides: combinations in, one row per group and boundary out.

A group-by keeps panes (see panes.py and docs/design/panes.md). `add` appends one small part per batch. When the parts
outgrow the merged cells, all are merged, so a cell is merged a logarithmic number of times. All state is immutable and
reached from one small record, `_Held`. So a commit and a wind-back are assignments of that record, and can neither lose
nor repeat a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.aggregates import Merging, State, accumulator, weighed
from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Expr
from eddyline.bound.group_ids import Ids, decoded, group_ids, plain, representatives
from eddyline.bound.model import BoundQuery
from eddyline.bound.slide import Slide
from eddyline.codec import Snapshot
from eddyline.engine.groups.clusters import Clusters
from eddyline.engine.groups.panes import Panes, at_boundaries, joined, merged, trimmed
from eddyline.engine.groups.panes_arrow import as_batches, as_rows, from_batches, from_rows
from eddyline.engine.groups.partial import finished, group_of
from eddyline.engine.tuning import ENGINE, EngineTuning
from eddyline.state.carried import Carried
from eddyline.state.shelf import Shelf

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class _Held:
    """The state of a Grouping: merged cells, cells added since, and the first boundary that is not emitted yet."""

    whole: tuple[Panes, ...] = ()
    parts: tuple[Panes, ...] = ()
    next: int = _LOWEST

    @property
    def panes(self) -> tuple[Panes, ...]:
        return self.whole + self.parts


class HeldSnapshot(Snapshot, frozen=True):
    """The state of a group-by at one moment: the names of cells on the shelf."""

    whole: tuple[str, ...]
    parts: tuple[str, ...]
    next: int


class GroupingSnapshot(Snapshot, frozen=True):
    """The current state of a group-by, and its state at the last commit."""

    now: HeldSnapshot
    committed: HeldSnapshot


class Grouping:
    """The group-by of one slot. Boundaries are numbered: see Slide; without SLIDE there is only 0."""

    def __init__(
        self,
        query: BoundQuery,
        errors: ErrorCount,
        partial: bool = False,
        tuning: EngineTuning = ENGINE,
        clusters: Clusters | None = None,
    ) -> None:
        """With `clusters`, cells have one more state: the sums of clusters, for running estimates."""
        self._tuning = tuning
        self._query, self._group, self._errors, self._partial = query, group_of(query), errors, partial
        self._slide = self._group.slide or Slide(1)
        self._clusters = clusters
        self._results_of = tuple(accumulator(a) for a in self._group.aggregates)
        self._accumulators: tuple[Merging, ...] = (*self._results_of, *([] if clusters is None else [clusters]))
        self._now = self._committed = _Held()

    def add(
        self,
        env: Mapping[Expr, pa.Array],
        rows: int,
        first: NDArray[np.int64],
        last: NDArray[np.int64],
        carried: Carried | None = None,
        classes: Sequence[Ids] = (),
    ) -> None:
        """Add `rows` combinations. Combination i counts at the boundaries T (microseconds) with first[i] <= T <=
        last[i]. If some stand for several combinations, `carried` has their weights and the known states of
        aggregates. `classes` are those of `Clusters.of_tuples`."""
        held = self._now
        if not rows or held.next > _HIGHEST:
            return
        keys = [plain(evaluate(key, env, rows, self._errors)) for key in self._group.keys]
        weights, states = (None, dict[int, State]()) if carried is None else carried
        arguments = [
            None if a.arg is None or number in states else decoded(evaluate(a.arg, env, rows, self._errors))
            for number, a in enumerate(self._group.aggregates)
        ]
        first, last = np.maximum(self._slide.number_from(first), held.next), self._slide.number_upto(last)
        if not (counts := first <= last).all():
            first, last, kept = first[counts], last[counts], pa.array(counts)
            keys = [key.filter(kept) for key in keys]
            arguments = [None if a is None else a.filter(kept) for a in arguments]
            weights = None if weights is None else weights[counts]
            states = {n: {name: column.filter(kept) for name, column in s.items()} for n, s in states.items()}
            classes = [class_[counts] for class_ in classes]
            rows = len(first)
        if not rows:
            return
        group, groups = group_ids(keys, rows)
        cell, cells = group_ids([first, last, group], rows)
        some, keyed = representatives(cell, cells), pa.array(representatives(group, groups))
        part = Panes(
            tuple(key.take(keyed) for key in keys),
            groups,
            group[some],
            first[some],
            last[some],
            tuple(
                how.merge(states[number], cell, cells)
                if number in states
                else weighed(how, arguments[number], weights, cell, cells)
                for number, how in enumerate(self._results_of)
            ),
        )
        if self._clusters is not None:
            of = {a.arg: v for a, v in zip(self._group.aggregates, arguments, strict=True) if a.arg and v is not None}
            part = replace(part, states=(*part.states, self._clusters.classed(classes, of, cell, cells)))
        self._now = self._compacted(replace(held, parts=(*held.parts, part)))

    def emit(self, upto: int) -> list[pa.RecordBatch]:
        """The rows of every boundary up to `upto` that is not emitted yet, in ascending order."""
        held, end = self._now, self._slide.number_upto(upto)
        if end < held.next:
            return []
        if not any(panes.first.min() <= end for panes in held.panes):
            self._now = replace(held, next=end + 1)
            return []
        cells = merged(joined([panes.starting(held.next) for panes in held.panes]), self._accumulators)
        results = [
            r for found in at_boundaries(cells, end, self._accumulators, self._tuning) for r in self._results(found)
        ]
        left = cells.take(cells.last > end)
        # Cells that were moved by several boundaries may be equal to many others; for one boundary, the next emit
        # merges them.
        moved = (left.first < end).any()
        left = left.starting(end + 1)
        left = trimmed(merged(left, self._accumulators) if moved else left)
        self._now = _Held((left,) if len(left) else (), (), end + 1)
        return [result for result in results if result.num_rows]

    def commit(self) -> None:
        """Commit: adds and emits before it cannot be undone any more."""
        self._committed = self._now

    def wind_back(self) -> None:
        """Undo every add and emit since the last commit."""
        self._now = self._committed

    def saved(self, shelf: Shelf) -> GroupingSnapshot:
        """A snapshot for another process; the cells are put on the shelf."""

        def names(panes: tuple[Panes, ...]) -> tuple[str, ...]:
            return tuple(shelf.put(p, as_batches) for p in panes)

        def shelved(held: _Held) -> HeldSnapshot:
            return HeldSnapshot(names(held.whole), names(held.parts), held.next)

        return GroupingSnapshot(shelved(self._now), shelved(self._committed))

    def restore(self, saved: GroupingSnapshot, shelf: Shelf) -> None:
        """Restore from a snapshot."""

        def found(names: tuple[str, ...]) -> tuple[Panes, ...]:
            return tuple(shelf.get(name, from_batches) for name in names)

        def held(shelved: HeldSnapshot) -> _Held:
            return _Held(found(shelved.whole), found(shelved.parts), shelved.next)

        self._now, self._committed = held(saved.now), held(saved.committed)

    def small_state(self) -> tuple[int, list[pa.RecordBatch]]:
        """The next boundary, and the cells as rows, merged as far as possible."""
        held = self._now
        if not held.panes:
            return held.next, []
        cells = merged(joined([panes.starting(held.next) for panes in held.panes]), self._accumulators)
        return held.next, [as_rows(cells)]

    def restore_small_state(self, next: int, rows: list[pa.RecordBatch]) -> None:
        """Restore from the cells of one or several slots."""
        parts = tuple(from_rows(batch) for batch in rows if batch.num_rows)
        self._now = self._committed = _Held((), parts, next)

    @property
    def committed(self) -> tuple[Panes, ...]:
        """The cells at the last commit; they are never changed."""
        return self._committed.panes

    @property
    def next(self) -> int:
        """The number of the first boundary that is not emitted yet."""
        return self._now.next

    @property
    def rows(self) -> int:
        """Cells held."""
        return sum(len(panes) for panes in self._now.panes)

    @property
    def memory_bytes(self) -> int:
        """Bytes held, including cells that only a wind-back needs."""
        held = {id(panes): panes for panes in self._now.panes + self._committed.panes}
        return sum(panes.nbytes for panes in held.values())

    def _compacted(self, held: _Held) -> _Held:
        """The same cells, merged into one piece if the parts have outgrown the merged cells."""
        loose = sum(len(part) for part in held.parts)
        few, many = self._tuning.few_cells, self._tuning.many_parts
        if loose <= max(few, sum(len(panes) for panes in held.whole)) and len(held.parts) < many:
            return held
        together = joined([panes.starting(held.next) for panes in held.panes])
        return _Held((trimmed(merged(together, self._accumulators)),), (), held.next)

    def _results(self, cells: Panes) -> list[pa.RecordBatch]:
        """Result rows for cells that each are one group at one boundary."""
        if self._clusters is not None:
            cells = replace(cells, states=cells.states[:-1])
        if self._partial:
            return [as_rows(cells)]
        return finished(self._query, cells, self._results_of, self._errors, self._tuning.result_text)
