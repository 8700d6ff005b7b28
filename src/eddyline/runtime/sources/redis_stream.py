"""Streams of a Redis or Valkey server: each entry is a row, its fields are the columns, as text.

The server numbers the entries of a key with ids that only grow, and an entry never changes. So the entries between two
ids, both recorded before reading, are the same whenever they are read. An offset has for each key the last id, and the
number of entries up to it. From the numbers we know how many entries a range must have; and if more entries are gone
from a key than were read, an unread one is among them. So entries that are trimmed or deleted too early end the job
instead of being missed silently. If fewer entries were ever added to a key than the job has read and still sees, the
key was deleted and made again: it is another one.

Several keys are one stream in the order of ids, which is the order of arrival: no key is read beyond an id before which
another key may have more entries. Otherwise rows of the slower key would be late only because of the reading.

Only XRANGE and XINFO STREAM are sent, which change nothing on the server. Entries become columns without a Python
object for an entry or a value.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.nested import Bad
from eddyline.bound.types import sql_type
from eddyline.cql.declaration import Declaration
from eddyline.errors import SettingError
from eddyline.runtime.options import Options
from eddyline.runtime.sources.columns import chunk_of
from eddyline.runtime.sources.redis_connection import Connection, NoSuchKey, server_of
from eddyline.runtime.sources.resp import BULK, LIST, Reply
from eddyline.runtime.sources.source import Chunk, Mark, Wanted, dead_rows, marked, no_rows, ranges
from eddyline.runtime.values.json import is_bytes
from eddyline.runtime.values.text import cast_or_null, readable_type

_PAGE = 8192
"""Entries of one request: the server does nothing else while it answers."""
_POLL = 0.1
"""Seconds between two looks for new entries."""

EntryIds = NDArray[np.uint64]
"""Ids, one a row: milliseconds, and a number within the millisecond."""
_NONE: EntryIds = np.empty((0, 2), np.uint64)
_LAST = ((1 << 64) - 1, (1 << 64) - 1)
"""The greatest id."""
KeyOffsets = Mapping[str, Sequence[Any]]
"""For each key the id up to which entries were read, and how many entries were ever added up to it. It is JSON."""
BEGINNING: KeyOffsets = {}
"""The offset of a job that has read nothing."""


@dataclass(frozen=True)
class Entries:
    """A part of a stream that can be read by itself: the entries of a key after one id up to another, and their
    number."""

    key: str
    after: str
    upto: str
    rows: int


class RedisStream:
    """A stream of a Redis or Valkey server. Options: keys; host, port and db, or url; cluster; password_env (the
    environment variable that has the password); and start: 0, or $ for entries from now on. Without `follow` it ends at
    the entry that is the last one at the first request."""

    may_block = True

    def __init__(
        self,
        declaration: Declaration,
        follow: bool = False,
        sleep: Callable[[float], None] = time.sleep,
        page: int = _PAGE,
    ) -> None:
        kind, name = declaration.kind, declaration.name
        if declaration.columns is None:
            raise SettingError(f"redis-stream needs the columns: CREATE {kind} {name} (ts TIMESTAMP, ...)")
        for column, type_ in declaration.columns:
            if not readable_type(type_):
                raise SettingError(
                    f"column {column}: a value of type {sql_type(type_)} cannot be read from redis-stream"
                )
        self.schema = pa.schema([pa.field(column, type_) for column, type_ in declaration.columns])
        options = Options.of(declaration)
        self._keys = options.different("keys", name)
        self._new_only = options.choice("start", ("0", "$")) == "$"
        server = server_of(options, options.flag("cluster", False))
        options.done()
        self._follow, self._sleep, self._page = follow, sleep, page
        self._connection = Connection(server, sleep)
        self._targets: dict[str, str] = {}

    @property
    def endless(self) -> bool:
        """Whether the stream waits for more entries."""
        return self._follow

    def plan(self, start: KeyOffsets, limit: int) -> KeyOffsets:
        """The end of a batch of `limit` rows (or a few more, with equal ids) that begins at `start`; `start` if there
        are no entries now. For a key that `start` does not have, the end has only the position where reading begins,
        and the next batch reads from there: so the beginning of a job is recorded before it reads, and a first batch
        that is run again is the same."""
        known = [key for key in self._keys if key in start]
        end = {key: self._first(key) for key in self._keys if key not in start}
        for key, (ids, is_all) in self._next({key: start[key][0] for key in known}, limit).items():
            at, count = start[key]
            self._check_same(key, at, count, len(ids))
            if len(ids):
                at = _text(ids[-1])
            if is_all and not self._follow:
                at = max(at, self._target(key), key=_id)
            end[key] = [at, count + len(ids)]
        return {key: end[key] for key in self._keys}

    def ended(self, end: KeyOffsets) -> bool:
        """Whether there are no entries after an offset, now and later. JobError if a key is another one: of those that
        are gone or have become shorter, nothing would be read that could tell it."""
        if not self._targets:
            self.check_same(end)
        return not self._follow and all(key in end and _id(end[key][0]) >= _id(self._target(key)) for key in self._keys)

    def check_same(self, offset: KeyOffsets) -> None:
        """JobError if a key is not the one that the offset is of, or has lost entries after it."""
        for key in self._keys:
            if key in offset:
                self._check_same(key, *offset[key])

    def backlog(self, end: KeyOffsets) -> int:
        """The number of entries after an offset now. Entries that were deleted since the job began count too."""
        return sum(max(0, self._info(key).counted - end[key][1]) for key in self._keys if key in end)

    def between(self, start: KeyOffsets, end: KeyOffsets) -> list[Entries]:
        """The rows of a batch, in parts that can be read by themselves: one for each key with entries in the batch."""
        parts = (Entries(k, start[k][0], end[k][0], end[k][1] - start[k][1]) for k in end if k in start)
        return [part for part in parts if part.rows]

    def pieces(self, time: str | None = None) -> list[Entries]:
        """All current entries, for a table."""
        start = self.plan(BEGINNING, 1)
        return self.between(start, self.plan(start, sys.maxsize))

    def read_piece(self, piece: Entries, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a part; JobError if entries of it are gone."""
        try:
            for page in self._pages(piece):
                yield from self._chunks({name: page.column(name) for name in wanted.columns}, len(page.ids), wanted)
        finally:
            self.close()

    def read_between(self, start: KeyOffsets, end: KeyOffsets, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a batch in the order of their ids; those of all keys are in memory together."""
        pages = [page for piece in self.between(start, end) for page in self._pages(piece)]
        if pages:
            self.check_same(end)
            ids = np.concatenate([page.ids for page in pages])
            order = np.lexsort((ids[:, 1], ids[:, 0]))
            columns = {name: pa.concat_arrays([p.column(name) for p in pages]).take(order) for name in wanted.columns}
            yield from self._chunks(columns, len(ids), wanted)

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        """All rows, in the order of their ids."""
        return self.read_from(BEGINNING, wanted)

    def read_from(self, start: KeyOffsets, wanted: Wanted, most: int | None = None) -> Iterator[Chunk]:
        """The rows after an offset, in the order of their ids. The last chunk of each range has a mark."""
        try:
            for at, end in ranges(self, start, most or self._page, lambda: self._sleep(_POLL)):
                yield from marked(self.read_between(at, end, wanted), Mark(end), self.schema, wanted)
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection; it is opened again when it is needed."""
        self._connection.close()

    def _chunks(self, columns: Mapping[str, pa.Array], rows: int, wanted: Wanted) -> Iterator[Chunk]:
        """Chunks with the bytes converted to the declared types. Rows that are not valid text come as chunks of their
        own, so that rows keep their order."""
        texts = dict(columns)
        broken: Bad = np.zeros(rows, dtype=np.bool_)
        reasons = pa.nulls(rows, pa.string())
        for name, values in columns.items():
            if is_bytes(self.schema.field(name).type):
                continue
            texts[name], bad = cast_or_null(lambda part: part.cast(pa.string()), values)
            if bad is not None and name in wanted.needed:
                broken |= bad
                reason = pc.if_else(pa.array(bad), f"column {name}: the value is not text in UTF-8", None)
                reasons = pc.coalesce(reasons, reason)
        cuts = [0, *(np.flatnonzero(np.diff(broken)) + 1).tolist(), rows]
        for low, high in itertools.pairwise(cuts):
            part = {name: values.slice(low, high - low) for name, values in texts.items()}
            if broken[low]:
                shape = pa.RecordBatch.from_pydict(part)
                dead = dead_rows(self.schema, shape, reasons.slice(low, high - low))
                yield Chunk(no_rows(self.schema, wanted), dead)
            else:
                yield chunk_of(self.schema, wanted, part, high - low)

    # The server

    def _pages(self, piece: Entries) -> Iterator[Page]:
        read = 0
        for page in self._range(piece.key, piece.after, piece.upto, piece.rows + 1):
            read += len(page.ids)
            yield page
        if read != piece.rows:
            raise self._connection.failed(
                f"of {piece.rows} entries of {piece.key} after {piece.after} up to {piece.upto} there are {read} left;"
                " entries must not be trimmed or deleted before the batch that has them is committed"
            )

    def _range(self, key: str, after: str, upto: str, most: int) -> Iterator[Page]:
        """The entries after an id, `most` of them, a page at a time."""
        while most > 0:
            asked = min(most, self._page)
            page = Page(self._connection.ask(key, "XRANGE", key, f"({after}", upto, "COUNT", str(asked)))
            if len(page.ids):
                yield page
            if len(page.ids) < asked:
                return
            after = _text(page.ids[-1])
            most -= asked

    def _next(self, start: Mapping[str, str], limit: int) -> dict[str, tuple[EntryIds, bool]]:
        """The first `limit` ids after `start` over all keys, and for each key whether it has no more. The next page is
        always of the key that was read the least far, until the ids are known."""
        share = max(1, limit // max(1, len(start)))
        found = {key: self._ids(key, after, share) for key, after in start.items()}
        more = {key: tuple(ids[-1]) for key, ids in found.items() if len(ids) == share}
        while more and sum(_up_to(ids, min(more.values())) for ids in found.values()) < limit:
            key = min(more, key=lambda key: more[key])
            further = self._ids(key, _text(more.pop(key)), share)
            found[key] = np.concatenate([found[key], further])
            if len(further) == share:
                more[key] = tuple(further[-1])
        last = min(more.values(), default=_LAST)
        known = np.concatenate([_NONE, *(ids[: _up_to(ids, last)] for ids in found.values())])
        if len(known) > limit:
            last = tuple(known[np.lexsort((known[:, 1], known[:, 0]))[limit - 1]])
        taken = {key: ids[: _up_to(ids, last)] for key, ids in found.items()}
        return {key: (ids, key not in more and len(ids) == len(found[key])) for key, ids in taken.items()}

    def _ids(self, key: str, after: str, most: int) -> EntryIds:
        pages = [page.ids for page in self._range(key, after, "+" if self._follow else self._target(key), most)]
        return np.concatenate([_NONE, *pages])

    def _first(self, key: str) -> Sequence[Any]:
        """The offset where reading a key begins. Entries that are already gone count as read."""
        info = self._info(key)
        return [info.last, info.counted] if self._new_only else ["0-0", info.counted - info.length]

    def _target(self, key: str) -> str:
        if key not in self._targets:
            self._targets[key] = self._info(key).last
        return self._targets[key]

    def _check_same(self, key: str, at: str, count: int, after: int = 0) -> None:
        """JobError if entries of a key were trimmed or deleted that were not read, or if it is another key: `count`
        entries were read, up to the id `at`, and at least `after` are there after it."""
        info = self._info(key)
        if info.counted - info.length > count:
            raise self._connection.failed(
                f"entries of {key} after {at} were trimmed or deleted before they were read; trim up to what is"
                " committed, or start anew without the checkpoint"
            )
        after = max(after, info.length) if _id(info.first) > _id(at) else after
        if _id(info.last) < _id(at) or (info.added is not None and count + after > info.added):
            raise self._connection.failed(
                f"{key} is not the stream that was read up to {at}: it was deleted and made again, or has lost entries"
                f" (it ends at {info.last}); give the job a new checkpoint"
            )

    def _info(self, key: str) -> KeyInfo:
        try:
            found = self._connection.ask(key, "XINFO", "STREAM", key).value()
        except NoSuchKey:
            return KeyInfo("0-0", "0-0", 0, 0)
        named = dict(zip(found[::2], found[1::2], strict=True))
        first = named[b"first-entry"]
        return KeyInfo(
            "0-0" if first is None else first[0].decode(),
            named[b"last-generated-id"].decode(),
            named[b"length"],
            named.get(b"entries-added"),
        )


@dataclass(frozen=True)
class KeyInfo:
    """What the server knows of a key."""

    first: str
    """The id of the first entry that is there."""
    last: str
    """The last id ever given."""
    length: int
    """The number of entries that are there."""
    added: int | None
    """The number of entries ever added; None on servers that do not count them."""

    @property
    def counted(self) -> int:
        """The number of entries ever added, or that are there."""
        return self.length if self.added is None else self.added


class Page:
    """The reply to XRANGE as columns, without a Python object for an entry."""

    def __init__(self, reply: Reply) -> None:
        kinds, starts, lengths = reply.tokens.T
        bulk = np.flatnonzero(kinds == BULK)
        # Arrow needs adjacent values: the bytes between our values count as values too, so every second one is ours.
        offsets = np.column_stack([starts[bulk], starts[bulk] + lengths[bulk]]).ravel()
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(reply.data)]
        self._values = pa.LargeBinaryArray.from_buffers(pa.large_binary(), max(len(offsets) - 1, 0), buffers)
        lists = np.flatnonzero(kinds == LIST)[1:]  # alternately the list of an entry and that of its fields
        of_entry, of_fields = lists[::2], lists[1::2]
        is_id = np.zeros(len(kinds), dtype=np.bool_)
        is_id[of_entry + 1] = True
        others = np.flatnonzero(~is_id[bulk])  # alternately a name and its value
        self._names, self._places = self._values.take(others[::2] * 2), others[1::2] * 2
        self._entry = np.repeat(np.arange(len(of_entry)), lengths[of_fields] // 2)
        parts = pc.split_pattern(self._values.take(np.flatnonzero(is_id[bulk]) * 2).cast(pa.string()), "-").flatten()
        self.ids: EntryIds = parts.cast(pa.uint64()).to_numpy(zero_copy_only=False).reshape(-1, 2)

    def column(self, name: str) -> pa.Array:
        """The values of a field; NULL if an entry does not have the field, the last value if it has several."""
        mine = pc.equal(self._names, pa.scalar(name.encode(), pa.large_binary())).to_numpy(zero_copy_only=False)
        places = np.full(len(self.ids), -1)
        places[self._entry[mine]] = self._places[mine]
        return self._values.take(pa.array(places, mask=places < 0))


def _id(text: str) -> tuple[int, int]:
    """An id as numbers.

    >>> _id("10-2") > _id("9-3")
    True
    """
    milliseconds, _, number = text.partition("-")
    return int(milliseconds), int(number)


def _text(id_: Iterable[int]) -> str:
    return "{}-{}".format(*id_)


def _up_to(ids: EntryIds, last: tuple[int, ...]) -> int:
    """How many of these ascending ids are at most `last`."""
    high, low = ids[:, 0], ids[:, 1]
    return int(np.count_nonzero((high < last[0]) | ((high == last[0]) & (low <= last[1]))))
