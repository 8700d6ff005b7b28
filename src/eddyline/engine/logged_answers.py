"""Answers of tables in the log: sections with rows, and with the keys that they answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SLOT = "\0slot"
"""The column of logged answers that says which slot got them."""


def rows_section(table: str) -> str:
    """The section of the log with the rows of a table's answers. No stream has such a name."""
    return f"{table}\0rows"


def keys_section(table: str, method: int) -> str:
    """The section of the log with the keys that an access method has answered."""
    return f"{table}\0{method}"


def is_of_answers(section: str) -> bool:
    """Whether a section of the log has answers."""
    return "\0" in section


def got_by(slot: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Answers that a slot has got, for the log."""
    return batch.append_column(SLOT, pa.array(np.full(batch.num_rows, slot)))


def of_slot(slot: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The logged answers that a slot has got."""
    mine = batch.column(SLOT).to_numpy() == slot
    rows = batch.drop_columns([SLOT])
    return rows if mine.all() else rows.filter(pa.array(mine))
