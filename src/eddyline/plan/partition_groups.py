"""The partition groups of keys and of whole rows.

The group of a key is part of durable formats and must not change: `mix(encode(key)) mod groups`. `encode` is that of
state/keys.py, and gets the value as WHERE compares it: equal keys of different types are cast to one type. `mix` is the
finalizer of SplitMix64. The code of a whole row is the `combine` of the codes of its columns, with one constant for
NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.types import physical
from eddyline.kernels import groups as kernels
from eddyline.state.keys import combine, encode, is_exact, without_null

_NULL = np.int64(0x2545F4914F6CDD1D)


def key_groups(values: pa.Array, groups: int) -> NDArray[np.int64]:
    """The group of each key; meaningless for a NULL."""
    return code_groups(encode(values), groups)


def rows_among(codes: NDArray[np.int64], asked: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rows with groups that are asked for, given the codes of their keys."""
    found = np.empty(codes.size + 1, np.int64)
    return found[: kernels.among(codes, asked.size, asked, found)]


CODES = 1 << 32
"""The number of codes within a group."""


def within_group(codes: NDArray[np.int64], groups: int) -> NDArray[np.uint32]:
    """Codes of the keys of one group, of their groups among CODES times as many."""
    return (codes // groups).astype(np.uint32)


def row_groups(
    columns: Sequence[pa.Array], times: NDArray[np.int64] | None, rows: int, groups: int
) -> NDArray[np.int64]:
    """The group of each row, computed from its time and those columns that have a code: equal rows have the same
    group."""
    codes = row_codes(columns, times)
    return np.zeros(rows, np.int64) if codes is None else code_groups(codes, groups)


def row_codes(columns: Sequence[pa.Array], times: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    """The code of each row, of its time and those columns that have a code; None if there is none."""
    parts = [] if times is None else [times]
    for column in columns:
        if _has_code(column.type):
            valid = without_null([column])
            codes = encode(column)
            parts.append(codes if valid is None else np.where(valid, codes, _NULL))
    return combine(parts) if parts else None


def _has_code(type: pa.DataType) -> bool:
    known, t = physical(type), pa.types
    if t.is_interval(known) or t.is_null(known):
        return False
    return is_exact(known) or bool(t.is_decimal(known) or t.is_string(known) or t.is_binary(known))


def code_groups(codes: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """The group of each code."""
    found = np.empty(codes.size, np.int64)
    kernels.mixed(codes, groups, found)
    return found
