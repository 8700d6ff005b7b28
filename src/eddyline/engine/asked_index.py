"""What a slot knows through one index of a table that is asked: which keys are answered, and which are asked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Expr
from eddyline.bound.functions.arrays import truth
from eddyline.bound.types import decode, physical
from eddyline.codec import Snapshot
from eddyline.plan.bindings import IndexBinding
from eddyline.plan.partition import of_stream
from eddyline.routing.packet import Packet
from eddyline.state.arena import Arena
from eddyline.state.keys import combine, encode, is_exact
from eddyline.state.layout import Layout
from eddyline.state.probing import NO_BOUND
from eddyline.state.rows import Rows
from eddyline.state.stem import SteM, StemSnapshot

Ints = NDArray[np.int64]
KeyValues = tuple[object, ...]
"""A key as a value that can be looked up in a dictionary."""

_SINCE, _MARK = "\0since", "\0mark"
"""No column of a table can have these names."""
_ROOM = 1 << 16
_NOT_A_NUMBER = "NaN"


@dataclass(frozen=True)
class Wait:
    """Tuples that wait for a key."""

    since: int
    """The oldest time of their components."""
    mark: int
    """The number of the mark that was the last when the key was first asked."""


class IndexSnapshot(Snapshot, frozen=True):
    """The EOT tuples, and the keys that are asked, at present and at the last commit."""

    answered: StemSnapshot
    asked: bytes
    committed: bytes


class Index:
    """What is known through one index of a table."""

    def __init__(self, arena: Arena, ways: Sequence[IndexBinding]) -> None:
        self.columns = tuple(column.name for column in ways[0].columns)
        self._types = [column.type for column in ways[0].columns]
        self._of_columns = {column.name: of_stream(column) for way in ways for column in way.columns}
        by_way = [tuple(map(of_stream, way.keys)) for way in ways]
        keys = tuple(dict.fromkeys(key for one in by_way for key in one))
        layout = Layout(False, False, stored=(), keys=keys, indexes=tuple(dict.fromkeys(by_way)), order_keys=())
        self.answered = SteM(arena, layout)
        """The EOT tuples."""
        self.asked: dict[KeyValues, Wait] = {}
        self._committed: dict[KeyValues, Wait] = {}
        self._passed = np.zeros(1, np.int64)

    def covers(self, way: IndexBinding, packet: Packet, rows: Sequence[Rows]) -> NDArray[np.bool_]:
        """For which tuples all rows that they can match are in the SteM of the table."""
        found = np.zeros(packet.size, np.bool_)
        if not self.answered.held:
            return found
        on = tuple(map(of_stream, way.keys))
        codes = [self._codes(b.source, b.expr, packet, rows) for b in way.bound_by]
        for tuples, answers in self._probe(on, combine(codes)):
            same = np.ones(tuples.size, np.bool_)
            for key, bound in zip(on, way.bound_by, strict=True):
                if bound.source is not None and not (len(on) == 1 and is_exact(physical(key.type))):
                    theirs = rows[bound.source], bound.expr, packet.rows[bound.source][tuples]
                    same &= self.answered.rows.same_key(key, answers, *theirs)
            found[tuples[same]] = True
        return found

    def has(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which rows of the table have a key that is answered."""
        found = np.zeros(batch.num_rows, np.bool_)
        if self.answered.held and batch.num_rows:
            columns = [batch.column(name) for name in self.columns]
            known = {self._of_columns[name]: column for name, column in zip(self.columns, columns, strict=True)}
            on = self.answered.layout.indexes[0]
            values = [evaluate(key, known, batch.num_rows, ErrorCount()) for key in on]
            for tuples, answers in self._probe(on, combine([encode(decode(value)) for value in values])):
                same = np.ones(tuples.size, np.bool_)
                for key, value in zip(on, values, strict=True):
                    mine = self.answered.rows.key_parts(key, answers)
                    theirs = encode(value)[tuples] if isinstance(mine, np.ndarray) else value.take(pa.array(tuples))
                    same &= mine == theirs if isinstance(mine, np.ndarray) else truth(pc.equal(mine, theirs))
                found[tuples[same]] = True
            for column in columns:
                if column.null_count:
                    found &= np.asarray(column.is_valid())
        return found

    def _codes(self, source: int | None, expr: Expr, packet: Packet, rows: Sequence[Rows]) -> Ints:
        if source is not None:
            codes: Ints = rows[source].key_values((expr,))[packet.rows[source]]
            return codes
        return encode(decode(evaluate(expr, {}, 1, ErrorCount()))).repeat(packet.size)

    def _probe(self, on: tuple[Expr, ...], codes: Ints) -> Iterator[tuple[Ints, Ints]]:
        stem = self.answered
        limits = stem.prober.limits(NO_BOUND, NO_BOUND, np.array([stem.built]), _ROOM, self._passed)
        return stem.prober.probe_key(on, codes, np.arange(codes.size), limits)

    def ask(self, keys: pa.RecordBatch, since: Ints, mark: int) -> pa.RecordBatch:
        """Tuples wait for these keys, one for each tuple; returns those that are not asked yet, each once."""
        table = pa.table({**dict(zip(self.columns, keys.columns, strict=True)), _SINCE: since})
        found = table.group_by(list(self.columns)).aggregate([(_SINCE, "min")]).combine_chunks()
        new: list[int] = []
        times = found[f"{_SINCE}_min"].to_pylist()
        for number, (key, time) in enumerate(zip(values(found.select(self.columns)), times, strict=True)):
            waits = self.asked.get(key)
            if waits is None:
                new.append(number)
                self.asked[key] = Wait(time, mark)
            elif time < waits.since:
                self.asked[key] = Wait(time, waits.mark)
        return found.select(list(self.columns)).take(new).combine_chunks().to_batches()[0] if new else keys.slice(0, 0)

    def asked_keys(self) -> pa.RecordBatch:
        """All keys that are asked and not answered."""
        return self._waits(self.asked).select(list(self.columns))

    def waits(self) -> pa.RecordBatch:
        """All keys that are asked and not answered, and who waits for them."""
        return self._waits(self.asked)

    def _waits(self, asked: Mapping[KeyValues, Wait]) -> pa.RecordBatch:
        keys = zip(*asked, strict=True) if asked else ([] for _ in self.columns)
        arrays = []
        for type, values in zip(self._types, keys, strict=True):
            is_float = pa.types.is_floating(type)
            arrays.append(pa.array([np.nan if is_float and v == _NOT_A_NUMBER else v for v in values], type))
        since, mark = [wait.since for wait in asked.values()], [wait.mark for wait in asked.values()]
        arrays += [pa.array(since, pa.int64()), pa.array(mark, pa.int64())]
        return pa.record_batch(arrays, [*self.columns, _SINCE, _MARK])

    def _of_waits(self, batch: pa.RecordBatch) -> dict[KeyValues, Wait]:
        told = zip(batch.column(_SINCE).to_pylist(), batch.column(_MARK).to_pylist(), strict=True)
        return dict(zip(values(batch.select(list(self.columns))), (Wait(*one) for one in told), strict=True))

    def wait_again(self, batch: pa.RecordBatch) -> None:
        """Rows wait for these keys, as another slot or an earlier run told (`waits`). Its marks tell nothing here: rows
        have other numbers."""
        for key, wait in self._of_waits(batch).items():
            known = self.asked.get(key)
            self.asked[key] = Wait(wait.since if known is None else min(wait.since, known.since), 0)

    def answer(self, keys: pa.RecordBatch) -> dict[KeyValues, Wait]:
        """These keys are answered; returns who waited for them. Keys that nobody waits for were answered before."""
        found: dict[KeyValues, Wait] = {}
        which: list[int] = []
        for number, key in enumerate(values(keys)):
            waits = self.asked.pop(key, None)
            if waits is not None:
                found[key] = waits
                which.append(number)
        if which:
            self.cover(keys if len(which) == keys.num_rows else keys.take(pa.array(which)))
        return found

    def only(self, batch: pa.RecordBatch, keys: Collection[KeyValues]) -> pa.RecordBatch:
        """The rows of a batch that have one of these keys."""
        keep = [key in keys for key in values(batch.select(list(self.columns)))]
        return batch if all(keep) else batch.filter(pa.array(keep))

    def cover(self, keys: pa.RecordBatch) -> None:
        """All rows of the table with these keys are there."""
        known = {self._of_columns[name]: keys.column(name) for name in self.columns}
        needed = self.answered.layout.needed
        of_keys = {key: evaluate(key, known, keys.num_rows, ErrorCount()) for key in needed}
        self.answered.rows.append(of_keys, np.zeros(keys.num_rows, np.int64), None)
        self.answered.build(0, keys.num_rows)

    def commit(self) -> None:
        """Events before it cannot be undone any more."""
        self.answered.commit()
        self._committed = dict(self.asked)

    def wind_back(self) -> None:
        """Undo everything since the last commit."""
        self.answered.wind_back()
        self.asked = dict(self._committed)

    def saved(self) -> IndexSnapshot:
        """A snapshot for another process."""
        asked = (in_bytes([self._waits(asked)]) for asked in (self.asked, self._committed))
        return IndexSnapshot(self.answered.saved(), *asked)

    def restore(self, saved: IndexSnapshot) -> None:
        """Restore from a snapshot."""
        self.answered.restore(saved.answered)
        self.asked, self._committed = (self._of_waits(of_bytes(b)[0]) for b in (saved.asked, saved.committed))


def values(keys: pa.RecordBatch | pa.Table) -> Iterator[KeyValues]:
    """The keys as values that can be compared and hashed; NaN equals itself.

    >>> list(values(pa.record_batch({"a": [1, 2], "b": ["x", "y"]})))
    [(1, 'x'), (2, 'y')]
    """
    if not keys.num_columns:
        return repeat((), keys.num_rows)
    return zip(*(_hashable(column) for column in keys.columns), strict=True)


def _hashable(column: pa.Array | pa.ChunkedArray) -> list[object]:
    values = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [_NOT_A_NUMBER if value != value else value for value in values]
    return [repr(value) for value in values] if pa.types.is_nested(column.type) else values


def in_bytes(batches: Sequence[pa.RecordBatch]) -> bytes:
    """Record batches of one schema as bytes."""
    written = pa.BufferOutputStream()
    with pa.ipc.new_stream(written, batches[0].schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return bytes(written.getvalue())


def of_bytes(data: bytes) -> list[pa.RecordBatch]:
    """The record batches that `in_bytes` wrote."""
    return list(pa.ipc.open_stream(data))
