"""The parts of `bench lookups` that go through the whole engine: a stream is joined with a table that is asked.

*Every key once*: each row of the stream asks for another key. `bench lookups` runs it beside the hand-written loop over
the same keys, which joins nothing.

*99 % cached*: 99 of 100 rows have a key that was answered before the measurement begins. The peer is the same query
over the same table loaded whole. Answers come from memory, so no server takes part, and both sides are measured in CPU
seconds of the one thread in which they run.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from time import thread_time

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.bind import bind
from eddyline.bound.model import AccessMethod, BoundQuery
from eddyline.bound.types import sql_type
from eddyline.cql.script import parse
from eddyline.engine.lookups.look_up import Answer, AnswersKept, Lookups, Request
from eddyline.errors import InternalError
from eddyline.optimizer.pressure import Pressure
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench import Result
from lab.bench.rounds import ratio
from lab.bench.streams import START

ROWS, KNOWN, EVERY, BATCH, ROUNDS = 1_000_000, 20_000, 100, 65_536, 9
"""Rows, the keys that are answered before, one row of how many has a new key, rows in a batch, rounds."""
ONCE_BATCH = 16_384
"""Rows in a batch where every key comes once."""
BAR = 0.7
"""The throughput of the table that is asked, as a share of that of the table loaded whole."""
_STREAM = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64()), ("v", pa.float64())])
_TABLE = pa.schema([("id", pa.int64()), ("score", pa.float64())])
_ASKED, _LOADED = "99 % cached: table asked", "99 % cached: table loaded whole"


def joined(table: pa.Schema, is_asked: bool) -> BoundQuery:
    """A stream joined by its k with the id of a table, all of whose columns are results."""
    columns = ", ".join(f"{field.name} {sql_type(field.type)}" for field in table)
    text = f"""
        CREATE STREAM s (ts TIMESTAMP, k BIGINT, v DOUBLE) USING memory TIMESTAMP BY ts;
        CREATE TABLE users ({columns}) USING memory;
        SELECT s.ts, s.v, {", ".join(f"users.{name}" for name in table.names)}
        FROM s [RANGE 1 SECOND], users WHERE s.k = users.id"""
    query = bind(parse(text), lambda declaration: {"s": _STREAM, "users": table}[declaration.name])
    index = (AccessMethod(("id",)),) if is_asked else ()
    sources = (replace(s, stream=replace(s.stream, methods=index if s.stream.is_table else ())) for s in query.sources)
    return replace(query, sources=tuple(sources))


def stream_of(keys: Sequence[int] | NDArray[np.int64]) -> pa.RecordBatch:
    """A row for each key, 100 microseconds apart."""
    size = len(keys)
    times = pa.array(np.arange(size) * 100 + START, pa.timestamp("us"))
    return pa.record_batch([times, pa.array(keys, pa.int64()), pa.array(np.arange(size) / 8)], schema=_STREAM)


class InMemory:
    """Answers requests for keys 0, 1, ... from a table in their order (engine/lookups/look_up.py: Lookups)."""

    def __init__(self, table: pa.RecordBatch) -> None:
        self._table = table
        self._coming: list[Answer] = []

    def ask(self, requests: Sequence[Request]) -> None:
        """Answers will come with the next call of `answers`."""
        self._coming += [Answer(r.table, r.method, r.keys, self._table.take(r.keys.column(0))) for r in requests]

    def answers(self, wait: float) -> list[Answer]:
        """All answers."""
        found, self._coming = self._coming, []
        return found

    @property
    def kept(self) -> Mapping[str, AnswersKept]:
        """Answers are kept for ever."""
        return {}

    def close(self) -> None:
        """Nothing comes any more."""
        self._coming.clear()

    @property
    def asked(self) -> int:
        """The number of keys that are asked and not answered."""
        return sum(answer.keys.num_rows for answer in self._coming)


def results(engine: BatchDriver, stream: pa.RecordBatch, batch_rows: int) -> list[pa.RecordBatch]:
    """The results over all rows of the stream, which wait in its source."""
    found = []
    for at in range(0, stream.num_rows, batch_rows):
        pressure = Pressure(max(0, stream.num_rows - at - batch_rows))
        found += engine.batch([("s", stream.slice(at, batch_rows))], pressure=pressure).results
    return [*found, *engine.end().results]


def rows_joined(schema: pa.Schema, lookups: Callable[[], Lookups], keys: Sequence[int]) -> Callable[[], int]:
    """Joins a stream of these keys with a table that is asked; returns the number of results."""
    query, stream = joined(schema, is_asked=True), stream_of(keys)

    def run() -> int:
        engine = BatchDriver(query, Settings(), lookups=lookups)
        return sum(batch.num_rows for batch in results(engine, stream, ONCE_BATCH))

    return run


def cached() -> list[Result]:
    """Measure the join with 99 % cached keys; the sides take turns."""
    keys = np.random.default_rng(42).integers(0, KNOWN, ROWS)
    keys[::EVERY] = KNOWN + np.arange(keys[::EVERY].size)
    last = int(keys.max()) + 1
    table = pa.record_batch([pa.array(np.arange(last)), pa.array(np.arange(last) / 3)], schema=_TABLE)
    stream = stream_of(np.concatenate([np.arange(KNOWN), keys]))

    def side(is_asked: bool) -> tuple[float, pa.Table]:
        lookups = (lambda: InMemory(table)) if is_asked else None
        engine = BatchDriver(joined(_TABLE, is_asked), Settings(), lookups=lookups)
        if not is_asked:
            engine.load_table("users", table)
        engine.batch([("s", stream.slice(0, KNOWN))])
        gc.collect()
        begin = thread_time()
        found = results(engine, stream.slice(KNOWN), BATCH)
        return thread_time() - begin, pa.Table.from_batches(found)

    ours, theirs = (side(is_asked)[1].sort_by("ts") for is_asked in (True, False))
    if ours != theirs or ours.num_rows != ROWS:
        raise InternalError("the sides find different rows")
    times: dict[str, list[float]] = {_ASKED: [], _LOADED: []}
    for number in range(ROUNDS):
        for name in times if number % 2 == 0 else reversed(times):
            times[name].append(side(name == _ASKED)[0])
    share = ratio(times, _LOADED, _ASKED)
    found = [Result(name, "rows per CPU second", ROWS / median(taken), "1/s") for name, taken in times.items()]
    return [*found, Result(_ASKED, "share of the table loaded whole", share, "", BAR, share >= BAR)]
