"""Writes rows to the topics of `bench kafka-lag` at a rate, as a process of its own: `python -m
lab.bench.kafka_load SERVERS RATE SECONDS`.

RATE is the rows a second of all streams together. First the process writes the rows of the last SECONDS seconds as
fast as it can, and prints `filled`. Then each line of its input is a new rate. At the end of the input the process
prints how many rows it has written.

Rows are written in ticks. A row has the time of its tick in the schedule, even if the writer is late. Before a tick
begins, the broker has acknowledged all earlier ticks but the last one. In a tick every stream has the same keys, each
once and shuffled. So every row of a stream has exactly one partner in each other stream, at the same time, and the join
of all streams has as many results as each of them has rows, at any rate.
"""

from __future__ import annotations

import sys
import threading
import time
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Producer

from lab.bench.kafka import JOIN, PARTITIONS

TICK = 0.05


class Load:
    """The writer; `rate` may be set by another thread."""

    def __init__(self, servers: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": servers, "linger.ms": 2, "compression.type": "lz4", "acks": 1,
             "queue.buffering.max.messages": 1_000_000}
        )  # fmt: skip
        self._random = np.random.default_rng(1)
        self.rate = 0.0
        self.rows = 0
        self._left = 0.0

    def tick(self, moment: float) -> None:
        """Write the rows of the tick that begins at this time, in seconds since 1970."""
        self._left += self.rate * TICK / len(JOIN.columns)
        keys = int(self._left)
        self._left -= keys
        if not keys:
            return
        first = self.rows // len(JOIN.columns)
        when = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
        for name, columns in JOIN.columns.items():
            parts: list[object] = [f'{{"ts":"{when}"']
            for column in columns:
                parts += [f',"{column}":', _texts(first + self._random.permutation(keys))]
            parts += [',"v":', _texts(self._random.integers(0, 1_000_000, keys)), "}", ""]
            values = pc.binary_join_element_wise(*parts).to_pylist()
            for partition in range(PARTITIONS):
                messages = [{"value": value} for value in values[partition::PARTITIONS]]
                self._producer.produce_batch(name, messages, partition=partition)
            self.rows += keys
        while len(self._producer) > keys * len(JOIN.columns):
            self._producer.poll(0.005)

    def flush(self) -> None:
        """Wait until the broker has everything."""
        if self._producer.flush(60):
            raise RuntimeError("the broker did not take the rows")


def _texts(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    return pc.cast(pa.array(numbers), pa.string())


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(servers: str, rate: str, seconds: str) -> None:
    """Fill the topics, then follow the rates that are read from the input."""
    load, now = Load(servers), time.time()
    load.rate = float(rate)
    for number in range(round(float(seconds) / TICK)):
        load.tick(now - float(seconds) + number * TICK)
    load.flush()
    load.rate, ended = 0.0, threading.Event()
    _say("filled")

    def follow() -> None:
        for line in sys.stdin:
            load.rate = float(line)
        ended.set()

    threading.Thread(target=follow, daemon=True).start()
    moment = time.time()
    while not ended.is_set():
        load.tick(moment)
        moment += TICK
        time.sleep(max(0.0, moment - time.time()))
    load.flush()
    _say(str(load.rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
