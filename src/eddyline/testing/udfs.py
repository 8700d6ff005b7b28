"""User functions for random queries, each also as a DuckDB macro: registering Python functions there is slow."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.udf import registered, udf

MACROS = (
    "CREATE MACRO fuzz_mix(x) AS CAST(x AS BIGINT) * 7 + 3",
    "CREATE MACRO fuzz_tag(s) AS s || '#'",
    "CREATE MACRO fuzz_picky(x) AS CASE WHEN CAST(x AS BIGINT) % 5 = 0 THEN NULL ELSE CAST(x AS BIGINT) + 1 END",
    "CREATE MACRO fuzz_near(x, y) AS abs(CAST(x AS BIGINT) - CAST(y AS BIGINT)) <= 2",
)


def register() -> None:
    """Register these functions with `el.udf`, once."""
    if "fuzz_mix" in registered():
        return

    @udf(returns=pa.int64(), name="fuzz_mix", arrays="arrow")
    def mix(x: pa.Array) -> pa.Array:
        return pc.add(pc.multiply(x.cast(pa.int64()), 7), 3)

    @udf(returns=pa.string(), name="fuzz_tag", arrays="arrow")
    def tag(s: pa.Array) -> pa.Array:
        return pc.binary_join_element_wise(s.cast(pa.string()), "#", "")

    @udf(returns=pa.int64(), name="fuzz_picky")
    def picky(x: NDArray[np.int64]) -> NDArray[np.int64]:
        if (x % 5 == 0).any():
            raise ValueError("a multiple of 5")
        return x + 1

    @udf(returns=pa.bool_(), name="fuzz_near")
    def near(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.bool_]:
        near_enough: NDArray[np.bool_] = np.abs(x - y) <= 2
        return near_enough
