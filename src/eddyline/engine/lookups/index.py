"""What a slot knows through one index of a table that is asked: which keys are answered, and which are asked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Expr
from eddyline.bound.functions import cast
from eddyline.bound.functions.arrays import truth
from eddyline.bound.types import decode, physical
from eddyline.codec import Snapshot
from eddyline.engine.lookups.look_up import Answer, DeadRows
from eddyline.engine.lookups.pending_keys import AskedKeys, AwaitedKeys
from eddyline.plan.bindings import IndexBinding
from eddyline.plan.partition import of_stream
from eddyline.routing.asker import Gather
from eddyline.routing.packet import Packet
from eddyline.state.arena import Arena
from eddyline.state.key_values import KeyValues, values
from eddyline.state.keys import combine, encode, is_exact
from eddyline.state.layout import Layout
from eddyline.state.probing import NO_BOUND
from eddyline.state.rows import Rows
from eddyline.state.stem import SteM, StemSnapshot

Ints = NDArray[np.int64]

_ROOM = 1 << 16


class IndexSnapshot(Snapshot, frozen=True):
    """The EOT tuples, and the keys that are asked, at present and at the last commit."""

    answered: StemSnapshot
    asked: bytes
    committed: bytes


class Index:
    """What is known through one index of a table."""

    def __init__(self, arena: Arena, ways: Sequence[IndexBinding]) -> None:
        self.columns = tuple(column.name for column in ways[0].columns)
        self._of_columns = {column.name: of_stream(column) for way in ways for column in way.columns}
        by_way = [tuple(map(of_stream, way.keys)) for way in ways]
        keys = tuple(dict.fromkeys(key for one in by_way for key in one))
        layout = Layout(False, False, stored=(), keys=keys, indexes=tuple(dict.fromkeys(by_way)), order_keys=())
        self.answered = SteM(arena, layout)
        """The EOT tuples."""
        self.asked = AskedKeys([pa.field(column.name, column.type) for column in ways[0].columns])
        self._committed = self.asked.copy()
        self._passed = np.zeros(1, np.int64)

    def lacking(self, way: IndexBinding, packet: Packet, rows: Sequence[Rows]) -> Ints:
        """The numbers of the tuples that may match a row which is not in the SteM of the table."""
        if not self.answered.held:
            return np.arange(packet.size)
        on, bound = tuple(map(of_stream, way.keys)), way.bound_by[0]
        if len(on) == 1 and bound.source is not None and is_exact(physical(on[0].type)):
            keys = rows[bound.source].key_values((bound.expr,))
            return self.answered.prober.lacking(on, keys, packet.rows[bound.source])
        return np.flatnonzero(~self._covers(on, way, packet, rows))

    def _covers(
        self, on: tuple[Expr, ...], way: IndexBinding, packet: Packet, rows: Sequence[Rows]
    ) -> NDArray[np.bool_]:
        """For which tuples all rows that they can match are in the SteM of the table."""
        found = np.zeros(packet.size, np.bool_)
        codes = [self._codes(b.source, b.expr, packet, rows) for b in way.bound_by]
        for tuples, answers in self._probe(on, combine(codes)):
            same = np.ones(tuples.size, np.bool_)
            for key, bound in zip(on, way.bound_by, strict=True):
                if bound.source is not None:
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

    def answer(self, keys: pa.RecordBatch) -> AwaitedKeys:
        """These keys are answered; returns who waited for them. Keys that nobody waits for were answered before."""
        waited = self.asked.take(keys)
        if waited.keys.num_rows:
            self.cover(waited.keys)
        return waited

    def rows_of(self, waited: AwaitedKeys, answers: Sequence[Answer]) -> pa.RecordBatch:
        """The rows of answers that have a key for which tuples waited. A key that is in several counts in one."""
        parts = [answer.rows for answer in answers]
        if waited.which is not None:
            keys = _awaited_of(waited, waited.which, answers)
            parts = [rows.filter(pa.array(self._among(rows, mine))) for rows, mine in zip(parts, keys, strict=True)]
        return pa.concat_batches(parts)

    def dead_of(self, waited: AwaitedKeys, answers: Sequence[Answer]) -> list[DeadRows]:
        """The same of their rows that cannot be read. A row whose key cannot be read counts too."""
        parts = [answer.dead for answer in answers]
        if waited.which is not None:
            keys = _awaited_of(waited, waited.which, answers)
            parts = [d and d.having(self._among(d.rows, mine)) for d, mine in zip(parts, keys, strict=True)]
        return [dead for dead in parts if dead is not None]

    def _among(self, batch: pa.RecordBatch, keys: Collection[KeyValues]) -> NDArray[np.bool_]:
        found = values(batch.select(list(self.columns)))
        return np.array([key in keys or None in key for key in found], np.bool_)

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
        self._committed = self.asked.copy()

    def wind_back(self) -> None:
        """Undo everything since the last commit."""
        self.answered.wind_back()
        self.asked = self._committed.copy()

    def saved(self) -> IndexSnapshot:
        """A snapshot for another process."""
        asked = (in_bytes([asked.saved()]) for asked in (self.asked, self._committed))
        return IndexSnapshot(self.answered.saved(), *asked)

    def restore(self, saved: IndexSnapshot) -> None:
        """Restore from a snapshot."""
        self.answered.restore(saved.answered)
        self.asked.restore(of_bytes(saved.asked)[0])
        self._committed.restore(of_bytes(saved.committed)[0])


def _awaited_of(waited: AwaitedKeys, which: Ints, answers: Sequence[Answer]) -> list[set[KeyValues]]:
    """The awaited keys of each answer."""
    ends = np.cumsum([answer.keys.num_rows for answer in answers])
    cuts = [0, *np.searchsorted(which, ends).tolist()]
    return [set(waited.values[first:last]) for first, last in pairwise(cuts)]


def keys_of(way: IndexBinding, packet: Packet, gather: Gather) -> tuple[pa.RecordBatch, Ints]:
    """The keys that tuples ask for, and which tuples these are: a value that the column of the table cannot have
    matches no row."""
    known = gather(packet, [b.expr for b in way.bound_by])
    columns, keep = [], np.ones(packet.size, np.bool_)
    for column, bound in zip(way.columns, way.bound_by, strict=True):
        value = evaluate(bound.expr, known, packet.size, ErrorCount())
        if bound.expr.type != column.type:
            narrow = cast(bound.expr, column.type, try_=True)
            fits = evaluate(narrow, known, packet.size, ErrorCount())
            back = evaluate(cast(narrow, bound.expr.type), known, packet.size, ErrorCount())
            keep &= (encode(back) == encode(value)) & truth(fits.is_valid())
            value = fits
        value = decode(value)
        columns.append(value if value.type == column.type else value.cast(column.type))
    which = np.flatnonzero(keep)
    batch = pa.record_batch(columns, [column.name for column in way.columns])
    return (batch if which.size == packet.size else batch.take(pa.array(which))), which


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
