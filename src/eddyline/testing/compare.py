"""Two results compared as multisets of rows.

Values are equal as SEMANTICS defines it: NaN equals itself, -0.0 equals 0.0, numbers by value, timestamps as instants.
Floats may differ by TOLERANCE relative to themselves or, for aggregates, to the sum of absolute values given with the
expected rows. Rows that are equal in every bit are removed first; the remaining rows are matched with rows that agree
in all other columns.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

TOLERANCE = 1e-9
TOLERANCE_FLOAT32 = 1e-6
_MOST_SHOWN = 5
Row = tuple[object, ...]


def difference(
    got: pa.Table, expected: pa.Table, scale: Mapping[int, np.ndarray] | None = None, may_lack: bool = False
) -> str | None:
    """None if the two are the same multiset of rows, else a text about the difference. With `may_lack`, expected rows
    may be missing."""
    if got.num_columns != expected.num_columns:
        return f"{got.num_columns} columns in place of {expected.num_columns}"
    kinds = [(kind(g.type), kind(e.type)) for g, e in zip(got.columns, expected.columns, strict=True)]
    for i, (ours, theirs) in enumerate(kinds):
        if ours != theirs and not (
            expected.column(i).null_count == len(expected.column(i)) == got.column(i).null_count
        ):
            return f"column {i} has type {got.column(i).type} in place of {expected.column(i).type}"
    mine, theirs_rows = _rows(got), _rows(expected)
    missing = defaultdict(list)
    for at, row in enumerate(theirs_rows):
        missing[row].append(at)
    extra = []
    for row in mine:
        if missing.get(row):
            missing[row].pop()
        else:
            extra.append(row)
    left = [at for places in missing.values() for at in places]
    if extra or left:
        floats = [i for i, column in enumerate(expected.columns) if pa.types.is_floating(column.type)]
        allowed = [TOLERANCE_FLOAT32 if pa.types.is_float32(expected.column(i).type) else TOLERANCE for i in floats]
        extra, left = _matched(extra, left, theirs_rows, floats, allowed, scale or {})
    if not extra and (may_lack or not left):
        return None
    lines = [f"{len(mine)} rows in place of {len(theirs_rows)}: {len(extra)} too many, {len(left)} missing"]
    lines += [f"  too many: {row}" for row in extra[:_MOST_SHOWN]]
    lines += [f"  missing:  {theirs_rows[at]}" for at in left[:_MOST_SHOWN]]
    return "\n".join(lines)


def kind(type_: pa.DataType) -> str:
    """The kind of a type, which must be equal for two columns; their layouts may differ."""
    if pa.types.is_dictionary(type_):
        return kind(type_.value_type)
    if pa.types.is_large_string(type_):
        return "string"
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz is None else "timestamptz"
    if pa.types.is_duration(type_) or pa.types.is_interval(type_):
        return "interval"
    if pa.types.is_nested(type_):
        return "nested"
    return str(type_)


def _rows(table: pa.Table) -> list[Row]:
    columns = [_values(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def _values(column: pa.ChunkedArray) -> list[object]:
    """Python values that are equal, and hash equally, exactly if the column's values are the same."""
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return _values(column.cast(type_.value_type))
    if pa.types.is_timestamp(type_):
        return list(column.cast(pa.timestamp("us", type_.tz), safe=False).cast(pa.int64()).to_pylist())
    if pa.types.is_duration(type_):
        return list(column.cast(pa.duration("us")).cast(pa.int64()).to_pylist())
    if pa.types.is_date32(type_):
        return list(column.cast(pa.int32()).to_pylist())
    values = column.to_pylist()
    if pa.types.is_floating(type_):
        return ["NaN" if v is not None and math.isnan(v) else v for v in values]
    if pa.types.is_interval(type_):
        return [
            None if v is None else ("months", v[0]) if v[0] else v[1] * 86_400_000_000 + v[2] // 1000 for v in values
        ]
    return [repr(_one_zero(v)) for v in values] if pa.types.is_nested(type_) else values


def _one_zero(value: object) -> object:
    """The same value with 0.0 for -0.0, also inside lists."""
    if isinstance(value, list):
        return [_one_zero(v) for v in value]
    return value + 0.0 if isinstance(value, float) else value


def _matched(
    extra: list[Row],
    left: list[int],
    expected: Sequence[Row],
    floats: list[int],
    allowed: list[float],
    scale: Mapping[int, np.ndarray],
) -> tuple[list[Row], list[int]]:
    """The rows without a partner after rows whose floats are close to each other were matched."""
    candidates = defaultdict(list)
    for at in left:
        candidates[_without(expected[at], floats)].append(at)
    unmatched = []
    for row in extra:
        places = candidates[_without(row, floats)]
        for at in places:
            scales = [float(scale[i][at]) if i in scale else 0.0 for i in floats]
            wanted = [expected[at][i] for i in floats]
            if all(map(_near, [row[i] for i in floats], wanted, scales, allowed)):
                places.remove(at)
                break
        else:
            unmatched.append(row)
    return unmatched, [at for places in candidates.values() for at in places]


def _without(row: Row, floats: list[int]) -> Row:
    return tuple(v for i, v in enumerate(row) if i not in floats)


def _near(a: object, b: object, scale: float, allowed: float) -> bool:
    if a == b:
        return True
    if not (isinstance(a, float) and isinstance(b, float) and math.isfinite(a) and math.isfinite(b)):
        return False
    scale = scale if math.isfinite(scale) else 0.0
    return abs(a - b) <= allowed * max(abs(a), abs(b), scale, 1e-3)
