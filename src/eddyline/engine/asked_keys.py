"""The keys of an index that are asked and not answered, and since when tuples wait for them.

Keys are kept in dictionaries as Python values. All keys of a packet or an answer are put in or taken out by one call of
the dictionary, so there is no Python code for each key in the common case: no key is asked already, and everything that
is answered was asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
KeyValues = tuple[object, ...]
"""A key as a value that can be looked up in a dictionary."""

_SINCE, _MARK = "\0since", "\0mark"
"""No column of a table can have these names."""
_NOT_A_NUMBER = "NaN"


@dataclass(frozen=True)
class AwaitedKeys:
    """Keys of an answer for which tuples waited."""

    keys: pa.RecordBatch
    values: Sequence[KeyValues]
    """The same keys as values."""
    since: int
    """The oldest time of a component of a tuple that waited."""
    marks: Mapping[KeyValues, int]
    """The number of the mark that was the last when a key was first asked, if it is not 0."""

    def marks_of(self, keys: pa.RecordBatch) -> Ints:
        """The marks of some of these keys."""
        return np.array([self.marks.get(key, 0) for key in values(keys)], np.int64)


class AskedKeys:
    """Which keys are asked, and who waits for them."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        """`fields` are the columns of the index."""
        self._fields, self._names = fields, [field.name for field in fields]
        self._since: dict[KeyValues, int] = {}
        """For each key the oldest time of a component of a tuple that waits."""
        self._marks: dict[KeyValues, int] = {}
        """The mark at which a key was asked, if it is not 0."""
        self._failed: dict[KeyValues, int] = {}
        """The mark of the last failure of each key whose lookup has failed."""

    def __len__(self) -> int:
        return len(self._since)

    @property
    def oldest(self) -> int | None:
        """The oldest time of a component of a tuple that waits for a key."""
        return min(self._since.values(), default=None)

    @property
    def marks(self) -> set[int]:
        """The marks at which keys were asked, or have failed."""
        return {*self._marks.values(), *self._failed.values()}

    def add(self, keys: pa.RecordBatch, since: Ints, mark: int) -> pa.RecordBatch:
        """Tuples wait for these keys, one for each tuple; returns the keys that are not asked yet, each once."""
        listed, newest_first = list(values(keys)), np.argsort(since, kind="stable")[::-1].tolist()
        by_time = map(listed.__getitem__, newest_first)
        oldest = dict(zip(by_time, newest_first, strict=True))  # the last entry of a key counts
        which = np.fromiter(oldest.values(), np.int64, len(oldest))
        times = dict(zip(oldest, since[which].tolist(), strict=True))
        if not self._since.keys().isdisjoint(times):
            for key in self._since.keys() & times.keys():
                self._since[key] = min(self._since[key], times.pop(key))
            which = np.array([oldest[key] for key in times], np.int64)
        self._since.update(times)
        if mark:
            self._marks.update(zip(times, repeat(mark)))
        for key in self._failed.keys() & times.keys() if self._failed else ():
            self._marks[key] = max(mark, self._failed[key])
        return keys if which.size == keys.num_rows else keys.take(pa.array(np.sort(which)))

    def take(self, keys: pa.RecordBatch) -> AwaitedKeys:
        """Nobody waits for these keys any more; returns those for which tuples waited."""
        listed = list(values(keys))
        times: list[int | None] = list(map(self._since.pop, listed, repeat(None)))
        since = [time for time in times if time is not None]
        if len(since) < len(times):
            which = [number for number, time in enumerate(times) if time is not None]
            keys, listed = keys.take(pa.array(which, pa.int64())), [listed[number] for number in which]
        marks = {key: self._marks.pop(key) for key in listed if key in self._marks} if self._marks else {}
        return AwaitedKeys(keys, listed, min(since, default=0), marks)

    def fail(self, keys: Iterable[KeyValues], mark: int) -> None:
        """The lookup of these keys has failed: whoever waits for them later came after this mark."""
        self._failed.update(zip(keys, repeat(mark)))

    def least_marks(self, keys: pa.RecordBatch, marks: Ints) -> Ints:
        """The lesser of each mark and that of the key, if the key is asked."""
        pairs = zip(values(keys), marks.tolist(), strict=True)
        least = [min(mark, self._marks.get(key, 0)) if key in self._since else mark for key, mark in pairs]
        return np.array(least, np.int64)

    def clear(self) -> None:
        """Nobody waits."""
        self._since.clear()
        self._marks.clear()

    def copy(self) -> AskedKeys:
        """A copy."""
        found = AskedKeys(self._fields)
        found._since, found._marks, found._failed = dict(self._since), dict(self._marks), dict(self._failed)
        return found

    @property
    def keys(self) -> pa.RecordBatch:
        """All keys that are asked."""
        return self._batch(list(self._since)).select(self._names)

    def saved(self) -> pa.RecordBatch:
        """All keys that are asked, and who waits for them; and those that have failed, for which nobody waits."""
        asked, failed = (self._batch(list(some)) for some in (self._since, self._failed))
        nobody, marks = pa.nulls(failed.num_rows, pa.int64()), pa.array(self._failed.values(), pa.int64())
        failed = pa.record_batch([*failed.columns, nobody, marks], [*self._names, _SINCE, _MARK])
        since = pa.array(self._since.values(), pa.int64())
        marks = pa.array([self._marks.get(key, 0) for key in self._since], pa.int64())
        asked = pa.record_batch([*asked.columns, since, marks], failed.schema.names)
        return pa.concat_batches([asked, failed])

    def _batch(self, listed: Sequence[KeyValues]) -> pa.RecordBatch:
        columns: Iterable[Sequence[object]] = zip(*listed, strict=True) if listed else [()] * len(self._fields)
        arrays = []
        for field, column in zip(self._fields, columns, strict=True):
            is_float = pa.types.is_floating(field.type)
            arrays.append(pa.array([np.nan if is_float and v == _NOT_A_NUMBER else v for v in column], field.type))
        return pa.record_batch(arrays, self._names)

    def restore(self, saved: pa.RecordBatch) -> None:
        """Restore from `saved`."""
        self._since, self._marks, self._failed = {}, {}, {}
        told = zip(saved.column(_SINCE).to_pylist(), saved.column(_MARK).to_pylist(), strict=True)
        for key, (since, mark) in zip(values(saved.select(self._names)), told, strict=True):
            if since is None:
                self._failed[key] = mark
            else:
                self._since[key] = since
                self._marks |= {key: mark} if mark else {}

    def merge(self, saved: pa.RecordBatch) -> None:
        """Rows wait for the keys that another slot or an earlier run has saved, too. Its marks tell nothing here: rows
        have other numbers."""
        saved = saved.filter(saved.column(_SINCE).is_valid())
        for key in values(saved.select(self._names)):
            self._marks.pop(key, None)
        self.add(saved.select(self._names), np.asarray(saved.column(_SINCE)), 0)


def values(keys: pa.RecordBatch | pa.Table) -> Iterator[KeyValues]:
    """The keys as values that can be compared and hashed; NaN equals itself.

    >>> list(values(pa.record_batch({"a": [1, 2], "b": ["x", "y"]})))
    [(1, 'x'), (2, 'y')]
    """
    if not keys.num_columns:
        return repeat((), keys.num_rows)
    return zip(*(_hashable(column) for column in keys.columns), strict=True)


def _hashable(column: pa.Array | pa.ChunkedArray) -> list[object]:
    values: list[object] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [_NOT_A_NUMBER if value != value else value for value in values]
    return [repr(value) for value in values] if pa.types.is_nested(column.type) else values
