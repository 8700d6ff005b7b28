"""Keys as Python values, for dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

import numpy as np
import pyarrow as pa

KeyValues = tuple[object, ...]
"""A key as a value that can be looked up in a dictionary."""

_NOT_A_NUMBER = "NaN"


def values(keys: pa.RecordBatch | pa.Table) -> Iterator[KeyValues]:
    """The keys as values that can be compared and hashed; NaN equals itself.

    >>> list(values(pa.record_batch({"a": [1, 2], "b": ["x", "y"]})))
    [(1, 'x'), (2, 'y')]
    """
    if not keys.num_columns:
        return repeat((), keys.num_rows)
    return zip(*(_hashable(column) for column in keys.columns), strict=True)


def _hashable(column: pa.Array | pa.ChunkedArray) -> list[object]:
    listed: list[object] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [_NOT_A_NUMBER if value != value else value for value in listed]
    return [repr(value) for value in listed] if pa.types.is_nested(column.type) else listed


def batch_of(listed: Sequence[KeyValues], fields: Sequence[pa.Field]) -> pa.RecordBatch:
    """Keys as columns."""
    columns: Iterable[Sequence[object]] = zip(*listed, strict=True) if listed else [()] * len(fields)
    arrays = []
    for field, column in zip(fields, columns, strict=True):
        is_float = pa.types.is_floating(field.type)
        arrays.append(pa.array([np.nan if is_float and v == _NOT_A_NUMBER else v for v in column], field.type))
    return pa.RecordBatch.from_arrays(arrays, names=[field.name for field in fields])
