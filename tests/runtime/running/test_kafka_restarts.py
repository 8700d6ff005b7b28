"""Random transactions in topics, and a local job with a checkpoint that fails at random points: every result once."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eddyline import faults
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.settings import from_mapping
from lab.servers.kafka_broker import KafkaBroker

SCRIPT = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT, n BIGINT) USING kafka OPTIONS (servers '{servers}', topic '{one}')
    TIMESTAMP BY ts LATENESS 1 HOUR;
CREATE STREAM t (ts TIMESTAMP, k BIGINT, n BIGINT) USING kafka OPTIONS (servers '{servers}', topic '{two}')
    TIMESTAMP BY ts LATENESS 1 HOUR;
CREATE SINK out USING json OPTIONS (path '{folder}/out');
INSERT INTO out SELECT s.n AS a, t.n AS b FROM s [RANGE 2 HOURS], t [RANGE 2 HOURS] WHERE s.k = t.k
"""
TURNS = 6


class Crash(BaseException):
    """The end of a process."""


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    """Faults end with their test."""
    yield
    faults.inject(None)


def _crash_after(points: int) -> None:
    left = [points]

    def reached(_: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Crash

    faults.inject(reached)


def _send(producer: Producer, topic: str, partitions: int, rng: random.Random, first: int) -> list[tuple[int, int]]:
    """A transaction of random rows; returns the key and the number of those that are committed."""
    producer.begin_transaction()
    sent = []
    for number in range(first, first + rng.randrange(1, 40)):
        when = datetime(2026, 1, 1) + timedelta(seconds=rng.randrange(3600))
        sent.append((rng.randrange(8), number))
        value = json.dumps({"ts": when.isoformat(), "k": sent[-1][0], "n": number})
        producer.produce(topic, value, partition=rng.randrange(partitions))
    producer.flush(60)
    if rng.random() < 0.3:
        producer.abort_transaction(60)
        return []
    producer.commit_transaction(60)
    return sent


@pytest.mark.parametrize("seed", [3, pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long)])
def test_every_result_comes_once(kafka: KafkaBroker, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    sizes = {kafka.create(partitions=size): size for size in (rng.randrange(1, 5), 3)}
    one, two = sizes
    text = SCRIPT.format(servers=kafka.servers, one=one, two=two, folder=tmp_path)
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": one})
    producer.init_transactions(60)
    rows: dict[str, list[tuple[int, int]]] = {one: [], two: []}
    crashes = 0
    for turn in range(TURNS + 1):
        for topic, size in sizes.items():
            rows[topic] += _send(producer, topic, size, rng, turn * 100)
        chosen = from_mapping({"batch_rows": rng.choice([7, 7, 20, 1000]), "slots": 2})
        if turn < TURNS:
            after = rng.randrange(1, 300)
            _crash_after(5 if turn == TURNS - 1 and not crashes else after)  # one crash is sure
        try:
            LocalRunner(prepare(text, out=io.StringIO(), checkpoint=f"{tmp_path}/ck"), chosen, f"{tmp_path}/ck").run()
        except Crash:
            crashes += 1
        faults.inject(None)
    found = Counter[tuple[int, int]]()
    for file in (tmp_path / "out").glob("part-*"):
        found.update((row["a"], row["b"]) for row in map(json.loads, file.read_text().splitlines()))
    assert found == Counter((a, b) for key, a in rows[one] for other, b in rows[two] if key == other)
    assert crashes and found.total() > 100
