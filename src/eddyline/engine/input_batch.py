"""How many rows are taken in at a time: the size of the input batch, which is the back pressure of the input.

A slice of n rows costs something fixed, for its builds and packets, so F / n a row; and the larger it is the more rows
do probes pass over that were built with it and are too new to match, so w * n a row. The sum is least where the two
are equal: at n * sqrt(fixed / wasted). Both are counted, not timed, so noise does not matter. A slice that wastes more
than BALANCE times its fixed cost is made smaller to that size, one that wastes less than a BALANCE-th is doubled.
"""

from __future__ import annotations

import math

LEAST, MOST = 64, 65536
BALANCE = 2.0
CALL = 6e-5
"""Seconds that a build or a packet costs, whatever its size."""
PASS = 3e-9
"""Seconds to pass over a row."""


class InputBatch:
    """The size of the next slice, `rows`; fixed if one is given."""

    def __init__(self, fixed: int | None = None) -> None:
        self.rows = fixed or MOST
        self._adaptive = fixed is None

    def observe(self, rows: int, calls: int, passed: int) -> None:
        """A slice of so many rows took so many calls, which passed over so many rows that were too new."""
        if not self._adaptive:
            return
        fixed, wasted = calls * CALL, passed * PASS
        if wasted > BALANCE * fixed:
            self.rows = max(LEAST, int(min(rows, self.rows) * math.sqrt(fixed / wasted)))
        elif BALANCE * wasted < fixed and 2 * rows > self.rows:
            self.rows = min(2 * self.rows, MOST)
