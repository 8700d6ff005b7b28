"""Checks that the values of an expression do not depend on the size of batches nor on the layout of columns.

Every bit of every value and the number of values that could not be computed are compared. NaN is one value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eddyline.bound import types as t
from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Expr, SourceColumn
from eddyline.bound.kept_types import as_kept
from lab.fuzz.layouts import LAYOUTS

Make = Callable[[pa.Schema], Expr]
"""The expression over columns of these types; its columns are of source 0."""
SIZES = (1, 2, 7)


class Different(Exception):
    """The message says what differs, and in which row."""


class Values(NamedTuple):
    """The values of an expression, and how many of them could not be computed."""

    array: pa.Array
    failures: int


def check(make: Make, rows: pa.Table, sizes: Sequence[int] = SIZES, small: Sequence[str] = ()) -> Values:
    """The values over all rows at once. Different if batches of one of the sizes have other values, or another layout
    has; the layouts in `small` are tried in batches of these sizes too."""
    plain = {name: rows[name].combine_chunks() for name in rows.column_names}
    expr, whole = _evaluated(make, plain, len(rows))
    whole.array.validate(full=True)
    if whole.array.type != t.logical(expr.type) and t.decode(whole.array).type != t.physical(expr.type):
        raise Different(f"declared {expr.type}, evaluated {whole.array.type}")
    for size in sizes:
        compare(f"batches of {size}", rows, whole, _evaluated(make, plain, size)[1])
    for name, layout in LAYOUTS.items():
        columns = {column: as_kept(layout(array)) for column, array in plain.items()}
        for size in (len(rows), *(sizes if name in small else ())):
            compare(f"{name}, batches of {size}", rows, whole, _evaluated(make, columns, size)[1])
    return whole


def _evaluated(make: Make, columns: dict[str, pa.Array], size: int) -> tuple[Expr, Values]:
    """The expression and its values, in batches of `size` rows."""
    expr = make(pa.schema([(name, array.type) for name, array in columns.items()]))
    rows = len(next(iter(columns.values())))
    errors, parts = ErrorCount(), []
    for start in range(0, rows, size):
        env: dict[Expr, pa.Array] = {
            SourceColumn(0, name, array.type): array.slice(start, size) for name, array in columns.items()
        }
        parts.append(evaluate(expr, env, min(size, rows - start), errors))
    return expr, Values(parts[0] if len(parts) == 1 else pa.concat_arrays([*map(t.decode, parts)]), errors.count)


def compare(what: str, rows: pa.Table, one: Values, other: Values) -> None:
    """Different with the first row in which the two differ."""
    for row, (a, b) in enumerate(zip(bits(one.array), bits(other.array), strict=True)):
        if a != b and repr(a) != repr(b):  # the texts of lists with NaN are equal
            at = rows.slice(row, 1).to_pylist()[0]
            raise Different(f"{what}: {other.array[row]!r} in place of {one.array[row]!r} at {at}")
    if one.failures != other.failures:
        raise Different(f"{what}: {other.failures} failures in place of {one.failures}")


def bits(array: pa.Array) -> list[object]:
    """Values that are equal exactly if all their bits are."""
    array = t.decode(array)
    if pa.types.is_floating(array.type):
        raw = np.asarray(array.fill_null(0))
        pairs = zip(array.to_pylist(), raw.view(f"i{raw.itemsize}").tolist(), strict=True)
        return [None if v is None else "NaN" if v != v else pattern for v, pattern in pairs]
    if pa.types.is_interval(array.type):
        return [None if v is None else v.days * 86_400_000_000 + v.nanoseconds // 1000 for v in array.to_pylist()]
    if pa.types.is_temporal(array.type):
        return list(array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()).to_pylist())
    return list(array.to_pylist())
