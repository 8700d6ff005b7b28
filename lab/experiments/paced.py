"""Simulated runs of plans at the pace of their streams.

A machine is described by its CPU seconds for a second of event time. A batch comes when its event time is over and
waits until the batches before it are done; it takes the CPU seconds that the engine really took for it. So a paced run
is computed from a run that was not paced, and does not depend on other load of the real machine. A plan whose state
exceeds the memory limit ends there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time

from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench.timed_joins import TimedJoin

FULL = 1.2
"""The number of windows of event time after which windows are full, so that the need of a plan no longer grows."""


@dataclass(frozen=True)
class MeasuredBatch:
    """The measurements of one batch: its rows, CPU seconds, results, and the state after it."""

    end: float
    """The event time at which the batch is complete, in seconds."""
    rows: int
    cpu: float
    results: int
    state_rows: int
    state_bytes: int


@dataclass(frozen=True)
class Moment:
    """The state of a paced run at one time: results so far, rows that wait, tuples and bytes of state."""

    at: float
    results: int
    queued: int
    state_rows: int
    state_bytes: int


def run(join: TimedJoin, plan: str, batch: float) -> list[MeasuredBatch]:
    """Run a plan over all batches of `batch` seconds, as fast as possible."""
    engine, done = BatchDriver(join.query, Settings(plan=plan, optimizer="off"), process_time), list[MeasuredBatch]()
    for number, rows in enumerate(join.batches(batch), 1):
        begin = process_time()
        results = sum(found.num_rows for found in engine.batch(rows).results)
        cpu, slot = process_time() - begin, engine.slot
        count = sum(part.num_rows for _, part in rows)
        done.append(MeasuredBatch(number * batch, count, cpu, results, slot.peak_rows, slot.peak_bytes))
    return done


def need(batches: Sequence[MeasuredBatch], window: float) -> float:
    """CPU seconds for a second of event time once windows are full."""
    first = bisect_right(batches, FULL * window, key=lambda batch: batch.end)
    return sum(b.cpu for b in batches[first:]) / (batches[-1].end - batches[first - 1].end)


def most_bytes(batches: Sequence[MeasuredBatch]) -> int:
    """The most bytes of state."""
    return max(batch.state_bytes for batch in batches)


def paced(batches: Sequence[MeasuredBatch], cpu: float, memory: int, moments: int) -> list[Moment]:
    """The run at `moments` moments, on a machine with `cpu` CPU seconds for a second of event time and `memory` bytes.

    >>> slow = [MeasuredBatch(1.0, 10, 0.3, 5, 20, 64), MeasuredBatch(2.0, 10, 0.1, 7, 30, 64)]
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
