"""Panes: partial aggregates of the combinations that count at exactly the same boundaries.

A cell is (group, first, last, states): the combinations of one group that count at the boundaries first..last, both
included. Boundaries are numbered (bound/slide.py). Invariant: for every boundary b that is not emitted
yet, the cells with first <= b <= last partition the combinations that count at b. So merging these cells by group gives
the result of b. Each operation here keeps the invariant: `joined` only renumbers groups, `merged` unites cells that are
live at the same boundaries, and `starting`, which moves `first` up to the next boundary to be emitted, changes no later
result. Panes are never changed in place, so a reference to one is a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.aggregates import Merging, State
from eddyline.bound.group_ids import Ids, group_ids, representatives, widened
from eddyline.engine.tuning import ENGINE, EngineTuning


@dataclass(frozen=True)
class Panes:
    """Cells in columns: `group`, `first`, `last`, `states` have one row per cell, `keys` one row per group."""

    keys: tuple[pa.Array, ...]
    groups: int
    group: Ids
    first: Ids
    last: Ids
    states: tuple[State, ...]

    def __post_init__(self) -> None:
        wide = tuple({name: widened(column) for name, column in state.items()} for state in self.states)
        object.__setattr__(self, "keys", tuple(map(widened, self.keys)))
        object.__setattr__(self, "states", wide)

    def __len__(self) -> int:
        return len(self.group)

    @property
    def text_bytes(self) -> int:
        """The bytes of texts in the cells, with the keys of their groups."""
        group = pa.array(self.group)
        keys = sum(pc.sum(pc.binary_length(key).take(group)).as_py() or 0 for key in self.keys if _is_text(key.type))
        return keys + sum(int(c.nbytes) for state in self.states for c in state.values() if _is_text(c.type))

    @property
    def nbytes(self) -> int:
        """The bytes of all columns."""
        return self.cell_bytes + sum(int(key.nbytes) for key in self.keys)

    @property
    def cell_bytes(self) -> int:
        """The bytes of the cells, without the keys."""
        return 24 * len(self) + sum(int(column.nbytes) for state in self.states for column in state.values())

    def take(self, cells: Ids | NDArray[np.bool_]) -> Panes:
        """The cells with these numbers, or where the mask is true, in this order; groups stay the same."""
        if cells.dtype == np.bool_:
            cells = np.flatnonzero(cells)
        at = pa.array(cells)
        states = tuple({name: column.take(at) for name, column in state.items()} for state in self.states)
        return replace(self, group=self.group[cells], first=self.first[cells], last=self.last[cells], states=states)

    def starting(self, boundary: int) -> Panes:
        """The same cells, for a reader who only looks at `boundary` and later ones."""
        return self if not len(self) else replace(self, first=np.maximum(self.first, boundary))


def _is_text(type: pa.DataType) -> bool:
    return type in (pa.large_string(), pa.large_binary())


def joined(parts: Sequence[Panes]) -> Panes:
    """The cells of all parts (at least one), with one numbering of groups."""
    if len(parts) == 1:
        return parts[0]
    keys, groups, ids = _common_groups(parts)
    return Panes(
        keys,
        groups,
        np.concatenate([number[part.group] for part, number in zip(parts, ids, strict=True)]),
        np.concatenate([part.first for part in parts]),
        np.concatenate([part.last for part in parts]),
        tuple(_stacked(states) for states in zip(*(part.states for part in parts), strict=True)),
    )


def merged(cells: Panes, accumulators: Sequence[Merging]) -> Panes:
    """Unite equal cells; groups stay the same."""
    ids, count = group_ids([cells.first, cells.last, cells.group], len(cells))
    some = representatives(ids, count)
    states = tuple(a.merge(state, ids, count) for a, state in zip(accumulators, cells.states, strict=True))
    return replace(cells, group=cells.group[some], first=cells.first[some], last=cells.last[some], states=states)


def trimmed(cells: Panes) -> Panes:
    """The same cells, without groups that have no cell."""
    group, groups = group_ids([cells.group], len(cells))
    if groups == cells.groups:
        return cells
    used = pa.array(cells.group[representatives(group, groups)])
    return replace(cells, keys=tuple(key.take(used) for key in cells.keys), groups=groups, group=group)


def at_boundaries(
    cells: Panes, upto: int, accumulators: Sequence[Merging], tuning: EngineTuning = ENGINE
) -> Iterator[Panes]:
    """The cells at each boundary up to `upto`: with first = last, one per group and boundary, in ascending order.

    Boundaries are processed in chunks. Within a chunk, each cell is repeated for every boundary at which it is live,
    and all are merged at once. Boundaries without a live cell cost nothing. Cells that live beyond a chunk are merged
    before the next one, so cells that never end become one per group, however many boundaries there are.
    """
    cells = cells.take(np.argsort(cells.first, kind="stable"))
    done, carried = 0, cells.take(np.zeros(0, np.int64))
    while True:
        if not len(carried) and done == len(cells):
            return
        start = int(carried.first[0] if len(carried) else cells.first[done])
        if start > upto:
            return
        ahead = done + tuning.chunk_cells
        stop = upto if ahead >= len(cells) else max(start, min(upto, int(cells.first[ahead]) - 1))
        live = joined([carried, cells.take(np.arange(done, np.searchsorted(cells.first, stop, "right")))])
        stop = _affordable(live, start, stop, tuning.chunk_bytes)
        done = int(np.searchsorted(cells.first, stop, "right"))
        live = live.take(live.first <= stop)
        found = merged(_repeated(live, stop), accumulators)
        yield found.take(np.argsort(found.first, kind="stable"))
        carried = live.take(live.last > stop).starting(stop + 1)
        if len(carried):
            carried = merged(carried, accumulators)


def _affordable(cells: Panes, start: int, stop: int, size: int) -> int:
    """The last boundary in start..stop such that the cells, repeated up to it, fit into a chunk."""
    most = size * len(cells) / cells.cell_bytes
    first = cells.first.astype(np.float64)

    def repeated(boundary: int) -> float:
        return float(np.maximum(np.minimum(cells.last, boundary) - first + 1, 0).sum())

    if repeated(stop) <= most:
        return stop
    while start < stop:
        middle = (start + stop + 1) // 2
        start, stop = (middle, stop) if repeated(middle) <= most else (start, middle - 1)
    return start


def _repeated(cells: Panes, upto: int) -> Panes:
    """Every cell once for each boundary in first..min(last, upto), which is at least one."""
    times = np.minimum(cells.last, upto) - cells.first + 1
    ends = np.cumsum(times)
    if ends[-1] == len(cells):
        return replace(cells, last=cells.first)
    boundary = np.arange(ends[-1]) + np.repeat(cells.first - (ends - times), times)
    return replace(cells.take(np.repeat(np.arange(len(cells)), times)), first=boundary, last=boundary)


def _common_groups(parts: Sequence[Panes]) -> tuple[tuple[pa.Array, ...], int, list[Ids]]:
    """The keys of all parts without repetition, their number, and for each part the new numbers of its groups."""
    if all(part.keys is parts[0].keys for part in parts):
        return parts[0].keys, parts[0].groups, [np.arange(parts[0].groups)] * len(parts)
    keys = [pa.concat_arrays(columns) for columns in zip(*(part.keys for part in parts), strict=True)]
    ends = np.cumsum([part.groups for part in parts])
    ids, groups = group_ids(keys, int(ends[-1]))
    some = pa.array(representatives(ids, groups))
    return tuple(key.take(some) for key in keys), groups, np.split(ids, ends[:-1])


def _stacked(states: Sequence[State]) -> State:
    return {name: pa.concat_arrays([state[name] for state in states]) for name in states[0]}
