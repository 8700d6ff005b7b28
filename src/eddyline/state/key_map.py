"""Maps from the keys of some columns to integers, for many keys at a time.

Keys of one column of integers, dates or times are in a compiled hash table (`CodeMap`). All other keys are Python
values in a dictionary (`ValueMap`), which is also the slow twin in tests. NaN equals itself; -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.kernels import key_map as kernels
from eddyline.state.key_values import KeyValues, batch_of
from eddyline.state.key_values import values as values_of

Ints = NDArray[np.int64]
ABSENT = kernels.ABSENT
"""The value of a key that is not there. No other value may be as small."""
_SMALLEST = 256
"""Slots of the smallest table."""


class KeyMap(Protocol):
    """A map from keys to integers. No key in it has a NULL."""

    def __len__(self) -> int: ...

    def add(self, keys: pa.RecordBatch, values: Ints) -> Ints:
        """Put keys in, each with the least of its values, here and before; returns the numbers of the keys that are
        new, each once, in order."""
        ...

    def find(self, keys: pa.RecordBatch) -> Ints:
        """The value of each key, or ABSENT."""
        ...

    def take(self, keys: pa.RecordBatch) -> Ints:
        """Take keys out; returns the value of each, or ABSENT. Of equal keys the first one has the value."""
        ...

    @property
    def keys(self) -> pa.RecordBatch:
        """All keys, in some order."""
        ...

    @property
    def values(self) -> Ints:
        """The values of all keys, in the same order."""
        ...

    def copy(self) -> Self:
        """A copy."""
        ...


def key_map(fields: Sequence[pa.Field]) -> KeyMap:
    """An empty map for keys of these columns."""
    return CodeMap(fields[0]) if len(fields) == 1 and _has_code(fields[0].type) else ValueMap(fields)


class CodeMap:
    """Keys of one column whose values are integers to Arrow."""

    def __init__(self, field: pa.Field) -> None:
        self._schema, self._size = pa.schema([field]), 0
        self._table = _free(_SMALLEST)

    def __len__(self) -> int:
        return self._size

    def add(self, keys: pa.RecordBatch, values: Ints) -> Ints:
        """Put keys in (`KeyMap.add`)."""
        codes, new = _codes(keys.column(0)), np.empty(keys.num_rows, np.int64)
        if 2 * (self._size + codes.size) > len(self._table):
            known, kept, self._table = self.keys, self.values, _free(3 * (self._size + codes.size))
            kernels.add(self._table, _codes(known.column(0)), kept, np.empty_like(kept))
        new = new[: int(kernels.add(self._table, codes, values, new))]
        self._size += new.size
        return new

    def find(self, keys: pa.RecordBatch) -> Ints:
        """The value of each key, or ABSENT."""
        found, column = np.full(keys.num_rows, ABSENT), keys.column(0)
        if self._size:
            kernels.find(self._table, _codes(column.fill_null(0) if column.null_count else column), found)
            if column.null_count:
                found[np.array(column.is_null())] = ABSENT
        return found

    def take(self, keys: pa.RecordBatch) -> Ints:
        """Take keys out (`KeyMap.take`)."""
        found = np.full(keys.num_rows, ABSENT)
        if self._size:
            self._size -= int(kernels.take(self._table, _codes(keys.column(0)), found))
            if not self._size and len(self._table) > _SMALLEST:
                self._table = _free(_SMALLEST)
        return found

    @property
    def keys(self) -> pa.RecordBatch:
        """All keys, in some order."""
        return pa.RecordBatch.from_arrays([self._decoded(self._table[self._living, 0])], schema=self._schema)

    @property
    def values(self) -> Ints:
        """The values of all keys, in the same order."""
        kept: Ints = self._table[self._living, 1]
        return kept

    def copy(self) -> Self:
        """A copy."""
        found = type(self)(self._schema.field(0))
        found._table, found._size = self._table.copy(), self._size
        return found

    @property
    def _living(self) -> Ints:
        return np.flatnonzero(self._table[:, 1] != ABSENT) if self._size else np.empty(0, np.int64)

    def _decoded(self, codes: Ints) -> pa.Array:
        wanted = self._schema.field(0).type
        if pa.types.is_temporal(wanted):
            return pa.array(codes.astype(np.int32) if wanted.bit_width == 32 else codes).view(wanted)
        return pa.array(codes).view(wanted) if wanted == pa.uint64() else pa.array(codes).cast(wanted)


class ValueMap:
    """Keys of any columns."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self._fields, self._known = fields, dict[KeyValues, int]()

    def __len__(self) -> int:
        return len(self._known)

    def add(self, keys: pa.RecordBatch, values: Ints) -> Ints:
        """Put keys in (`KeyMap.add`)."""
        known, new = self._known, []
        for number, (key, value) in enumerate(zip(values_of(keys), values.tolist(), strict=True)):
            before = known.get(key)
            if before is None:
                new.append(number)
            if before is None or value < before:
                known[key] = value
        return np.array(new, np.int64)

    def find(self, keys: pa.RecordBatch) -> Ints:
        """The value of each key, or ABSENT."""
        found = map(self._known.get, values_of(keys), repeat(ABSENT))
        return np.fromiter(found, np.int64, keys.num_rows)

    def take(self, keys: pa.RecordBatch) -> Ints:
        """Take keys out (`KeyMap.take`)."""
        found = map(self._known.pop, values_of(keys), repeat(ABSENT))
        return np.fromiter(found, np.int64, keys.num_rows)

    @property
    def keys(self) -> pa.RecordBatch:
        """All keys, in some order."""
        return batch_of(list(self._known), self._fields)

    @property
    def values(self) -> Ints:
        """The values of all keys, in the same order."""
        return np.fromiter(self._known.values(), np.int64, len(self._known))

    def copy(self) -> Self:
        """A copy."""
        found = type(self)(self._fields)
        found._known = dict(self._known)
        return found


def _free(slots: int) -> Ints:
    return np.full((slots, 2), ABSENT)


def _has_code(type: pa.DataType) -> bool:
    t = pa.types
    return t.is_integer(type) or (t.is_temporal(type) and not t.is_interval(type))


def _codes(keys: pa.Array) -> Ints:
    """The integers that Arrow keeps, in an array that kernels take: it is contiguous, and can be written."""
    if pa.types.is_temporal(keys.type):
        keys = keys.view(pa.int32() if keys.type.bit_width == 32 else pa.int64())
    return np.array(keys.view(pa.int64()) if keys.type == pa.uint64() else keys, np.int64)


def distinct(keys: pa.RecordBatch) -> pa.RecordBatch:
    """Each of the keys once.

    >>> distinct(pa.record_batch({"a": [1, 2, 1]})).column("a").to_pylist()
    [1, 2]
    """
    which = key_map(list(keys.schema)).add(keys, np.zeros(keys.num_rows, np.int64))
    return keys if which.size == keys.num_rows else keys.take(pa.array(which))
