"""Topics of a Kafka broker as streams and sinks of chaos (lab/chaos/servers.py)."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from eddyline.runtime.sinks.json_lines import lines
from lab.servers.kafka_broker import KafkaBroker

PARTITIONS = {"a": 3, "b": 1, "c": 2}
QUIET = logging.getLogger("lab.kafka")
"""Of clients that say nothing while the broker is away."""
QUIET.setLevel(logging.CRITICAL)


@dataclass(frozen=True)
class Topics:
    """The topics of a job; their names begin with `name`."""

    broker: KafkaBroker
    name: str
    format = "json"

    def topic(self, part: str) -> str:
        """The topic of a stream or a sink."""
        return f"{self.name}-{part}"

    def fill(self, stream: str, rows: pa.Table) -> str:
        """Write rows as JSON, spread over the partitions; their timestamps tell the order of arrival. Returns how the
        stream is declared."""
        self.broker.create(self.topic(stream), PARTITIONS[stream])
        values = [value for batch in rows.to_batches() for value in lines(batch).to_pylist()]
        self._send(stream, values, PARTITIONS[stream])
        return f"USING kafka OPTIONS (servers '{self.broker.servers}', topic '{self.topic(stream)}')"

    def declared(self, sink: str, folder: Path) -> str:
        """Make the topic of a sink; returns how it is declared."""
        self.broker.create(self.topic(sink), 2)
        key = ", key 'id'" if sink != "out" else ""
        return f"USING kafka OPTIONS (servers '{self.broker.servers}', topic '{self.topic(sink)}'{key})"

    def read(self, sink: str, folder: Path, schema: pa.Schema) -> list[dict[str, Any]]:
        """The rows of the committed messages of a sink."""
        return [json.loads(value) for value in committed(self.broker.servers, self.topic(sink))]

    def add(self, folder: Path, rows: pa.Table) -> None:
        """Add rows to the results as another producer does."""
        self._send("out", [json.dumps(row, default=str).encode() for row in rows.to_pylist()], 2)

    def _send(self, part: str, values: Sequence[bytes], partitions: int) -> None:
        from confluent_kafka import Producer

        config = {"bootstrap.servers": self.broker.servers, "linger.ms": 50, "enable.idempotence": True}
        producer = Producer(config, logger=QUIET)
        for number, value in enumerate(values):
            at = 1_000_000_000_000 + number
            producer.produce(self.topic(part), value, partition=number % partitions, timestamp=at)
        if producer.flush(60):
            raise TimeoutError(f"the broker did not take the rows of {part}")


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
