"""A job on the engine in few words: what the tests of plan, routing and engine share.

>>> job = Job("SELECT a.k FROM a [RANGE 5 MICROSECONDS], b [RANGE 5 MICROSECONDS] WHERE a.k = b.k", a="k", b="k")
>>> job.feed(a=[(1, 7)], b=[(2, 7)])
[(7,)]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from eddyline.bound.bind import bind
from eddyline.bound.model import BoundQuery
from eddyline.cql.script import parse
from eddyline.engine.intake import columns_for
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.settings import Settings
from eddyline.testing.case import Batch, Case, SelectParts
from lab.batch_driver import BatchDriver, BatchResult
from tests.support.naive import naive

TIME = pa.timestamp("us")
TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "decimal": pa.decimal128(38, 2),
    "words": pa.dictionary(pa.int32(), pa.string()),
    "time": TIME,
}
Row = tuple[Any, ...]
Columns = str | pa.Schema
"""`"k v:string"`: columns after the time, integers unless they say otherwise; or a schema."""


def schema(columns: Columns, timed: bool = True) -> pa.Schema:
    """The schema that a text of columns means; the event time `ts` comes first."""
    if isinstance(columns, pa.Schema):
        return columns
    parts = [(name, TYPES[kind or "int"]) for name, _, kind in (c.partition(":") for c in columns.split())]
    return pa.schema(([("ts", TIME)] if timed else []) + parts)


def batch_of(columns: pa.Schema, rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows as a record batch."""
    arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(columns)]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def bound(
    select: str, lateness: Mapping[str, int] | None = None, tables: Collection[str] = (), **columns: Columns
) -> BoundQuery:
    """The query of a SELECT over streams (and tables) with these columns; lateness in microseconds."""
    schemas = {name: schema(text, name not in tables) for name, text in columns.items()}
    lines = []
    for name in schemas:
        late = f" LATENESS {lateness[name]} MICROSECONDS" if lateness and name in lateness else ""
        kind, time = ("TABLE", "") if name in tables else ("STREAM", f" TIMESTAMP BY ts{late}")
        lines.append(f"CREATE {kind} {name} USING memory{time};")
    return bind(parse("\n".join([*lines, select + ";"])), lambda declaration: schemas[declaration.name])


def tuples(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """Result rows in a fixed order; NaN, which is not equal to itself in Python, as a word."""
    rows = (tuple(row.values()) for batch in batches for row in batch.to_pylist())
    return sorted((tuple("NaN" if v != v else v for v in row) for row in rows), key=repr)


class Job:
    """A query that is fed batch by batch, and remembers what it was fed for `expected`."""

    def __init__(
        self,
        select: str,
        settings: Settings | None = None,
        lateness: Mapping[str, int] | None = None,
        tables: Mapping[str, Sequence[Row]] | None = None,
        clock: Callable[[], float] = time.perf_counter,
        tuning: Tuning = DEFAULT,
        **columns: Columns,
    ) -> None:
        tables = tables or {}
        self.query = bound(select, lateness, tables, **columns)
        self.engine = BatchDriver(self.query, settings or Settings(check=True), clock, tuning=tuning)
        self.schemas = {name: schema(text, name not in tables) for name, text in columns.items()}
        self._tables = {name: batch_of(self.schemas[name], rows) for name, rows in tables.items()}
        for name, batch in self._tables.items():
            self.engine.load_table(name, batch)
        self._fed: list[Batch] = []
        self.last: BatchResult | None = None

    def feed(
        self, ended: Collection[str] = (), commit: bool = True, **rows: Sequence[Row] | pa.RecordBatch
    ) -> list[Row]:
        """One micro-batch; returns its result rows. With commit=False it can be wound back."""
        fed = tuple(
            (name, r if isinstance(r, pa.RecordBatch) else batch_of(self.schemas[name], r)) for name, r in rows.items()
        )
        self.last = self.engine.batch(fed, ended, commit=commit)
        if commit:
            self._fed.append(Batch(fed))
        return tuples(self.last.results)

    def needed(self, name: str, rows: Sequence[Row]) -> pa.RecordBatch:
        """Rows as the slot gets them: only the columns that the query needs."""
        batch = batch_of(self.schemas[name], rows)
        return columns_for(self.engine.home.split.streams[name], batch, self.engine.home.split.needed[name])

    def end(self) -> list[Row]:
        """The end of all streams; returns what was waiting for it."""
        return tuples(self.engine.end().results)

    def expected(self) -> list[Row]:
        """All rows that the job must give from its first batch to its end, done naively."""
        case = Case((), SelectParts((), ()), tuple(self._fed), self._tables)
        return tuples(naive(case, self.query).to_batches())
