"""A table that is asked, as a slot knows it: its indexes, and a scan that is under way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.model import BoundQuery, BoundStream
from eddyline.codec import Snapshot
from eddyline.engine.lookups.index import Index, in_bytes, keys_of, of_bytes
from eddyline.engine.lookups.look_up import DeadRows, Request
from eddyline.engine.lookups.method_chooser import Competing
from eddyline.engine.lookups.pending_keys import AwaitedKeys
from eddyline.engine.tuning import EngineTuning
from eddyline.errors import InternalError
from eddyline.plan.bindings import IndexBinding
from eddyline.plan.plan import Plan
from eddyline.routing.asker import Gather
from eddyline.routing.decisions import Decision
from eddyline.routing.packet import Packet
from eddyline.state.arena import Arena
from eddyline.state.key_values import KeyValues, values
from eddyline.state.rows import Rows

_FEW = 64
"""Fewer keys than these that are answered do not tell whether keys have rows."""


class ScanSnapshot(Snapshot, frozen=True):
    """The rows that a scan has brought, those that it will bring again, how many batches of them are committed, and for
    each part the rows that cannot be read: themselves, their texts and their reasons."""

    scanned: bytes
    again: bytes
    dead: tuple[tuple[bytes, bytes, bytes], ...]
    committed: int


@dataclass
class ScannedKeys:
    """Where the rows with a key are, in the parts of a scan. Each row is placed once, when an index has answered."""

    parts: int = 0
    """How many parts are placed."""
    places: dict[KeyValues, list[tuple[int, int]]] = field(default_factory=dict)
    """By key, the part of each row and its place there."""

    def add(self, scanned: Sequence[pa.RecordBatch], columns: list[str]) -> None:
        """Place the rows of the parts that are new."""
        for part in range(self.parts, len(scanned)):
            for row, key in enumerate(values(scanned[part].select(columns))):
                self.places.setdefault(key, []).append((part, row))
        self.parts = len(scanned)

    def rows(self, scanned: Sequence[pa.RecordBatch], keys: Iterable[KeyValues]) -> list[pa.RecordBatch]:
        """The rows with these keys."""
        found: dict[int, list[int]] = {}
        for part, row in (place for key in keys for place in self.places.get(key, ())):
            found.setdefault(part, []).append(row)
        return [scanned[part].take(pa.array(rows)) for part, rows in found.items()]


@dataclass
class KnownTable:
    """What a slot knows of one table."""

    stream: BoundStream
    sources: tuple[int, ...]
    indexes: dict[int, Index]
    """By the first access method of each."""
    scan: int | None
    """The access method that is a scan."""
    competing: Competing
    """Which access methods are asked."""
    scanned: list[pa.RecordBatch] = field(default_factory=list)
    """The rows that a scan has brought which has not ended."""
    committed: int = 0
    """How many of these batches came before the last commit."""
    again: Counter[KeyValues] = field(default_factory=Counter)
    """The rows that a scan which was begun again will bring for the second time."""
    dead: list[DeadRows] = field(default_factory=list)
    """The rows that cannot be read of a scan which has not ended. They are told when it ends: then no scan that begins
    again brings them for the second time."""
    places: dict[tuple[str, ...], ScannedKeys] = field(default_factory=dict)
    """Where the scanned rows with a key are, by the columns of the index."""

    def lacking(self, ways: Sequence[IndexBinding], packet: Packet, rows: Sequence[Rows]) -> Packet:
        """The tuples that may match a row which no answer has brought. `ways` are those in which they ask."""
        for way in ways:
            lacking = self.indexes[way.method].lacking(way, packet, rows)
            packet = packet if lacking.size == packet.size else packet.take(lacking)
            if not packet.size:
                break
        return packet

    def check_asked(self, ways: Sequence[IndexBinding], packet: Packet, gather: Gather) -> None:
        """Check ProbeCompletion: each of these tuples, which match rows that no answer has brought, waits for a key, or
        its lookup has failed, or no row can have its key. And BoundedRepetition: no key that is answered is asked."""
        is_asked = np.zeros(packet.size, np.bool_)
        for way in ways:
            keys, which = keys_of(way, packet, gather)
            asked, has_key = self.indexes[way.method].asked, np.zeros(packet.size, np.bool_)
            if self.indexes[way.method].has(asked.keys).any():
                raise InternalError(f"table {self.stream.name} is asked for a key that it has answered")
            has_key[which] = ~asked.has(keys) & ~asked.has_failed(keys)
            is_asked |= ~has_key
        if not is_asked.all():
            raise InternalError(f"a tuple has probed table {self.stream.name}, and has not asked for its rows")

    def finds(self, method: int, rows: int) -> bool:
        """Whether at least every second key has a row, as far as answers have come: `rows` have."""
        answered = self.indexes[method].answered.built
        return answered < _FEW or 2 * rows >= answered

    def take_scanned(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of a scan; returns those that are new."""
        for index in self.indexes.values():
            rows = without(rows, index.has(rows))
        if self.again:
            rows = beyond(rows, self.again)
        self.scanned.append(rows)
        return rows

    def take_dead(self, dead: DeadRows | None) -> None:
        """Rows of a scan that cannot be read."""
        if dead is not None:
            self.dead.append(dead)

    def load(self, rows: pa.RecordBatch) -> None:
        """Rows that are there; the scan has not ended, and its rows are among them."""
        for index in self.indexes.values():
            rows = without(rows, index.has(rows))
        self.scanned.append(rows)
        self.committed = len(self.scanned)

    def saved(self) -> ScanSnapshot:
        """A snapshot of the scan for another process."""
        left = Counter(self.again)
        coming = [_among(rows, left) for rows in self.scanned] if left else []
        scanned, again = (in_bytes(some) if some else b"" for some in (self.scanned, coming))
        dead = tuple(
            (in_bytes([d.rows]), in_bytes([d.texts]), in_bytes([pa.record_batch({"reason": d.reasons})]))
            for d in self.dead
        )
        return ScanSnapshot(scanned, again, dead, self.committed)

    def restore(self, saved: ScanSnapshot) -> None:
        """Restore from a snapshot."""
        self.scanned = of_bytes(saved.scanned) if saved.scanned else []
        again = of_bytes(saved.again) if saved.again else []
        self.again = Counter(row for rows in again for row in values(rows))
        self.committed = saved.committed
        found = [tuple(of_bytes(data)[0] for data in parts) for parts in saved.dead]
        self.dead = [DeadRows(rows, texts, reasons.column(0)) for rows, texts, reasons in found]
        self.places.clear()

    def wind_back(self) -> None:
        """Undo everything since the last commit. If there was a scan it begins again, and brings the rows again that
        came before."""
        del self.scanned[self.committed :]
        self.dead.clear()
        self.places.clear()
        self.again = Counter(row for part in self.scanned for row in values(part))

    def ask_again(self, is_scanned: bool) -> list[Request]:
        """Requests for everything that is asked; and for the scan, if it is under way."""
        self.competing.begin()
        asked = [(number, index.asked.keys) for number, index in self.indexes.items() if index.asked]
        found = [request for number, keys in asked for request in self.competing.ask(number, keys)]
        if self.scan is not None and is_scanned:
            self.wind_back()
            found.append(Request(self.stream.name, self.scan, pa.record_batch([])))
        return found

    def marks_of(self, rows: pa.RecordBatch, index: Index, waited: AwaitedKeys) -> NDArray[np.int64]:
        """The marks at which rows were asked for that an index has answered."""
        marks = waited.marks_of(rows.select(list(index.columns)))
        for other in self.indexes.values():  # who waits for a row by another index gets it now: it is there once
            if other is not index and other.asked:
                marks = other.asked.least_marks(rows.select(list(other.columns)), marks)
        return marks

    def beside_scan(self, rows: pa.RecordBatch, index: Index, keys: Collection[KeyValues]) -> pa.RecordBatch:
        """The rows of an answer without those that the scan has brought so far: of equal rows as many are left out as
        it has brought."""
        places = self.places.setdefault(index.columns, ScannedKeys())
        places.add(self.scanned, list(index.columns))
        found = places.rows(self.scanned, keys)
        return beyond(rows, Counter(row for some in found for row in values(some))) if found else rows

    def end_scan(self) -> None:
        """The scan has ended, and this is committed."""
        self.scanned.clear()
        self.again.clear()
        self.places.clear()


