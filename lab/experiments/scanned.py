"""Predicates in the scan: they are evaluated in the order in which they are written, before the engine sees a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eddyline.bound.evaluate import ErrorCount, mask
from eddyline.bound.expr import Expr, columns_of


class ScannedPredicates:
    """Filters the rows of a stream that is alone in its query."""

    def __init__(self, predicates: Sequence[Expr], at_a_time: int) -> None:
        """A predicate is evaluated for `at_a_time` rows together."""
        self._predicates, self._at_a_time = predicates, at_a_time

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that pass."""
        columns: dict[Expr, pa.Array] = {
            c: batch.column(c.name) for predicate in self._predicates for c in columns_of(predicate)
        }
        keep = np.ones(batch.num_rows, np.bool_)
        for at in range(0, batch.num_rows, self._at_a_time):
            part = keep[at : at + self._at_a_time]
            values = {column: array.slice(at, part.size) for column, array in columns.items()}
            for predicate in self._predicates:
                part &= mask(predicate, values, part.size, ErrorCount())
                if not part.any():
                    break
        return batch if keep.all() else batch.filter(pa.array(keep))
