"""The jobs of chaos from Kafka topics to Kafka topics, and to a Delta table (`chaos --kafka`).

All messages are in the topics before the job begins. The results are read by a consumer of committed messages, or by
another library from the table, and written to files, which are compared as those of other jobs (testing/chaos_jobs.py).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.runtime.sinks.json_lines import lines
from eddyline.testing.kafka_broker import KafkaBroker

PARTITIONS = {"a": 3, "b": 1, "c": 2}
TARGETS = ("kafka", "delta")
SINKS = ("out", "late", "dead")


@dataclass(frozen=True)
class Pipeline:
    """The topics of a job. `target` says where its results go; late and dead rows go to topics."""

    servers: str
    name: str
    target: str

    def source(self, stream: str) -> str:
        """How a stream is declared."""
        columns = "(ts TIMESTAMP, id BIGINT, k BIGINT, j BIGINT, v BIGINT)"
        return f"{columns} USING kafka OPTIONS (servers '{self.servers}', topic '{self.topic(stream)}')"

    def sink(self, sink: str, folder: Path) -> str:
        """How a sink is declared."""
        if self.is_table(sink):
            return f"USING delta OPTIONS (path '{folder / 'table'}')"
        key = ", key 'id'" if sink != "out" else ""
        return f"USING kafka OPTIONS (servers '{self.servers}', topic '{self.topic(sink)}'{key})"

    def topic(self, part: str) -> str:
        """The topic of a stream or a sink."""
        return f"{self.name}-{part}"

    def is_table(self, sink: str) -> bool:
        """Whether a sink is the Delta table."""
        return sink == "out" and self.target == "delta"

    def format(self, sink: str) -> str:
        """The format of the file that `dump` writes for a sink."""
        return "parquet" if self.is_table(sink) else "json"

    def dump(self, folder: Path) -> None:
        """Write what the sinks have to one file for each, in folders of their names."""
        for sink in SINKS:
            (folder / sink).mkdir(exist_ok=True)
            file = folder / sink / f"part-0.{self.format(sink)}"
            if self.is_table(sink):
                pq.write_table(_table(folder / "table"), file)
            else:
                file.write_bytes(b"".join(value + b"\n" for value in committed(self.servers, self.topic(sink))))


def pipeline(broker: KafkaBroker, rows: Mapping[str, pa.Table], target: str) -> Pipeline:
    """Make the topics of a job, with these rows of its streams."""
    made = Pipeline(broker.servers, f"chaos-{uuid.uuid4().hex[:8]}", target)
    for stream, partitions in PARTITIONS.items():
        broker.create(made.topic(stream), partitions)
        _send(broker.servers, made.topic(stream), rows[stream], partitions)
    for sink in SINKS:
        if not made.is_table(sink):
            broker.create(made.topic(sink), 2)
    return made


def _send(servers: str, topic: str, rows: pa.Table, partitions: int) -> None:
    """Write rows as JSON, spread over the partitions; their timestamps tell the order of arrival."""
    from confluent_kafka import Producer

    producer, number = Producer({"bootstrap.servers": servers, "linger.ms": 50}), 0
    for batch in rows.to_batches():
        for value in lines(batch).to_pylist():
            producer.produce(topic, value, partition=number % partitions, timestamp=1_000_000_000_000 + number)
            number += 1
    assert producer.flush(60) == 0, "the broker did not take the rows of a stream"


def committed(servers: str, topic: str) -> list[bytes]:
    """The values of all committed messages of a topic."""
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

    config = {"bootstrap.servers": servers, "group.id": "chaos", "enable.auto.commit": False}
    consumer = Consumer({**config, "isolation.level": "read_committed", "enable.partition.eof": True})
    left = set(consumer.list_topics(topic, timeout=60).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, number, 0) for number in left])
    found: list[bytes] = []
    while left:
        for message in consumer.consume(10_000, 1.0):
            error: Any = message.error()
            if error is None:
                found.append(message.value() or b"")
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition() or 0)
            else:
                raise KafkaException(error)
    consumer.close()
    return found


def _table(path: Path) -> pa.Table:
    import polars

    return polars.read_delta(str(path)).to_arrow()
