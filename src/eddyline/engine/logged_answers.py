"""Answers of tables in the log: sections with rows, and with the keys that they answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SLOT, CAME = "\0slot", "\0came"
"""The columns of logged answers that say which slot got them, and when (in seconds)."""


def rows_section(table: str) -> str:
    """The section of the log with the rows of a table's answers. No stream has such a name."""
    return f"{table}\0rows"


def keys_section(table: str, method: int) -> str:
    """The section of the log with the keys that an access method has answered."""
    return f"{table}\0{method}"


def is_of_answers(section: str) -> bool:
    """Whether a section of the log has answers."""
    return "\0" in section


def got_by(slot: int, now: float, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Answers that a slot has got, for the log."""
    batch = batch.append_column(SLOT, pa.array(np.full(batch.num_rows, slot)))
    return batch.append_column(CAME, pa.array(np.full(batch.num_rows, now)))


def of_slot(slot: int, batch: pa.RecordBatch) -> dict[float, pa.RecordBatch]:
    """The logged answers that a slot has got, by when they came."""
    mine, came = batch.column(SLOT).to_numpy() == slot, batch.column(CAME).to_numpy()
    rows = batch.drop_columns([SLOT, CAME])
    return {now: rows.filter(pa.array(mine & (came == now))) for now in np.unique(came[mine]).tolist()}
