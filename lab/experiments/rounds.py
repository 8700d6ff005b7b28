"""Comparing runs: the same query over the same rows with different settings, taking turns.

Sides take turns by micro-batch: every side has an engine of its own, and all sides get the k-th micro-batch before any
side gets the next, so other load on the machine affects all of them alike. Times are CPU seconds of this process. A
round runs every side once, or several times if that is short. The ratio of two sides is the median of the ratios of
their rounds. All sides must give the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from statistics import median
from time import process_time
from typing import Any, TypeVar

import pyarrow as pa

from eddyline.bound.model import BoundQuery
from eddyline.engine.lookups.look_up import Lookups
from eddyline.errors import InternalError
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench.streams import Streams

S = TypeVar("S")
Answer = tuple[int, Any]
"""The number of result rows, and the first one: an aggregate has just one."""
ROUNDS = 3
LEAST = 2.0
"""The least seconds of a round."""
_WARM_UP = 64
Prepare = Callable[[BatchDriver], None]
Scan = Callable[[pa.RecordBatch], pa.RecordBatch]
"""What is done with rows of a stream before the engine gets them."""
Turns = Generator[None, None, tuple[Answer, BatchDriver]]
"""A run as a generator that yields after every micro-batch."""


class Replay:
    """A query, its rows, and the number of rows of each stream in a micro-batch; tables are loaded first."""

    def __init__(
        self,
        query: BoundQuery,
        data: Streams,
        batch_rows: int,
        lookups: Callable[[], Lookups] | None = None,
        scan: Scan | None = None,
    ) -> None:
        """`lookups` answers for the tables that are asked; these are not in `data`."""
        self.query, self.data, self.batch_rows = query, data, batch_rows
        self._lookups, self._scan = lookups, scan
        tables = {s.stream.name for s in query.sources if s.stream.is_table}
        self._tables = {name: batch for name, batch in data.items() if name in tables}
        self._streams = {name: batch for name, batch in data.items() if name not in tables}

    def first_rows(self) -> Replay:
        """The same query with a few rows, to compile or load all that it needs."""
        few = {name: batch.slice(0, _WARM_UP) for name, batch in self.data.items()}
        return Replay(self.query, few, self.batch_rows, self._lookups, self._scan)

    def run(self, settings: Settings, prepare: Prepare | None = None) -> tuple[Answer, BatchDriver]:
        """Run the query in a new engine, which `prepare` may change before the first row."""
        turns = self.turns(settings, prepare)
        while True:
            try:
                next(turns)
            except StopIteration as end:
                ended: tuple[Answer, BatchDriver] = end.value
                return ended

    def turns(self, settings: Settings, prepare: Prepare | None = None) -> Turns:
        """As `run`, but pausing after every micro-batch."""
        engine = BatchDriver(self.query, settings, lookups=self._lookups)
        if prepare is not None:
            prepare(engine)
        results: list[pa.RecordBatch] = []
        for name, batch in self._tables.items():
            engine.load_table(name, batch)
        for at in range(0, max(batch.num_rows for batch in self._streams.values()), self.batch_rows):
            rows = [(name, batch.slice(at, self.batch_rows)) for name, batch in self._streams.items()]
            if self._scan is not None:
                rows = [(name, self._scan(batch)) for name, batch in rows]
            results += engine.batch(rows).results
            yield
        results += engine.end().results
        count = sum(batch.num_rows for batch in results)
        return (count, tuple(results[0].to_pylist()[0].values()) if count == 1 else None), engine


def take_turns(
    sides: Mapping[S, Callable[[], Turns]], quick: bool
) -> tuple[dict[S, list[float]], dict[S, BatchDriver]]:
    """The seconds of each side by round (the mean, if it ran several times in the round), and its engine after the last
    round. With `quick`, there is one round of one run."""
    seconds: dict[S, list[float]] = {name: [] for name in sides}
    engines: dict[S, BatchDriver] = {}
    for _ in range(1 if quick else ROUNDS):
        passed, runs = dict.fromkeys(sides, 0.0), 0
        while not runs or (sum(passed.values()) < LEAST and not quick):
            answers = _one_run(sides, passed, engines)
            if len(set(answers.values())) != 1:
                raise InternalError(f"the sides of an experiment disagree: {answers}")
            runs += 1
        for name, total in passed.items():
            seconds[name].append(total / runs)
    return seconds, engines


def _one_run(
    sides: Mapping[S, Callable[[], Turns]], passed: dict[S, float], engines: dict[S, BatchDriver]
) -> dict[S, Answer]:
    """Run every side once; adds the seconds of each to `passed`."""
    answers: dict[S, Answer] = {}
    engines.clear()
    running = {name: side() for name, side in sides.items()}
    while running:
        for name, turns in list(running.items()):
            begin = process_time()
            try:
                next(turns)
            except StopIteration as end:
                answers[name], engines[name] = end.value
                del running[name]
            passed[name] += process_time() - begin
    return answers


def ratio(seconds: Sequence[float], over: Sequence[float]) -> float:
    """The median of the ratios of the rounds.

    >>> ratio([2.0, 9.0, 4.0], [1.0, 1.0, 2.0])
    2.0
    """
    return median(a / b for a, b in zip(seconds, over, strict=True))


def spread(*sides: Sequence[float]) -> float:
    """How far the rounds of one side are apart: its slowest over its fastest, the largest over all sides.

    >>> spread([1.0, 2.0], [4.0, 5.0])
    2.0
    """
    return max(max(seconds) / min(seconds) for seconds in sides)
