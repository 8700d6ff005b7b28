"""Kafka on Spark: our reader in Spark's tasks, with a checkpoint; and Spark's own connector as a DataFrame."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eddyline.errors import JobError
from eddyline.faults import inject
from lab.servers.kafka_broker import KafkaBroker, NoKafka, connector_jars
from tests.conftest import Ran

START = datetime(2026, 1, 1)
# Markers of transactions have the broker's time, which is later than that of all messages here. One that is written
# after the first run has looked hides the messages behind it from the search by time: their partition is read later.
JOIN = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT, _partition INTEGER) USING kafka
    OPTIONS (servers '{servers}', topic '{one}') TIMESTAMP BY ts LATENESS 1 HOUR DEAD INTO dead;
CREATE STREAM t (k BIGINT, _timestamp TIMESTAMP) USING kafka
    OPTIONS (servers '{servers}', topic '{two}') TIMESTAMP BY _timestamp LATENESS 1 HOUR;
CREATE SINK out USING json OPTIONS (path '{folder}/out');
CREATE SINK dead USING json OPTIONS (path '{folder}/dead');
INSERT INTO out SELECT s.k AS k, s._partition AS p FROM s [RANGE 1 HOUR], t [RANGE 1 HOUR] WHERE s.k = t.k
"""


def _send(kafka: KafkaBroker, topic: str, partitions: int, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": f"{topic}-{numbers}"})
    producer.init_transactions(60)
    for committed in (True, False):
        producer.begin_transaction()
        for n in numbers:
            when = START + timedelta(seconds=n)
            value = json.dumps({"ts": when.isoformat(), "k": n})
            producer.produce(topic, value, partition=n % partitions, timestamp=_milliseconds(when))
            producer.poll(0)
        producer.flush(60)
        (producer.commit_transaction if committed else producer.abort_transaction)(60)


def _milliseconds(when: datetime) -> int:
    return round((when - datetime(1970, 1, 1)).total_seconds() * 1000)


def _rows(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for file in folder.glob("part-*") for line in file.read_text().splitlines()]


def test_a_join_of_topics(kafka: KafkaBroker, run_on_spark: Callable[..., Ran], tmp_path: Path) -> None:
    one, two = kafka.create(partitions=3), kafka.create(partitions=2)
    text = JOIN.format(servers=kafka.servers, one=one, two=two, folder=tmp_path)
    bad = Producer({"bootstrap.servers": kafka.servers})
    bad.produce(one, b"no JSON", partition=1, timestamp=_milliseconds(START))
    bad.flush(60)
    for numbers in (range(600), range(600, 900)):
        _send(kafka, one, 3, numbers)
        _send(kafka, two, 2, numbers)
        ran = run_on_spark(text, tmp_path / "ck", at_end="keep", batch_rows=400)
    assert ran.summary.rows_in == 1801 and ran.summary.rows_late == 0
    assert sorted((row["k"], row["p"]) for row in _rows(tmp_path / "out")) == [(n, n % 3) for n in range(900)]
    (dead,) = _rows(tmp_path / "dead")
    assert str(dead["reason"]).startswith(f"topic {one}, partition 1, offset 0: not a JSON object of this stream")
    assert ran.summary.rows_dead == 1


def test_a_topic_that_is_made_again_while_a_batch_runs(
    kafka: KafkaBroker, run_on_spark: Callable[..., Ran], tmp_path: Path
) -> None:
    """Nothing of the batch is published, and the next run does not go on with the other topic."""
    one, two = kafka.create(partitions=3), kafka.create(partitions=2)
    text, reached = JOIN.format(servers=kafka.servers, one=one, two=two, folder=tmp_path), list[str]()
    for topic, partitions in ((one, 3), (two, 2)):
        _send(kafka, topic, partitions, range(300))

    def strike(point: str) -> None:
        reached.append(point)
        if reached.count("spark: records are there") == 2 and point == "spark: records are there":  # the first has rows
            kafka.create_again(two, 2)
            _send(kafka, two, 2, range(300))

    inject(strike)
    try:
        with pytest.raises(JobError, match=f"topic {two} was deleted and made again"):
            run_on_spark(text, tmp_path / "ck", at_end="keep")
    finally:
        inject(None)
    assert not _rows(tmp_path / "out")
    with pytest.raises(JobError, match=f"topic {two} was deleted and made again"):
        run_on_spark(text, tmp_path / "ck", at_end="keep")


_CONNECTOR = """
import sys
import eddyline as el
from pyspark.sql import SparkSession
servers, topic, jars = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").config("spark.jars", jars).config(
    "spark.ui.enabled", False).getOrCreate()
frame = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic).option(
    "startingOffsets", "earliest").load().selectExpr("timestamp AS ts", "CAST(value AS STRING) AS v")
run = el.query("SELECT v FROM s", {"s": el.stream(frame, time="ts")}).start(settings={"slots": 1})
print(sorted(run.to_arrow().column("v").to_pylist()))
spark.stop()
"""


@pytest.mark.long
def test_the_connector_of_spark(kafka: KafkaBroker, tmp_path: Path) -> None:
    """Its jars are fetched, so it has a session of its own."""
    try:
        jars = connector_jars()
    except NoKafka as error:
        pytest.skip(str(error))
    topic = kafka.create()
    producer = Producer({"bootstrap.servers": kafka.servers})
    for value in (b"b", b"a"):
        producer.produce(topic, value)
    producer.flush(60)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", _CONNECTOR, kafka.servers, topic, ",".join(map(str, jars))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=900)
    assert done.stdout.splitlines()[-1:] == ["['a', 'b']"], done.stderr[-2000:]
