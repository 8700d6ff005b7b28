"""Dictionary-encoded values."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.state.arena import Arena
from eddyline.state.stores.fixed import FixedStore
from eddyline.state.stores.store import Rows


class DictionaryStore:
    """Dictionary-encoded values stay encoded: codes into one dictionary that all batches share."""

    def __init__(self, arena: Arena, type: pa.DataType) -> None:
        self.type = pa.dictionary(pa.int32(), type.value_type, type.ordered)
        self._codes = FixedStore(arena, pa.int32())
        self._dictionary = pa.array([], type.value_type)

    def append(self, array: pa.Array) -> None:
        known = pc.index_in(array.dictionary, value_set=self._dictionary) if len(self._dictionary) else None
        if known is None or known.null_count:
            new = array.dictionary if known is None else array.dictionary.filter(pc.is_null(known))
            new = pc.unique(new.drop_null())
            self._dictionary = pa.concat_arrays([self._dictionary, new])
            known = pc.index_in(array.dictionary, value_set=self._dictionary)
        self._codes.append(known.cast(pa.int32()).take(array.indices))

    def gather(self, rows: Rows) -> pa.Array:
        return pa.DictionaryArray.from_arrays(self._codes.gather(rows), self._dictionary, ordered=self.type.ordered)

    def truncate(self, rows: int) -> None:
        self._codes.truncate(rows)

    def release(self, row: int) -> None:
        self._codes.release(row)

    @property
    def nbytes(self) -> int:
        return self._codes.nbytes + int(self._dictionary.nbytes)