def known_tables(
    query: BoundQuery,
    plan: Plan,
    arena: Arena,
    clock: Callable[[], float],
    tuning: EngineTuning,
    decisions: list[Decision],
) -> dict[str, KnownTable]:
    """The tables of a query that are asked, by name; nothing is known of them yet. `decisions` gets a record of each
    choice between their access methods."""
    found: dict[str, KnownTable] = {}
    for stream in (source.stream for source in query.sources):
        if stream.is_asked and stream.name not in found:
            mine = tuple(n for n, s in enumerate(query.sources) if s.stream.name == stream.name)
            by_method: dict[int, list[IndexBinding]] = {}
            for way in (way for n in mine for way in plan.bindings[n]):
                by_method.setdefault(way.method, []).append(way)
            scan = next((m for m, method in enumerate(stream.methods) if method.is_scan), None)
            indexes = {method: Index(arena, ways) for method, ways in by_method.items()}
            competing = Competing(stream, indexes, scan, clock, tuning, decisions)
            found[stream.name] = KnownTable(stream, mine, indexes, scan, competing)
    return found


def without(rows: pa.RecordBatch, known: NDArray[np.bool_]) -> pa.RecordBatch:
    return rows.filter(pa.array(~known)) if known.any() else rows


def beyond(rows: pa.RecordBatch, there: Counter[KeyValues]) -> pa.RecordBatch:
    """The rows without those that are there already: of equal rows as many are left out as are there. Those are taken
    out of `there`."""
    return rows.filter(pc.invert(_which(rows, there)))


def _among(rows: pa.RecordBatch, some: Counter[KeyValues]) -> pa.RecordBatch:
    """The rows that are among some, of equal rows as many as those are; they are taken out of them."""
    return rows.filter(_which(rows, some))


def _which(rows: pa.RecordBatch, some: Counter[KeyValues]) -> pa.BooleanArray:
    found = []
    for row in values(rows):
        found.append(some[row] > 0)
        some[row] -= found[-1]
    return pa.array(found, pa.bool_())
