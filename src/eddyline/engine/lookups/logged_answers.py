"""Answers of tables in the log: sections with rows, and with the keys that they answer.

Each row says which slot got it and when, and a row of a table also at which mark it was asked for. As all rows of a
query that asks it says in which batch it came, too (protocol/log.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

_SLOT, _CAME, _MARK = "\0slot", "\0came", "\0mark"
"""Columns of logged answers: no column of a table can have these names."""


def rows_section(table: str) -> str:
    """The section of the log with the rows of a table's answers. No stream has such a name."""
    return f"{table}\0rows"


def keys_section(table: str, method: int) -> str:
    """The section of the log with the keys that an access method has answered."""
    return f"{table}\0{method}"


def table_of(section: str) -> str | None:
    """The table whose answers a section of the log has; None if it has rows of a stream."""
    table, end, _ = section.partition("\0")
    return table if end else None


def got_by(slot: int, came: float, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Answers that a slot has got until a time, in seconds, for the log."""
    slots, times = np.full(batch.num_rows, slot), np.full(batch.num_rows, came)
    return batch.append_column(_SLOT, pa.array(slots)).append_column(_CAME, pa.array(times))


def is_of_slot(slot: int, batch: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which logged answers a slot has got."""
    mine: np.ndarray[tuple[int], np.dtype[np.bool_]] = batch.column(_SLOT).to_numpy() == slot
    return mine


def of_slot(slot: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The logged answers that a slot has got."""
    mine = is_of_slot(slot, batch)
    return batch if mine.all() else batch.filter(pa.array(mine))


def came_at(batch: pa.RecordBatch) -> list[float]:
    """When logged answers came, in seconds."""
    found: list[float] = batch.column(_CAME).to_pylist()
    return found


def without_slot(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The keys or rows alone."""
    return batch.drop_columns([name for name in (_SLOT, _CAME, _MARK) if name in batch.schema.names])


def asked_at(mark: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of a table that were asked for at a mark, for the log."""
    return rows.append_column(_MARK, pa.array(np.full(rows.num_rows, mark)))


def by_mark(rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Logged rows of a table, by the marks at which they were asked for."""
    marks, rows = rows.column(_MARK).to_numpy(), without_slot(rows)
    for mark in np.unique(marks).tolist():
        yield mark, rows.filter(pa.array(marks == mark))
