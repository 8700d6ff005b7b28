"""Streams for benchmarks: columns of uniform keys and a payload, cut into batches that all streams share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from eddyline.bound.bind import bind
from eddyline.bound.model import BoundQuery
from eddyline.cql.script import parse
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver

START = 1_700_000_000_000_000
Streams = Mapping[str, pa.RecordBatch]


def streams(columns: Mapping[str, Sequence[str]], rows: int, domain: int, every: int, seed: int = 42) -> Streams:
    """For each stream a time (one row every `every` microseconds), the named key columns, and a payload v."""
    random = np.random.default_rng(seed)
    times = pa.array(np.arange(rows) * every + START, pa.timestamp("us"))
    return {
        name: pa.record_batch(
            {"ts": times, **{k: random.integers(0, domain, rows) for k in keys}, "v": random.random(rows)}
        )
        for name, keys in columns.items()
    }


def query_over(data: Streams, select: str, lateness: str = "0 SECONDS") -> BoundQuery:
    """Bind a SELECT over these streams."""
    types = {pa.int64(): "BIGINT", pa.float64(): "DOUBLE", pa.timestamp("us"): "TIMESTAMP"}
    declared = [
        f"CREATE STREAM {name} ({', '.join(f'{f.name} {types[f.type]}' for f in batch.schema)}) USING memory "
        f"TIMESTAMP BY ts LATENESS {lateness};"
        for name, batch in data.items()
    ]
    return bind(parse("\n".join([*declared, select])), lambda declaration: data[declaration.name].schema)


def run_engine(
    query: BoundQuery,
    data: Streams,
    batch_rows: int,
    settings: Settings | None = None,
    after_batch: Callable[[BatchDriver, int], None] | None = None,
) -> tuple[int, BatchDriver]:
    """Feed all rows to a new engine, `batch_rows` of each stream a batch; returns the number of results, and the
    engine."""
    engine = BatchDriver(query, settings or Settings())
    rows = max(batch.num_rows for batch in data.values())
    found = 0
    for at in range(0, rows, batch_rows):
        result = engine.batch([(name, batch.slice(at, batch_rows)) for name, batch in data.items()])
        found += sum(batch.num_rows for batch in result.results)
        if after_batch is not None:
            after_batch(engine, at + batch_rows)
    found += sum(batch.num_rows for batch in engine.end().results)
    return found, engine
