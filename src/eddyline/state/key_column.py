"""A column of encoded keys. Where a code is only a hash, the values are kept too, to verify matches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.expr import Expr
from eddyline.bound.types import decode, physical
from eddyline.kernels.values import same_bytes
from eddyline.state import keys as key_codes
from eddyline.state.arena import Arena
from eddyline.state.column import Column, RowNumbers
from eddyline.state.stores.any import store
from eddyline.state.stores.fixed import FixedStore
from eddyline.state.stores.heap import BytesStore
from eddyline.state.stores.store import ValueStore


class KeyColumn:
    """The keys of all rows for one expression."""

    def __init__(self, arena: Arena, expr: Expr) -> None:
        self.codes = Column(arena, "i8")
        type = physical(expr.type)
        self.exact: ValueStore | None = None if key_codes.is_exact(type) else store(arena, type)

    def append(self, array: pa.Array) -> None:
        """Add keys at the end."""
        self.codes.append(key_codes.encode(array))
        if self.exact is not None:
            self.exact.append(decode(array))

    def same(self, rows: RowNumbers, other: KeyColumn, other_rows: RowNumbers) -> NDArray[np.bool_]:
        """Which pairs of rows, one of this column and one of the other, really have the same key."""
        same: NDArray[np.bool_] = self.codes.values[rows] == other.codes.values[other_rows]
        mine, theirs = self.exact, other.exact
        if isinstance(mine, BytesStore) and isinstance(theirs, BytesStore):
            same_bytes(mine.heap, mine.starts, rows, theirs.heap, theirs.starts, other_rows, same)
        elif isinstance(mine, FixedStore) and isinstance(theirs, FixedStore):
            alike = mine.words[rows] == theirs.words[other_rows]
            same &= alike if alike.ndim == 1 else alike.all(axis=1)
        return same
