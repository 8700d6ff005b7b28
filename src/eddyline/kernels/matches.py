"""Codes that several lists have. A cell for each code modulo the number of cells, a power of two, has a bit by list; so
a code may seem to be in a list that only has another one of its cell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.kernels.jit import at, kernel


@kernel
def mark(codes: NDArray[np.uint32], flags: NDArray[np.uint8], cells: NDArray[np.uint8]) -> None:
    """The cell of codes[i] gets the bits flags[i]."""
    last = np.uint32(cells.size - 1)
    for i in range(codes.size):
        cells[at(codes[i] & last)] |= flags[i]


@kernel
def find(codes: NDArray[np.uint32], every: int, cells: NDArray[np.uint8], out: NDArray[np.bool_]) -> None:
    """out[i] = whether the cell of codes[i] has exactly the bits `every`."""
    last = np.uint32(cells.size - 1)
    for i in range(codes.size):
        out[i] = cells[at(codes[i] & last)] == every
