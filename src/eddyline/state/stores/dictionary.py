"""Dictionary-encoded values stay encoded: a code per row, and the values that codes point to.

Each batch has a dictionary of its own. Each dictionary is kept as a stretch of a store of values, so codes never
change, and values are released with the last row that may need them; a batch with the same dictionary as the batch
before adds none. Of a dictionary much larger than its batch only the used values are kept, so there are never many more
values than rows. Gathered rows share one new dictionary.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.state.arena import Arena
from eddyline.state.column import RowNumbers
from eddyline.state.stores.fixed import FixedStore
from eddyline.state.stores.snapshots import DictionarySnapshot, StoreSnapshot
from eddyline.state.stores.store import ValueStore


class DictionaryStore:
    """Codes are row numbers in the store of values."""

    def __init__(self, arena: Arena, type: pa.DataType, make: Callable[[Arena, pa.DataType], ValueStore]) -> None:
        self.type = pa.dictionary(pa.int32(), type.value_type, type.ordered)
        self._codes, self._values = FixedStore(arena, pa.int64()), make(arena, type.value_type)
        self._rows = self._kept = 0
        self._stretches: list[tuple[int, int]] = []
        """(first row, first value) of each dictionary that is kept."""
        self._latest: pa.Array | None = None
        """The dictionary of the last stretch, as an array; None if only the store has its values."""

    def append(self, array: pa.Array) -> None:
        if array.dictionary.null_count or len(array.dictionary) > 2 * len(array):
            array = array.dictionary_decode().dictionary_encode()
        dictionary = array.dictionary
        if self._latest is None and self._stretches:
            self._latest = self._values.gather(np.arange(self._stretches[-1][1], self._kept))
        if self._latest is None or not dictionary.equals(self._latest):
            self._stretches.append((self._rows, self._kept))
            self._values.append(dictionary)
            self._kept += len(dictionary)
            self._latest = dictionary
        self._codes.append(pc.add(array.indices.cast(pa.int64()), self._stretches[-1][1]))
        self._rows += len(array)

    def gather(self, rows: RowNumbers) -> pa.Array:
        codes = self._codes.gather(rows)
        used, places = np.unique(np.asarray(codes.fill_null(-1)), return_inverse=True)
        values = self._values.gather(used[used >= 0]).dictionary_encode()
        remap = pa.array(np.concatenate([np.full((used < 0).sum(), -1, np.int32), np.asarray(values.indices)]))
        indices = remap.take(pa.array(places))
        if codes.null_count:
            indices = pc.if_else(codes.is_valid(), indices, pa.scalar(None, pa.int32()))
        return pa.DictionaryArray.from_arrays(indices, values.dictionary, ordered=self.type.ordered)

    def truncate(self, rows: int) -> None:
        self._codes.truncate(rows)
        self._rows, self._latest = rows, None
        while self._stretches and self._stretches[-1][0] >= rows:
            self._kept = self._stretches.pop()[1]
        self._values.truncate(self._kept)

    def release(self, row: int) -> None:
        self._codes.release(row)
        while len(self._stretches) > 1 and self._stretches[1][0] <= row:
            self._stretches.pop(0)
        if self._stretches:
            self._values.release(self._stretches[0][1])

    def saved(self) -> DictionarySnapshot:
        codes, values = self._codes.saved(), self._values.saved()
        return DictionarySnapshot(codes, values, self._rows, self._kept, tuple(self._stretches))

    def restore(self, saved: StoreSnapshot) -> None:
        assert isinstance(saved, DictionarySnapshot)
        self._codes.restore(saved.codes)
        self._values.restore(saved.values)
        self._rows, self._kept, self._latest = saved.rows, saved.kept, None
        self._stretches = list(saved.stretches)

    @property
    def nbytes(self) -> int:
        return self._codes.nbytes + self._values.nbytes
