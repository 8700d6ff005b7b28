"""Panes as record batches.

`as_batches` is for the next process on the same host: it has the columns as they are, with the keys of groups apart
from the cells; nothing is computed, and nothing is copied when they are read. `as_rows` is for the checkpoint: each
cell is a row with the keys of its group, so rows of several slots may be combined, in any order, and divided again.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from eddyline.bound.aggregates import State
from eddyline.bound.group_ids import Ids, group_ids, representatives
from eddyline.engine.groups.panes import Panes


def as_batches(panes: Panes) -> list[pa.RecordBatch]:
    """Two batches: the keys, one row per group, and the cells."""
    keys = {f"key{i}": key for i, key in enumerate(panes.keys)}
    return [_batch(keys), _batch({"group": pa.array(panes.group), **_columns(panes)})]


def from_batches(batches: Sequence[pa.RecordBatch]) -> Panes:
    """The panes that `as_batches` wrote."""
    keys, cells = batches
    groups = keys.num_rows if keys.num_columns else 1
    return _panes(tuple(keys.columns), groups, cells, cells.column("group").to_numpy())


def as_rows(panes: Panes) -> pa.RecordBatch:
    """One row per cell."""
    group = pa.array(panes.group)
    return _batch({f"key{i}": key.take(group) for i, key in enumerate(panes.keys)} | _columns(panes))


def from_rows(rows: pa.RecordBatch) -> Panes:
    """The cells of at least one row."""
    keys = [column for name, column in zip(rows.schema.names, rows.columns, strict=True) if name.startswith("key")]
    group, groups = group_ids(keys, rows.num_rows)
    some = pa.array(representatives(group, groups))
    return _panes(tuple(key.take(some) for key in keys), groups, rows, group)


def _columns(panes: Panes) -> dict[str, pa.Array]:
    states = {f"state{i}.{name}": c for i, state in enumerate(panes.states) for name, c in state.items()}
    return {"first": pa.array(panes.first), "last": pa.array(panes.last), **states}


def _panes(keys: tuple[pa.Array, ...], groups: int, cells: pa.RecordBatch, group: Ids) -> Panes:
    states: dict[str, dict[str, pa.Array]] = {}
    for name, column in zip(cells.schema.names, cells.columns, strict=True):
        if name.startswith("state"):
            aggregate, _, part = name.partition(".")
            states.setdefault(aggregate, {})[part] = column
    first, last = cells.column("first").to_numpy(), cells.column("last").to_numpy()
    return Panes(keys, groups, group, first, last, tuple[State, ...](states.values()))


def _batch(columns: dict[str, pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
