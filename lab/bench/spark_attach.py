"""`bench spark --part attach`: the cost of a slot's next turn in another process.

Two Python processes, as warm as Spark's workers, alternate in the turns of two slots: one slot has millions of rows of
state, the other a few dozen. Each process measures a whole turn with a few new rows: map the state that the other
process left, commit its batch, probe and build the new rows, leave the state (protocol/attach.py). The difference
between the large and the small slot is the price of the size; it has a bar. The number of rows in the state is checked.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import shutil
import tempfile
from multiprocessing.connection import Connection
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.errors import InternalError
from eddyline.protocol.attach import close, open_slot, save
from eddyline.settings import Settings
from lab.bench import Result
from lab.bench.streams import START, query_over

STATE_ROWS, NEW_ROWS = 5_000_000, 20
"""Rows of both streams together."""
WARM_UP, ROUNDS = 6, 30
BAR_MS = 50.0
CHUNK = 250_000
STREAMS = ("a", "b")
SELECT = "SELECT a.v AS av, b.v AS bv FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.k = b.k"

_log = logging.getLogger(__name__)


def attach() -> list[Result]:
    """The median milliseconds of a turn; the difference is the median over pairs of turns."""
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None  # where jobs have their state too
    folder = tempfile.mkdtemp(prefix="eddyline-bench-attach-", dir=shared)
    workers = [_Worker() for _ in range(2)]
    try:
        times: dict[str, list[float]] = {"large": [], "small": []}
        rows = {"large": STATE_ROWS, "small": 0}
        begin = perf_counter()
        workers[0].turn(f"{folder}/large", 0, STATE_ROWS)
        _log.info("%d rows of state in %.1f s", STATE_ROWS, perf_counter() - begin)
        for round_ in range(WARM_UP + ROUNDS):
            for name, seconds in times.items():
                done = workers[(round_ + 1) % 2].turn(f"{folder}/{name}", rows[name], NEW_ROWS)
                rows[name] += NEW_ROWS
                if done["rows"] != rows[name]:
                    raise InternalError(f"the {name} slot has {done['rows']} rows in place of {rows[name]}")
                seconds += [done["seconds"]] if round_ >= WARM_UP else []
    finally:
        for worker in workers:
            worker.stop()
        shutil.rmtree(folder, ignore_errors=True)
    more = 1000 * median(big - little for big, little in zip(times["large"], times["small"], strict=True))
    return [
        Result(f"slot with {STATE_ROWS:,} rows", "turn in the other process", 1000 * median(times["large"]), "ms"),
        Result("slot that is nearly empty", "turn in the other process", 1000 * median(times["small"]), "ms"),
        Result("the large slot", "more than the empty one", more, "ms", BAR_MS, more <= BAR_MS),
    ]


class _Worker:
    """A process that takes turns."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there,), daemon=True)
        self._process.start()
        there.close()

    def turn(self, folder: str, first: int, rows: int) -> dict[str, Any]:
        """Take a turn with these new rows; returns its seconds, and the rows of state after it."""
        self._here.send_bytes(json.dumps([folder, first, rows]).encode())
        done: dict[str, Any] = json.loads(self._here.recv_bytes())
        return done

    def stop(self) -> None:
        """Ends the process."""
        self._here.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()


def _serve(orders: Connection) -> None:
    query = query_over({name: _rows(name, 0, 0) for name in STREAMS}, SELECT)
    while True:
        try:
            folder, first, rows = json.loads(orders.recv_bytes())
        except EOFError:
            return
        each, last = rows // len(STREAMS), (first + rows) // len(STREAMS)
        chunks = [
            (name, _rows(name, at, min(CHUNK, last - at))) for at in range(last - each, last, CHUNK) for name in STREAMS
        ]
        newest = START + last * 100
        begin = perf_counter()
        slot = open_slot(query, Settings(), folder)
        slot.commit(slot.version + 1)
        for name, batch in chunks:
            slot.feed(name, batch)
        slot.advance(dict.fromkeys(STREAMS, newest), newest)
        slot.drain()
        state = slot.state_rows
        save(slot)
        close(slot)
        orders.send_bytes(json.dumps({"seconds": perf_counter() - begin, "rows": state}).encode())


def _rows(name: str, first: int, rows: int) -> pa.RecordBatch:
    """Rows `first`, `first` + 1, ... of a stream, one every 100 microseconds; hardly any two keys are equal."""
    random = np.random.default_rng([STREAMS.index(name), first])
    times = pa.array(np.arange(first, first + rows) * 100 + START, pa.timestamp("us"))
    return pa.record_batch({"ts": times, "k": random.integers(0, 1 << 40, rows), "v": random.random(rows)})
