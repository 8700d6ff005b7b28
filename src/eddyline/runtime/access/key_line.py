"""The keys that wait for one access method, in the order in which they are asked: those of a larger rank first, then
those that came first. Keys stay Arrow columns."""

from __future__ import annotations

from collections import deque

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.runtime.access.fitting import having


class KeyLine:
    """A line of keys."""

    def __init__(self) -> None:
        self._waiting: dict[int, deque[pa.RecordBatch]] = {}
        """By rank."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, keys: pa.RecordBatch, rank: int = 0) -> None:
        """Keys wait behind those of the same rank."""
        if keys.num_rows:
            self._waiting.setdefault(rank, deque()).append(keys)

    def forward(self, keys: pa.RecordBatch, rank: int) -> None:
        """Those of these keys that wait with a lesser rank get this one. Keys that do not wait are left out: they are
        under way."""
        for lesser in [of for of in self._waiting if of < rank]:
            waiting = pa.concat_batches(self._waiting.pop(lesser))
            moves = having(waiting, keys)
            self.put(waiting.filter(moves), rank)
            self.put(waiting.filter(pc.invert(moves)), lesser)

    def __len__(self) -> int:
        return sum(keys.num_rows for line in self._waiting.values() for keys in line)

    def take(self, most: int) -> pa.RecordBatch:
        """Up to so many keys, of which there are some; they wait no longer."""
        taken: list[pa.RecordBatch] = []
        while self._waiting and most:
            rank = max(self._waiting)
            line = self._waiting[rank]
            first = line.popleft()
            taken.append(first.slice(0, most))
            if first.num_rows > most:
                line.appendleft(first.slice(most))
            elif not line:
                del self._waiting[rank]
            most -= taken[-1].num_rows
        return taken[0] if len(taken) == 1 else pa.concat_batches(taken)
