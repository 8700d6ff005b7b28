"""Topics of Kafka as a stream, read by librdkafka without a consumer group.

An offset has for each partition the offset of the next message. The messages of a partition never change their offsets,
so the messages between two offsets, both recorded before reading, are the same whenever they are read. Offsets may have
no message: those of aborted transactions, of marks of transactions, and of messages that compaction removed. So the end
of a range is reached when a later message comes or the partition ends there. Messages that retention removed before
they were read end the job instead of being missed silently.

A topic is known by its id, which the offset has too. If a topic of this name has another id, it was deleted and made
again, and the job ends. The id is asked for after messages were fetched and before their rows are given: since an id
never comes back, they are messages of the topic that the job has read before.

Several partitions are one stream in the order of their messages' timestamps: a batch takes from each partition the
messages up to one moment, as far as there are more messages than the batch can take. Otherwise rows of a partition with
more messages would be late only because of the reading.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Message

from eddyline.cql.declaration import Declaration
from eddyline.errors import SettingError
from eddyline.runtime.kafka_client import KafkaServers
from eddyline.runtime.options import Options, instant
from eddyline.runtime.sources.csv_text import CsvOptions
from eddyline.runtime.sources.kafka_cluster import (
    BEGINNING_OF_LOG,
    END,
    KafkaCluster,
    PartitionReader,
    partition_of,
    without_collector,
)
from eddyline.runtime.sources.kafka_cut import cut
from eddyline.runtime.sources.kafka_values import MessageRows, of_value, raw_rows, value_rows
from eddyline.runtime.sources.source import Chunk, Mark, Wanted, check_readable, marked, ranges

_PAGE = 16384
"""Messages that become one chunk."""
_RANGE = 8
"""Chunks in a range that is read in the order of time: where it ends is found by asking the cluster many times."""
_POLL = 0.1
"""Seconds between two looks for new messages."""
_LOOK = 1.0
"""Seconds between two looks for new partitions."""
_CLOCKS = 3600.0
"""Seconds by which the clocks of producers may be fast."""
_READERS = 16
"""Idle readers of partitions that a process keeps; each holds up to 8 MB of messages that were fetched ahead."""

PartitionOffsets = Mapping[str, int | str]
"""For each partition the offset of the next message, and for each topic its id. It is JSON."""
BEGINNING: PartitionOffsets = {}
"""The offset of a job that has read nothing."""

_idle: dict[tuple[int, int, str, str], PartitionReader] = {}
"""Readers that their process and thread do not use now, the longest unused first. Tasks of Spark open a source for each
piece, and find the reader of their process here."""


def places(offset: PartitionOffsets) -> dict[str, int]:
    """For each partition the offset of the next message."""
    return {key: value for key, value in offset.items() if isinstance(value, int)}


def topic_ids(offset: PartitionOffsets) -> dict[str, str]:
    """For each topic its id; checkpoints of older versions have none."""
    return {topic: value for topic, value in offset.items() if isinstance(value, str)}


@dataclass(frozen=True)
class Messages:
    """A part of a stream that can be read by itself: a range of offsets of a partition. It has at most `rows`
    messages."""

    key: str
    start: int
    end: int

    @property
    def rows(self) -> int:
        """About how many messages."""
        return self.end - self.start


class KafkaSource:
    """Topics of a cluster. Options: servers, topic, format, start, isolation, and those of the format and of the
    connection. Without `follow` it ends at the last message that is there at the first look."""

    may_block = True

    def __init__(
        self,
        declaration: Declaration,
        follow: bool = False,
        sleep: Callable[[float], None] = time.sleep,
        page: int = _PAGE,
    ) -> None:
        options = Options.of(declaration)
        self._servers = KafkaServers.read(options)
        self._topics = options.different("topic", declaration.name)
        self._start = _start(options.text("start", "earliest"))
        committed = options.choice("isolation", ("read_committed", "read_uncommitted")) == "read_committed"
        self._rows = _rows(options, declaration)
        options.done()
        self._servers.config()  # SettingError if a secret is missing
        self.schema = self._rows.schema
        self._follow, self._sleep, self._page = follow, sleep, page
        self._cluster = KafkaCluster(self._servers, committed, sleep)
        self._same = f"{self._servers.servers} {sorted(self._servers.settings.items())} {committed}"
        self._targets: dict[str, int] | None = None
        self._partitions: list[str] = []
        self._ids: dict[str, str] = {}
        self._looked = -1e9
        self._ends: dict[str, int] = {}
        self._moment = 0
        """About the time of the newest message that a batch has taken."""

    @property
    def endless(self) -> bool:
        """Whether the stream waits for more messages."""
        return self._follow

    def plan(self, start: PartitionOffsets, limit: int) -> PartitionOffsets:
        """The end of a batch of about `limit` rows that begins at `start`; `start` if there are no messages now. For a
        partition that `start` does not have, the end has only the offset where reading begins, and the next batch
        reads from there: so the beginning of a job is recorded before it reads, and a first batch that is run again is
        the same."""
        self._look()
        known = places(start)
        self._check_ids(topic_ids(start), self._ids)
        new = [key for key in self._partitions if key not in known]
        end = self._first(new, {partition_of(key)[0] for key in known}) | known
        ends = self._ends if self._targets is None else self._targets
        more = {key: (at, ends[key]) for key, at in known.items() if ends.get(key, at) > at}
        self._check_nothing_lost(known, more)
        if more:
            latest = round((time.time() + _CLOCKS) * 1000)
            cuts, self._moment = cut(more, limit, self._moment, latest, self._cluster.offsets)
            end |= cuts
        return {key: end[key] for key in sorted(end)} | self._ids | topic_ids(start)

    def ended(self, end: PartitionOffsets) -> bool:
        """Whether there are no messages after an offset, now and later."""
        if self._follow:
            return False
        self._look()
        assert self._targets is not None
        at = places(end)
        return all(key in at and at[key] >= last for key, last in self._targets.items())

    def backlog(self, end: PartitionOffsets) -> int:
        """The number of messages after an offset, as of the last plan. Offsets without a message count too."""
        at = places(end)
        return sum(max(0, last - at[key]) for key, last in self._ends.items() if key in at)

    def between(self, start: PartitionOffsets, end: PartitionOffsets) -> list[Messages]:
        """The rows of a batch, in parts that can be read by themselves: one for each partition with messages in it."""
        begin = places(start)
        return [Messages(key, begin[key], at) for key, at in places(end).items() if key in begin and at > begin[key]]

    def check_same(self, offset: PartitionOffsets) -> None:
        """JobError if a topic is not the one that the offset is of: it was deleted and made again."""
        if known := topic_ids(offset):
            self._check_ids(known, self._cluster.ids([*known]))

    def pieces(self, time: str | None = None) -> list[Messages]:
        """All current messages, for a table."""
        start = self.plan(BEGINNING, 1)
        return self.between(start, self.plan(start, sys.maxsize))

    def read_piece(self, piece: Messages, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a part; JobError if messages of it are gone."""
        for page in self._pages(piece):
            yield from self._rows.chunks(page, wanted)

    def read_between(self, start: PartitionOffsets, end: PartitionOffsets, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a batch in the order of their timestamps; those of all partitions are in memory together."""
        pieces = self.between(start, end)
        if len(pieces) == 1:
            for page in self._pages(pieces[0]):
                self.check_same(end)
                yield from self._rows.chunks(page, wanted)
            return
        readers = [self._reader(piece) for piece in pieces]  # all fetch at the same time
        for piece, reader in zip(pieces, readers, strict=True):
            self._give_back(piece, reader)
        found = [list(itertools.chain.from_iterable(self._pages(piece))) for piece in pieces]
        self.check_same(end)
        messages = _in_order(found)
        for low in range(0, len(messages), self._page):
            yield from self._rows.chunks(messages[low : low + self._page], wanted)

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        """All rows, in the order of their timestamps."""
        return self.read_from(BEGINNING, wanted)

    def read_from(self, start: PartitionOffsets, wanted: Wanted, most: int | None = None) -> Iterator[Chunk]:
        """The rows after an offset. The last chunk of each range has a mark."""
        try:
            for at, end in ranges(self, start, most or _RANGE * self._page, lambda: self._sleep(_POLL)):
                yield from marked(self.read_between(at, end, wanted), Mark(end, self.backlog(end)), self.schema, wanted)
        finally:
            self.close()

    def close(self) -> None:
        """Close the connections; they are opened again when they are needed."""
        self._cluster.close()
        for place in [place for place in list(_idle) if place[:3] == self._owner]:
            _idle.pop(place).close()

    # The cluster

    def _pages(self, piece: Messages) -> Iterator[Sequence[Any]]:
        reader = self._reader(piece)
        at = piece.start
        while at < piece.end:
            page = reader.messages(at, piece.end, self._page)
            at = reader.at
            if page:
                yield page
        self._give_back(piece, reader)

    def _reader(self, piece: Messages) -> PartitionReader:
        """A reader of the partition that fetches messages from the start of the piece on."""
        reader = _idle.pop((*self._owner, piece.key), None) or PartitionReader(self._cluster, piece.key)
        reader.start(piece.start)
        return reader

    def _give_back(self, piece: Messages, reader: PartitionReader) -> None:
        _idle[(*self._owner, piece.key)] = reader
        mine = [place for place in list(_idle) if place[:3] == self._owner]
        for place in mine[: max(0, len(mine) - _READERS)]:
            _idle.pop(place).close()

    @property
    def _owner(self) -> tuple[int, int, str]:
        return os.getpid(), threading.get_ident(), self._same

    def _look(self) -> None:
        """Ask the cluster for its partitions and for their ends."""
        if self._targets is not None:
            return
        if time.monotonic() - self._looked > _LOOK:
            self._partitions = self._cluster.partitions(self._topics)
            self._ids = self._cluster.ids(self._topics)
            self._looked = time.monotonic()
        self._ends = self._cluster.offsets(self._partitions, END)
        if not self._follow:
            self._targets = dict(self._ends)

    def _first(self, new: Sequence[str], known: set[str]) -> dict[str, int]:
        """The offsets where reading new partitions begins. A partition that is added to a topic which the job reads
        is read from its beginning, whatever `start` says: its messages are new."""
        added = [key for key in new if partition_of(key)[0] in known]
        others = [key for key in new if key not in added]
        found = self._cluster.offsets(added, BEGINNING_OF_LOG) | self._cluster.offsets(others, self._start)
        return {key: self._ends[key] if offset < 0 else offset for key, offset in found.items()}

    def _check_ids(self, known: Mapping[str, str], now: Mapping[str, str]) -> None:
        for topic, id_ in known.items():
            if now.get(topic, id_) != id_:
                raise self._cluster.failed(
                    f"topic {topic} was deleted and made again: it is not the topic that the job has read; start anew"
                    " with a new checkpoint"
                )

    def _check_nothing_lost(self, start: Mapping[str, int], more: Mapping[str, tuple[int, int]]) -> None:
        """JobError if messages are gone that were not read, or a partition is not the one that it was."""
        firsts = self._cluster.offsets(list(more), BEGINNING_OF_LOG)
        for key, (at, _) in more.items():
            if firsts[key] > at:
                topic, number = partition_of(key)
                raise self._cluster.failed(
                    f"topic {topic}, partition {number} begins at offset {firsts[key]}, but was read up to {at}:"
                    " messages were removed by retention before they were read; keep them longer, or start anew"
                    " without the checkpoint"
                )
        for key, at in start.items():
            topic, number = partition_of(key)
            if key not in self._ends:
                raise self._cluster.failed(f"there is no partition {number} of topic {topic} any more")
            if self._ends[key] < at:
                self._ends |= self._cluster.settled(key, at)
                if self._ends[key] < at:
                    raise self._cluster.failed(
                        f"topic {topic}, partition {number} ends at offset {self._ends[key]}, but was read up to {at}:"
                        " it is not the topic that it was"
                    )


def _start(text: str) -> int:
    if text.lower() in ("earliest", "latest"):
        return BEGINNING_OF_LOG if text.lower() == "earliest" else END
    return max(0, instant(text, "option start is earliest, latest or a time; it") // 1000)  # -1 is END


def _rows(options: Options, declaration: Declaration) -> MessageRows:
    """How messages become rows, by the options of the format."""
    format_ = options.choice("format", ("json", "avro", "csv", "raw"))
    columns = declaration.columns
    declared = None if columns is None else pa.schema([pa.field(name, type_) for name, type_ in columns])
    if format_ == "raw":
        return raw_rows(declared)
    if declared is None:
        raise SettingError(
            f"kafka needs the columns, CREATE {declaration.kind} {declaration.name} (ts TIMESTAMP, ...), unless"
            " format is 'raw'"
        )
    of_values = pa.schema([declared.field(name) for name in of_value(declared)])
    if format_ == "avro":
        from eddyline.runtime.sources.avro_values import avro_values

        return value_rows(declared, lambda schema: avro_values(options, schema))
    from eddyline.runtime.sources.kafka_texts import csv_values, json_values

    check_readable(format_, of_values)
    if format_ == "json":
        return value_rows(declared, json_values, b"{}")
    sep, quote = options.char("sep", ",") or ",", options.char("quote", '"')
    escape, null = options.char("escape", ""), options.text("nullValue")
    layout = CsvOptions("false", sep, quote, "" if escape == quote else escape, null)
    return value_rows(declared, lambda schema: csv_values(layout, schema))


@without_collector()
def _in_order(partitions: Sequence[Sequence[Any]]) -> list[Any]:
    """The messages of several partitions by their timestamps; those of one partition stay in their order."""
    times = []
    for messages in partitions:
        of_one = np.array([time for _, time in map(Message.timestamp, messages)], np.int64)
        times.append(np.maximum.accumulate(of_one) if len(of_one) else of_one)
    messages = list(itertools.chain.from_iterable(partitions))
    order = np.argsort(np.concatenate(times), kind="stable").tolist() if times else ()
    return list(map(messages.__getitem__, order))
