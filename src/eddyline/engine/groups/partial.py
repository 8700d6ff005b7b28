"""Aggregation in two steps: each slot emits cells, and one place combines and finishes them.

The combinations of a group may be made in several slots. At each boundary a slot then emits its cells as *partial*
results: each cell is one group at one boundary, as a row (panes_arrow.py). Watermarks are global, so all slots emit the
same boundaries in the same batch, and `combine` does not need to remember earlier ones. Merging the states of parts
gives the state of the whole (bound/aggregates.py), so the result is that of one slot; float sums may differ in their
last digits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eddyline.bound.aggregates import Accumulator, accumulator
from eddyline.bound.evaluate import ErrorCount, evaluate, mask
from eddyline.bound.expr import WINDOW_END, Expr
from eddyline.bound.group_ids import plain_type
from eddyline.bound.model import BoundQuery, GroupBy
from eddyline.bound.slide import Slide
from eddyline.engine.groups.panes import Panes, merged
from eddyline.engine.groups.panes_arrow import from_rows
from eddyline.engine.tuning import ENGINE, EngineTuning
from eddyline.errors import InternalError


def group_of(query: BoundQuery) -> GroupBy:
    """The GROUP BY of an aggregate query."""
    if query.group is None:
        raise InternalError("a query without aggregates has no groups")
    return query.group


def combine(
    query: BoundQuery, batches: Sequence[pa.RecordBatch], errors: ErrorCount, tuning: EngineTuning = ENGINE
) -> list[pa.RecordBatch]:
    """Combine the partial results of all slots into result rows."""
    found = [batch for batch in batches if batch.num_rows]
    if not found:
        return []
    accumulators = tuple(accumulator(a) for a in group_of(query).aggregates)
    cells = merged(from_rows(pa.concat_batches(found)), accumulators)
    results = finished(
        query, cells.take(np.argsort(cells.first, kind="stable")), accumulators, errors, tuning.result_text
    )
    return [result for result in results if result.num_rows]


def finished(
    query: BoundQuery, cells: Panes, accumulators: Sequence[Accumulator], errors: ErrorCount, text: int
) -> list[pa.RecordBatch]:
    """Apply HAVING and compute the outputs for cells that each are one group at one boundary; in parts if there are
    more than about `text` bytes of text."""
    if len(cells) < 2 or cells.text_bytes <= text:
        return [_finished(query, cells, accumulators, errors)]
    halves = np.array_split(np.arange(len(cells)), 2)
    return [part for half in halves for part in finished(query, cells.take(half), accumulators, errors, text)]


def _finished(
    query: BoundQuery, cells: Panes, accumulators: Sequence[Accumulator], errors: ErrorCount
) -> pa.RecordBatch:
    by, rows, group = group_of(query), len(cells), pa.array(cells.group)
    slide = by.slide or Slide(1)
    end = pa.array(slide.end_of(slide.at(cells.first))).cast(WINDOW_END.type)
    env: dict[Expr, pa.Array] = {WINDOW_END: end}
    for key, values in zip(by.keys, cells.keys, strict=True):
        env[key] = _as(values.take(group), key.type)
    for aggregate, how, state in zip(by.aggregates, accumulators, cells.states, strict=True):
        env[aggregate] = _as(how.final(state, errors), aggregate.type)
    if by.having is not None:
        kept = mask(by.having, env, rows, errors)
        rows, at = int(np.count_nonzero(kept)), pa.array(kept)
        env = {expr: values.filter(at) for expr, values in env.items()}
    outputs = [evaluate(output.expr, env, rows, errors) for output in query.outputs]
    schema = query.schema
    outputs = [values.cast(field.type) for values, field in zip(outputs, schema, strict=True)]
    return pa.RecordBatch.from_arrays(outputs, schema=schema)


def _as(values: pa.Array, type: pa.DataType) -> pa.Array:
    """Stored values in the type of an expression."""
    return values.cast(plain_type(type)).cast(type)
