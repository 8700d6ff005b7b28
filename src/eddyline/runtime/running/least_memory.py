"""How much memory a job needs to work in, where groups of rows leave memory that is full.

A batch may take a share of memory, so little memory makes small batches, and a batch has a fixed cost: it is decided
and committed, groups leave and come back. The estimate is of the columns that the query keeps; it is no limit.
"""

from __future__ import annotations

import pyarrow as pa

from eddyline.bound.model import BoundQuery
from eddyline.plan.plan import plan_of
from eddyline.plan.spill_axis import spill_axis
from eddyline.setting_kinds import size_text
from eddyline.settings import Settings

BATCH_SHARE = 0.25
"""The share of memory that the rows of one batch may take."""
WORKABLE_ROWS = 8192
"""With fewer rows in a batch, its fixed cost is a large part of its time."""
FAR_BELOW = 4
"""A run whose memory is smaller by this factor than it should be says so in its progress."""
_ROW, _COLUMN, _TEXT = 48, 8, 32
"""Bytes of a row in a SteM besides its columns, of a column of fixed width, at least, and of another one, about."""
_LEAST = 1_000_000
"""A slot needs about this much whatever its rows are: columns and indexes grow in steps."""


def fitting(rows: int, size: float, memory: int) -> int:
    """The rows of a batch that fit in memory, if this many rows take so many bytes in a slot."""
    return max(1, int(rows * BATCH_SHARE * memory / max(1.0, size)))


def least_memory(query: BoundQuery, slots: int) -> int:
    """About the least memory for each slot with which a batch, whose rows the slots share, has WORKABLE_ROWS rows."""
    rows = [_ROW + sum(map(_width, _kept(query, source))) for source in range(len(query.sources))]
    return max(_LEAST, round(int(WORKABLE_ROWS * max(rows) / BATCH_SHARE / slots), -5))


def small_memory(query: BoundQuery, settings: Settings, slots: int) -> list[str]:
    """A sentence if `memory` is too small to work in, else nothing; nothing too where a job stops at `memory`."""
    memory = settings.memory
    if memory is None or memory <= 0 or not settings.may_spill or (least := least_memory(query, slots)) <= memory:
        return []
    if spill_axis(plan_of(query), settings.groups) is None:
        return []
    return [
        f"memory={size_text(memory)} is too small to work in: batches have few rows, and most of the time goes into"
        f" rows that leave memory and come back; this query needs about {size_text(least)} for each slot"
    ]


def is_far_below(query: BoundQuery, settings: Settings, slots: int) -> bool:
    """Whether `memory` is so small that the progress of a run says so."""
    far = settings.memory is not None and settings.memory * FAR_BELOW < least_memory(query, slots)
    return far and bool(small_memory(query, settings, slots))


def _kept(query: BoundQuery, source: int) -> list[pa.DataType]:
    """The types of the columns that are kept of a source."""
    schema = query.sources[source].stream.schema
    return [schema.field(name).type for name in query.columns_of_source(source)]


def _width(type_: pa.DataType) -> int:
    try:
        return max(_COLUMN, int(type_.bit_width) // 8)
    except ValueError:
        return _TEXT
