"""A query whose tables are asked, run in simulated time: the clock moves between micro-batches.

At each step the engine gets the rows of the streams and the answers of the tables whose time has come. The engine
itself takes no simulated time: the sources are what is slow, as in the experiments of paper 001.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eddyline.bound.bind import bind
from eddyline.bound.model import BoundQuery
from eddyline.cql.script import parse
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.errors import InternalError
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench.streams import START
from lab.experiments.timed_lookups import Clock, Method, Speed, TimedLookups

STEP = 0.5
"""Seconds between two micro-batches."""


@dataclass
class Course:
    """Events in the order of time, each a time and how many came with it."""

    times: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    """How many came until then."""

    def add(self, at: float, count: int = 1) -> None:
        """So many came."""
        if count:
            self.times.append(at)
            self.counts.append(self.total + count)

    @property
    def total(self) -> int:
        """How many came."""
        return self.counts[-1] if self.counts else 0

    @property
    def end(self) -> float:
        """When the last one came."""
        return self.times[-1] if self.times else 0.0

    def at(self, time: float) -> int:
        """How many came until a time.

        >>> Course([1.0, 2.5], [10, 30]).at(2.0)
        10
        """
        place = bisect_right(self.times, time)
        return self.counts[place - 1] if place else 0

    def area(self, until: float) -> float:
        """The area under the curve: a result counts for each second that it is there before `until`.

        >>> Course([1.0, 2.5], [10, 30]).area(4.0)
        60.0
        """
        edges = [*(t for t in self.times if t < until), until]
        return sum(n * (b - a) for n, a, b in zip(self.counts, edges, edges[1:], strict=False))


def course_of(times: Sequence[float]) -> Course:
    """The course of single events."""
    return Course(sorted(times), list(range(1, len(times) + 1)))


@dataclass(frozen=True)
class TimedRun:
    """A run: its results, what its lookups did, and the engine afterwards."""

    results: Course
    lookups: TimedLookups
    engine: BatchDriver
    rows: Sequence[tuple[float, pa.RecordBatch]] = ()
    """The results themselves, and when they came."""

    def probes(self, table: str) -> Course:
        """The probes that the indexes of a table have answered."""
        return course_of([at for at, method, _ in self.lookups.probes if method[0] == table])

    def answered(self, table: str) -> dict[object, float]:
        """When each key of a table was first answered."""
        found: dict[object, float] = {}
        for at, method, key in self.lookups.probes:
            if method[0] == table:
                found.setdefault(key[0], at)
        return found


@dataclass(frozen=True)
class TimedJob:
    """A query over one stream that comes at a rate, and tables that are asked."""

    query: BoundQuery
    stream: str
    rows: pa.RecordBatch
    rate: float
    """Rows a second."""
    tables: Mapping[str, pa.RecordBatch]

    def arrival(self, row: int) -> float:
        """When a row of the stream comes."""
        return (row + 1) / self.rate

    def arrived(self, now: float) -> int:
        """How many rows of the stream have come."""
        rows: int = self.rows.num_rows
        return min(rows, int(now * self.rate + 1e-9))

    def run(
        self,
        speeds: Mapping[Method, Speed],
        settings: Settings,
        clock: Clock | None = None,
        step: float = STEP,
        prefer: Mapping[float, str] | None = None,
        tuning: Tuning = DEFAULT,
    ) -> TimedRun:
        """Run until everything is answered. The clock may be one that a server of `speeds` reads, too. `prefer` has
        preferences by the time from which on they hold."""
        clock = clock or Clock()
        lookups = TimedLookups(self.query, self.tables, speeds, clock)
        engine = BatchDriver(self.query, settings, clock=clock, tuning=tuning, lookups=lambda: lookups)
        results, rows, fed, number = Course(), list[tuple[float, pa.RecordBatch]](), 0, 0
        while fed < self.rows.num_rows or engine.waits or not number:
            clock.now = number * step
            for text in (text for at, text in (prefer or {}).items() if at == clock.now):
                engine.preferences.change(text)
            ready = self.arrived(clock.now)
            found = engine.batch([(self.stream, self.rows.slice(fed, ready - fed))] if ready > fed else [])
            results.add(clock.now, sum(batch.num_rows for batch in found.results))
            rows += ((clock.now, batch) for batch in found.results)
            fed, number = ready, number + 1
        late = sum(batch.num_rows for batch in engine.end().results)
        if late:
            raise InternalError(f"{late} results came after the last answer")
        return TimedRun(results, lookups, engine, rows)


def timed_job(
    select: str, rows: pa.RecordBatch, rate: float, tables: Mapping[str, tuple[pa.RecordBatch, str]]
) -> TimedJob:
    """A query over a stream R, with a time, and tables; each has its rows and its access methods."""
    lines = [f"CREATE STREAM R (ts TIMESTAMP, {_columns(rows)}) USING memory TIMESTAMP BY ts;"]
    lines += [f"CREATE TABLE {name} ({_columns(of)}) USING memory {methods};" for name, (of, methods) in tables.items()]
    times = pa.array(START + np.arange(rows.num_rows) * int(1e6 / rate), pa.timestamp("us"))
    timed = pa.record_batch([times, *rows.columns], ["ts", *rows.schema.names])
    schemas = {"R": timed.schema, **{name: of.schema for name, (of, _) in tables.items()}}
    query = bind(parse("\n".join([*lines, select])), lambda declaration: schemas[declaration.name])
    return TimedJob(query, "R", timed, rate, {name: of for name, (of, _) in tables.items()})


def _columns(rows: pa.RecordBatch) -> str:
    return ", ".join(f"{name} BIGINT" for name in rows.schema.names)


def bend(course: Course) -> float:
    """How far a curve is from the straight line to its end, at most, as a share of its total; negative where it is
    below the line.

    >>> bend(Course([1.0, 3.0, 4.0], [1, 3, 4])), bend(Course([3.0, 4.0], [1, 4]))
    (0.0, -0.5)
    """
    line = [(at, course.total * at / course.end) for at in course.times]
    over = [(course.at(at) - straight) / course.total for at, straight in line]
    return max(over, key=abs)
