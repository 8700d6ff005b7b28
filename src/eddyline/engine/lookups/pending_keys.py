"""The keys of an index that are asked and not answered, and since when tuples wait for them.

Keys are in maps (state/key_map.py) that take all keys of a packet or an answer in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.state.key_map import ABSENT, KeyMap, key_map
from eddyline.state.key_values import KeyValues, batch_of, values

Ints = NDArray[np.int64]

_SINCE, _MARK = "\0since", "\0mark"
"""No column of a table can have these names."""


@dataclass(frozen=True)
class AwaitedKeys:
    """Keys of an answer for which tuples waited."""

    keys: pa.RecordBatch
    which: Ints | None
    """Their numbers among the keys that are answered; None for all of these."""
    since: int
    """The oldest time of a component of a tuple that waited."""
    marks: KeyMap | None
    """The number of the mark that was the last when a key was first asked, if it is not 0; None if it is 0 for all."""

    @cached_property
    def values(self) -> Sequence[KeyValues]:
        """The same keys as values."""
        return list(values(self.keys))

    def marks_of(self, keys: pa.RecordBatch) -> Ints:
        """The marks of some of these keys."""
        return np.zeros(keys.num_rows, np.int64) if self.marks is None else np.maximum(self.marks.find(keys), 0)


class AskedKeys:
    """Which keys are asked, and who waits for them."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        """`fields` are the columns of the index."""
        self._fields, self._names = fields, [field.name for field in fields]
        self._since = key_map(fields)
        """For each key the oldest time of a component of a tuple that waits."""
        self._marks = key_map(fields)
        """The mark at which a key was asked, if it is not 0."""
        self._failed = key_map(fields)
        """The mark of the last failure of each key whose lookup has failed."""

    def __len__(self) -> int:
        return len(self._since)

    @property
    def oldest(self) -> int | None:
        """The oldest time of a component of a tuple that waits for a key."""
        return int(self._since.values.min()) if self._since else None

    @property
    def marks(self) -> set[int]:
        """The marks at which keys were asked, or have failed."""
        return {*np.unique(self._marks.values).tolist(), *np.unique(self._failed.values).tolist()}

    def add(self, keys: pa.RecordBatch, since: Ints, mark: int, batch: int) -> pa.RecordBatch:
        """Tuples wait for these keys, one for each tuple; returns the keys that are not asked yet, each once. Keys that
        have failed in this batch are left out: they are asked again in a later one."""
        failed = self._failed.find(keys) if self._failed else None
        if failed is not None and failed.max(initial=0) > batch:
            alive = np.flatnonzero(failed <= batch)
            keys, since, failed = keys.take(pa.array(alive)), since[alive], failed[alive]
        new = self._since.add(keys, since)
        keys = keys if new.size == keys.num_rows else keys.take(pa.array(new))
        if mark or failed is not None:
            marks = np.full(new.size, mark)
            _put(self._marks, keys, marks if failed is None else np.maximum(marks, failed[new]))
        return keys

    def take(self, keys: pa.RecordBatch) -> AwaitedKeys:
        """Nobody waits for these keys any more; returns those for which tuples waited."""
        times, which = self._since.take(keys), None
        if (times == ABSENT).any():
            which = np.flatnonzero(times != ABSENT)
            keys, times = keys.take(pa.array(which)), times[which]
        marks = None
        if self._marks and (found := np.maximum(self._marks.take(keys), 0)).any():
            marks = key_map(self._fields)
            marks.add(keys, found)
        return AwaitedKeys(keys, which, int(times.min()) if times.size else 0, marks)

    def fail(self, keys: pa.RecordBatch, mark: int) -> None:
        """The lookup of these keys has failed: whoever waits for them later came after this mark."""
        _put(self._failed, keys, np.full(keys.num_rows, mark))

    def forget_failures(self, mark: int) -> None:
        """No row is left that came before this mark."""
        if mark and self._failed:
            self._failed.take(self._failed.keys.filter(pa.array(self._failed.values <= mark)))

    def least_marks(self, keys: pa.RecordBatch, marks: Ints) -> Ints:
        """The lesser of each mark and that of the key, if the key is asked."""
        least = np.minimum(marks, np.maximum(self._marks.find(keys), 0))
        return np.where(self.has(keys), least, marks)

    def among(self, keys: pa.RecordBatch) -> pa.RecordBatch:
        """Those of these keys that are asked."""
        return keys.filter(pa.array(self.has(keys)))

    def has(self, keys: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which of these keys are asked."""
        return np.not_equal(self._since.find(keys), ABSENT)

    def has_failed(self, keys: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which of these keys have failed."""
        return np.not_equal(self._failed.find(keys), ABSENT)

    def clear(self) -> None:
        """Nobody waits."""
        self._since, self._marks = key_map(self._fields), key_map(self._fields)

    def copy(self) -> AskedKeys:
        """A copy."""
        found = AskedKeys(self._fields)
        found._since, found._marks, found._failed = self._since.copy(), self._marks.copy(), self._failed.copy()
        return found

    @property
    def keys(self) -> pa.RecordBatch:
        """All keys that are asked."""
        return self._since.keys

    def saved(self) -> pa.RecordBatch:
        """All keys that are asked, and who waits for them; and those that have failed, for which nobody waits."""
        asked, failed = self._since.keys, self._failed.keys
        nobody, names = pa.nulls(failed.num_rows, pa.int64()), [*self._names, _SINCE, _MARK]
        marks = np.maximum(self._marks.find(asked), 0)
        of_asked = [*asked.columns, pa.array(self._since.values), pa.array(marks)]
        of_failed = [*failed.columns, nobody, pa.array(self._failed.values)]
        return pa.concat_batches([pa.record_batch(columns, names) for columns in (of_asked, of_failed)])

    def batch(self, listed: Sequence[KeyValues]) -> pa.RecordBatch:
        """Keys of the index as columns."""
        return batch_of(listed, self._fields)

    def restore(self, saved: pa.RecordBatch) -> None:
        """Restore from `saved`."""
        self.clear()
        self._failed = key_map(self._fields)
        self.merge(saved)

    def merge(self, saved: pa.RecordBatch) -> None:
        """Rows wait for the keys that another slot or an earlier run has saved, too."""
        waits = saved.column(_SINCE).is_valid()
        asked, failed = saved.filter(waits), saved.filter(saved.column(_SINCE).is_null())
        keys, of_failed = asked.select(self._names), failed.select(self._names)
        marks = np.maximum(self._failed.find(of_failed), failed.column(_MARK).to_numpy())
        _put(self._failed, of_failed, marks)
        marks = self.least_marks(keys, asked.column(_MARK).to_numpy())
        self._since.add(keys, np.array(asked.column(_SINCE)))
        _put(self._marks, keys, marks)


def _put(into: KeyMap, keys: pa.RecordBatch, marks: Ints) -> None:
    """Let keys have these marks. A mark of 0 is not kept."""
    into.take(keys)
    some = np.flatnonzero(marks)
    if some.size:
        into.add(keys if some.size == marks.size else keys.take(pa.array(some)), marks[some])
