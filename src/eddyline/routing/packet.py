"""A packet: tuples with the same history.

In flight a tuple is one row number per source of its span and nothing else. All tuples of a packet have the same
signature and were started by rows of one build, whose `number` bounds what they may match (the TimeStamp rule).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eddyline.plan.plan import Signature

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Packet:
    """`rows[s]` are the row numbers in the SteM of source s; they all have the same length."""

    rows: Mapping[int, Rows]
    done: int
    number: int

    @property
    def signature(self) -> Signature:
        """(span, done)."""
        span = 0
        for source in self.rows:
            span |= 1 << source
        return span, self.done

    @property
    def size(self) -> int:
        """How many tuples."""
        return next(iter(self.rows.values())).size

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> Packet:
        """Some of the tuples."""
        return Packet({s: rows[which] for s, rows in self.rows.items()}, self.done, self.number)

    def joined(self, tuples: NDArray[np.int64], source: int, rows: Rows) -> Packet:
        """Tuples, each with a match of another source."""
        return Packet({**{s: r[tuples] for s, r in self.rows.items()}, source: rows}, self.done, self.number)

    def passed(self, selection: int) -> Packet:
        """The same tuples, with one more selection done."""
        return Packet(self.rows, self.done | 1 << selection, self.number)
