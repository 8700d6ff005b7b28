"""Runs that are compared: the same query over the same rows under different settings, taking turns.

A round runs every side once. The ratio of two sides is the median of the ratios of their rounds, so a disturbance that
lasts longer than a round does not count, and one that is shorter spoils one round. All sides must give the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

import pyarrow as pa

from eddyline.benchmarks.streams import Streams
from eddyline.engine.batch import LocalEngine
from eddyline.errors import InternalError
from eddyline.query.model import Query
from eddyline.settings import Settings

S = TypeVar("S")
Answer = tuple[int, Any]
"""How many rows, and what is in the first: an aggregate has just one."""
ROUNDS = 3
LEAST = 0.2
"""Seconds of a side in a round, at least."""
_WARM_UP = 64


class Job:
    """A query, its rows and how many of each stream a micro-batch has; tables are loaded first."""

    def __init__(self, query: Query, data: Streams, batch_rows: int) -> None:
        self.query, self.data, self.batch_rows = query, data, batch_rows
        tables = {s.stream.name for s in query.sources if s.stream.is_table}
        self._tables = {name: batch for name, batch in data.items() if name in tables}
        self._streams = {name: batch for name, batch in data.items() if name not in tables}

    def first_rows(self) -> Job:
        """The same with a few rows: compiles or loads what the job needs."""
        return Job(self.query, {name: batch.slice(0, _WARM_UP) for name, batch in self.data.items()}, self.batch_rows)

    def run(
        self, settings: Settings, prepare: Callable[[LocalEngine], None] | None = None
    ) -> tuple[Answer, LocalEngine]:
        """Everything through a new engine, which `prepare` may change before the first row."""
        engine = LocalEngine(self.query, settings)
        if prepare is not None:
            prepare(engine)
        results: list[pa.RecordBatch] = []
        for name, batch in self._tables.items():
            engine.load_table(name, batch)
        for at in range(0, max(batch.num_rows for batch in self._streams.values()), self.batch_rows):
            rows = [(name, batch.slice(at, self.batch_rows)) for name, batch in self._streams.items()]
            results += engine.batch(rows).results
        results += engine.end().results
        count = sum(batch.num_rows for batch in results)
        return (count, tuple(results[0].to_pylist()[0].values()) if count == 1 else None), engine


def take_turns(sides: Mapping[S, Callable[[], Answer]], quick: bool) -> dict[S, list[float]]:
    """The seconds of each side, by round; of a run that is shorter than LEAST the mean of several. `quick`: one round
    of one run."""
    seconds: dict[S, list[float]] = {name: [] for name in sides}
    answers: dict[Answer, S] = {}
    for _ in range(1 if quick else ROUNDS):
        for name, side in sides.items():
            runs, passed, begin = 0, 0.0, perf_counter()
            while not runs or (passed < LEAST and not quick):
                answers.setdefault(side(), name)
                runs, passed = runs + 1, perf_counter() - begin
            seconds[name].append(passed / runs)
    if len(answers) != 1:
        raise InternalError(f"the sides of an experiment disagree: {answers}")
    return seconds


def ratio(seconds: Sequence[float], over: Sequence[float]) -> float:
    """The median of the ratios of the rounds.

    >>> ratio([2.0, 9.0, 4.0], [1.0, 1.0, 2.0])
    2.0
    """
    return median(a / b for a, b in zip(seconds, over, strict=True))


def spread(*sides: Sequence[float]) -> float:
    """How far rounds of the same side are apart: the slowest over the fastest, of the side where that is most.

    >>> spread([1.0, 2.0], [4.0, 5.0])
    2.0
    """
    return max(max(seconds) / min(seconds) for seconds in sides)
