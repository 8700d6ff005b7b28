"""Functions of our own for queries; run with `--udf my_functions` in this folder."""

import pyarrow as pa
import pyarrow.compute as pc

import eddyline as el


@el.udf(returns=pa.float64())
def fahrenheit(celsius: pa.Array) -> pa.Array:
    """A function takes and gives whole arrays."""
    return pc.add(pc.multiply(celsius, 1.8), 32.0)
