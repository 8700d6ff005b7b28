"""Plans run at the pace of their streams.

A machine is said by the CPU seconds that it has for a second of event time. A batch comes when its event time is over
and waits until the batches before it are done; it is done when the machine has had the CPU seconds that the engine
really took for it. So what a paced run looks like follows from one that was not paced, whatever else the real machine
did meanwhile. A plan whose state passes its limit of memory ends there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time

from eddyline.benchmarks.timed_joins import TimedJoin
from eddyline.engine.batch import LocalEngine
from eddyline.settings import Settings

FULL = 1.2
"""Windows after which they are full, so that what a plan needs no longer grows."""


@dataclass(frozen=True)
class Batch:
    """What the engine did with a batch of input, and what it held then."""

    end: float
    """The event time at which it is complete, in seconds."""
    rows: int
    cpu: float
    results: int
    state_rows: int
    state_bytes: int


@dataclass(frozen=True)
class Moment:
    """What there is to see of a paced run: results so far, rows that came and wait, tuples and bytes of state."""

    at: float
    results: int
    queued: int
    state_rows: int
    state_bytes: int


def run(join: TimedJoin, plan: str, batch: float) -> list[Batch]:
    """All batches of so many seconds through a plan, as quickly as they go."""
    engine, done = LocalEngine(join.query, Settings(plan=plan, optimizer="off"), process_time), list[Batch]()
    for number, rows in enumerate(join.batches(batch), 1):
        begin = process_time()
        results = sum(found.num_rows for found in engine.batch(rows).results)
        cpu, slot = process_time() - begin, engine.slot
        count = sum(part.num_rows for _, part in rows)
        done.append(Batch(number * batch, count, cpu, results, slot.peak_rows, slot.peak_bytes))
    return done


def need(batches: Sequence[Batch], window: float) -> float:
    """CPU seconds for a second of event time once windows are full."""
    first = bisect_right(batches, FULL * window, key=lambda batch: batch.end)
    return sum(b.cpu for b in batches[first:]) / (batches[-1].end - batches[first - 1].end)


def most_bytes(batches: Sequence[Batch]) -> int:
    """The most that state took."""
    return max(batch.state_bytes for batch in batches)


def paced(batches: Sequence[Batch], cpu: float, memory: int, moments: int) -> list[Moment]:
    """The run at so many moments, on a machine with these CPU seconds for a second of event time and this memory.

    >>> slow = [Batch(1.0, 10, 0.3, 5, 20, 64), Batch(2.0, 10, 0.1, 7, 30, 64)]
    >>> [(moment.at, moment.results, moment.queued) for moment in paced(slow, 0.2, 100, 2)]
    [(1.0, 0, 10), (2.0, 3, 13)]
    """
    begins, ends, free = [], [], 0.0
    for batch in batches:
        begins.append(max(free, batch.end))
        free = begins[-1] + batch.cpu / cpu
        ends.append(free)
    seen, last = [], batches[-1].end
    for number in range(1, moments + 1):
        at = last * number / moments
        results = queued = held = size = 0
        for batch, begin, end in zip(batches, begins, ends, strict=True):
            share = 0.0 if at <= begin else 1.0 if at >= end else (at - begin) / (end - begin)
            results += round(share * batch.results)
            queued += round((1.0 - share) * batch.rows) if batch.end <= at else 0
            if end <= at or not held:
                held, size = (batch.state_rows, batch.state_bytes) if end <= at else (0, 0)
        seen.append(Moment(at, results, queued, held, size))
        if size > memory:
            break
    return seen
