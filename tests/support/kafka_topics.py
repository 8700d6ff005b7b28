"""What is in a topic, for tests of sinks."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from lab.servers.kafka_broker import KafkaBroker


def messages(kafka: KafkaBroker, topic: str, isolation: str = "read_committed") -> list[Message]:
    """All messages of a topic, partition by partition. A consumer of committed messages comes only up to the first
    transaction that is open."""
    config = {"bootstrap.servers": kafka.servers, "group.id": "tests", "enable.partition.eof": True}
    consumer = Consumer({**config, "isolation.level": isolation, "enable.auto.commit": False})
    partitions = consumer.list_topics(topic, timeout=120).topics[topic].partitions
    found: dict[int, list[Message]] = {number: [] for number in partitions}
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    ended: set[int | None] = set()
    while len(ended) < len(partitions):
        for message in consumer.consume(10_000, 1.0):
            error, place = message.error(), message.partition()
            if error is None and place is not None:
                found[place].append(message)
            elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                ended.add(place)
            elif error is not None:
                raise KafkaException(error)
    consumer.close()
    return [message for some in found.values() for message in some]


def committed(kafka: KafkaBroker, topic: str) -> list[bytes | None]:
    """The values of the committed messages of a topic."""
    return [message.value() for message in messages(kafka, topic)]


def uncommitted(kafka: KafkaBroker, topic: str) -> list[bytes | None]:
    """The values of all messages of a topic, of open and aborted transactions too."""
    return [message.value() for message in messages(kafka, topic, "read_uncommitted")]
