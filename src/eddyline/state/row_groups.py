"""The partition groups of the rows of a source: of which key they are, and which numbers they have.

A SteM keeps the code of every key that is compared for equality. The group of a row follows from that code, so it need
not be stored; it is stored where no such key tells it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eddyline.bound.expr import Expr
from eddyline.kernels.groups import among, mixed


@dataclass(frozen=True)
class RowGroups:
    """`size` groups, numbered from `first` on."""

    first: int
    size: int
    key: Expr | None
    """The key whose code tells the group of a row; None if the group comes with the row."""

    def outside(self, codes: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows that are in none of these groups, given their codes of the key."""
        here, stays = groups - self.first, np.ones(self.size, np.bool_)
        stays[here[(here >= 0) & (here < self.size)]] = False
        found = np.empty(codes.size + 1, np.int64)
        return found[: among(codes, self.size, stays, found)]

    def of_codes(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The groups of rows with these codes of the key."""
        found = np.empty(codes.size, np.int64)
        mixed(codes, self.size, found)
        if self.first:
            found += self.first
        return found
