"""The check of bits finds what depends on batches and layouts, and takes NaN for one value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eddyline.bound import types as t
from eddyline.bound.expr import Call, Expr, Partial, SourceColumn
from lab.fuzz.layouts import LAYOUTS
from lab.fuzz.same_bits import Different, bits, check

ROWS = pa.table({"x": pa.array([1.5, None, float("nan"), -0.0, 3.0, 3.0, 1.5, 2.0], t.DOUBLE)})
Kernel = Callable[[pa.Array, int], "pa.Array | Partial"]


def checked(kernel: Kernel) -> pa.Array:
    def make(schema: pa.Schema) -> Expr:
        column = SourceColumn(0, "x", schema.field("x").type)
        return Call("f", (column,), t.DOUBLE, lambda args, rows: kernel(args[0], rows))

    return check(make, ROWS, small=list(LAYOUTS)).array


def nearly(x: pa.Array) -> pa.Array:
    return pa.array(np.nextafter(x.to_numpy(zero_copy_only=False), 9), mask=np.asarray(x.is_null()))


def test_a_function_of_each_value_passes() -> None:
    assert checked(lambda x, rows: pc.negate(x)).equals(pc.negate(ROWS["x"].combine_chunks())) is False  # NaN
    assert bits(pa.array([0.0, -0.0, None, float("nan")])) == [0, -(2**63), None, "NaN"]


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (lambda x, rows: nearly(x) if rows == 1 else x, "batches of 1:"),
        (lambda x, rows: nearly(x) if rows == 7 else x, "batches of 7:"),
        (lambda x, rows: pc.abs(x) if rows == 1 else x, "batches of 1:"),  # -0.0 has other bits
        (lambda x, rows: nearly(x) if x.offset % 2 and rows == 8 else x, "sliced, batches of 8:"),
        (lambda x, rows: Partial(x, rows // 8), "batches of 1: 0 failures in place of 1"),
    ],
)
def test_what_depends_on_batches_or_layouts_is_found(kernel: Kernel, said: str) -> None:
    with pytest.raises(Different, match=said):
        checked(kernel)
