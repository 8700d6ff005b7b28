"""A Python function over a column, called once for each distinct value, where there is no whole-column kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound.expr import Partial


class NotComputable(Exception):
    """Raised by the function for a value that cannot be computed: it becomes NULL and is counted."""


def by_distinct(values: pa.Array, target: pa.DataType, function: Callable[[Any], object]) -> pa.Array | Partial:
    """The result of the function for each value; NULL stays NULL."""
    codes = values.dictionary_encode()
    failed: list[bool] = []
    made: list[Any] = []
    for value in codes.dictionary.to_pylist():
        try:
            made.append(function(value))
            failed.append(False)
        except NotComputable:
            made.append(None)
            failed.append(True)
    result = pa.array(made, target).take(codes.indices)
    count = pc.sum(pa.array(failed, pa.bool_()).take(codes.indices)).as_py() or 0
    return Partial(result, count) if count else result
