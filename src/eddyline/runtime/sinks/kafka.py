"""A Kafka topic as a sink.

With a checkpoint each batch is one transaction, which also stores the number of the batch (kafka_writer.py). So
consumers that read committed messages see a whole batch or nothing of it, and a batch that comes again is left out. The
driver writes the transaction, after the commit of the batch. Tasks could not write it before the commit: Kafka ends the
transaction of a producer that is gone, so if the driver died in between, no other process could finish it. Without a
checkpoint an idempotent producer writes messages as they come.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from eddyline.errors import JobError, SettingError
from eddyline.running_time import running_seconds
from eddyline.runtime.kafka_client import KafkaServers
from eddyline.runtime.options import Options
from eddyline.runtime.sinks.kafka_messages import MessageEncoder, MessageOptions, as_dicts
from eddyline.runtime.sinks.kafka_writer import TransactionalWriter, chunks, told
from eddyline.runtime.sinks.sink import NO_BATCH, BatchMark, BatchOwner, Delivery, ReadRows

_CHUNK = 20_000
"""Messages that are handed to the client at a time."""
_QUEUE = 200_000
"""The most messages that wait in the client."""
_CHECK_SECONDS = 10.0
"""Seconds that the cluster may take to answer before the first row is read."""


@dataclass(frozen=True)
class TopicOptions:
    """The options of a Kafka sink that concern its topic."""

    servers: KafkaServers
    topic: str
    partitions: int = 0
    """The partitions of a topic that the job makes if it is missing; 0: it must be there."""
    replication: int = 1
    timeout: float = 120.0
    transaction_timeout: float = 300.0
    compression: str = "lz4"
    lost_marker: str = "stop"

    @staticmethod
    def read(options: Options) -> TopicOptions:
        """Take the options of a declaration; SettingError if one is wrong."""
        servers = KafkaServers.read(options)
        return TopicOptions(
            servers,
            options.required("topic", "results"),
            options.whole("partitions", 0),
            options.whole("replication", 1, 1),
            options.seconds("timeout", "2 minutes"),
            options.seconds("transaction_timeout", "5 minutes"),
            options.choice("compression", ("lz4", "none", "gzip", "snappy", "zstd")),
            options.choice("lost_marker", ("stop", "write", "skip")),
        )


class KafkaTopic:
    """A topic to which results are added (`ResultTable` in table_sink.py)."""

    def __init__(self, options: TopicOptions, messages: MessageEncoder) -> None:
        self._options, self._messages = options, messages
        self._writers: dict[str, TransactionalWriter] = {}
        self._known: dict[str, int] = {}
        """By owner: the newest batch that was committed when the run began."""
        self._plain: Producer | None = None
        self._failed: KafkaError | None = None

    @property
    def name(self) -> str:
        """The topic, for messages."""
        return f"the Kafka topic {self._options.topic}"

    def check(self) -> None:
        """SettingError if the topic is missing and should not be made; JobError if the cluster does not answer."""
        options = self._options
        admin = AdminClient(options.servers.config())  # type: ignore[arg-type]
        try:
            found = admin.list_topics(options.topic, timeout=_CHECK_SECONDS).topics[options.topic]
        except KafkaException as error:
            raise JobError(
                f"{self.name} cannot be written to: the servers {options.servers.servers} do not answer:"
                f" {told(error.args[0])}"
            ) from None
        unknown = found.error is not None and found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        if unknown and not options.partitions:
            raise SettingError(
                f"{self.name} does not exist; create it, or write partitions '3' to have it created", "option topic"
            )
        if found.error is not None and not unknown:
            raise SettingError(f"{self.name} cannot be used: {told(found.error)}", "option topic")

    def open(self) -> None:
        """Make the topic if it is missing and should be made."""
        options = self._options
        if not options.partitions:
            return
        admin = AdminClient(options.servers.config())  # type: ignore[arg-type]
        topic = NewTopic(options.topic, options.partitions, options.replication)
        try:
            admin.create_topics([topic])[options.topic].result(options.timeout)
            end = running_seconds() + options.timeout
            while running_seconds() < end and admin.list_topics(options.topic).topics[options.topic].error is not None:
                time.sleep(0.05)  # brokers learn of a new topic one after the other
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise JobError(f"{self.name} cannot be created: {told(error.args[0])}") from None

    def begin(self, owner: BatchOwner, last: int | None) -> None:
        """A run of a job begins, whose newest commit is of batch `last`. Other runs of it cannot write any more."""
        writer = self._writer(owner)
        self._known[owner.name] = -1 if last is None else last
        if writer.newest is None and last is None:
            writer.mark(NO_BATCH)

    def newest(self, owner: BatchOwner) -> BatchMark | None:
        """The newest batch of this owner in the topic; None if there is none."""
        newest = self._writer(owner).newest
        return None if newest is None or newest.batch < 0 else newest

    def add(self, rows: ReadRows, delivery: Delivery | None) -> None:
        """Write rows and the mark of their batch in one transaction, unless the topic has the batch."""
        if delivery is None:
            self._write_plain(rows)
            return
        owner, batch = delivery.owner, delivery.mark.batch
        writer = self._writer(owner)
        if writer.newest is None and batch <= self._known.get(owner.name, -1):
            match self._options.lost_marker:
                case "stop":
                    raise JobError(
                        f"{self.name}: the cluster no longer knows whether it has batch {batch} of this job"
                        f" (consumer group {owner.name}; offsets.retention.minutes is how long it remembers). Look at"
                        " the newest messages, and start once with lost_marker 'skip' if they have it, or 'write'"
                    )
                case "skip":
                    writer.mark(delivery.mark)
                    return
        writer.write(delivery, lambda producer: self._produce(producer, rows))

    def close(self) -> None:
        """End connections."""
        for writer in self._writers.values():
            writer.close()
        self._writers, self._plain = {}, None

    def _writer(self, owner: BatchOwner) -> TransactionalWriter:
        if owner.name not in self._writers:
            options = self._options
            timeout = {"transaction.timeout.ms": int(options.transaction_timeout * 1000)}
            where = options.servers, options.topic, owner.name, self.name
            writer = TransactionalWriter(*where, options.timeout, {**self._settings(), **timeout})
            writer.begin()
            self._writers[owner.name] = writer
        return self._writers[owner.name]

    def _settings(self) -> dict[str, object]:
        """Settings of all producers."""
        return {
            "compression.type": self._options.compression,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",  # as Kafka's own clients
            "linger.ms": 20,
            "queue.buffering.max.messages": _QUEUE,
            "message.max.bytes": 1_000_000_000,  # the topic says what is too large
            "delivery.report.only.error": True,
        }

    def _write_plain(self, rows: ReadRows) -> None:
        options, self._failed = self._options, None
        if self._plain is None:
            more = {"message.timeout.ms": int(options.timeout * 1000), "on_delivery": self._undelivered}
            self._plain = Producer(options.servers.config({**self._settings(), **more}))
        try:
            self._produce(self._plain, rows)
            left = self._plain.flush(options.timeout)
        except KafkaException as error:
            raise JobError(f"{self.name} cannot be written to: {told(error.args[0])}") from None
        if self._failed is not None or left:
            why = "the servers do not answer" if self._failed is None else told(self._failed)
            raise JobError(f"{self.name} cannot be written to: {why}")

    def _undelivered(self, error: KafkaError | None, message: object) -> None:
        self._failed = self._failed or error

    def _produce(self, producer: Producer, rows: ReadRows) -> None:
        """Hand all rows to a producer; it sends them in the background."""
        topic, messages = self._options.topic, self._messages
        for some in chunks(rows(), _CHUNK):
            while len(producer) > _QUEUE - _CHUNK:
                producer.poll(0.01)
            values, keys = messages.values(some), messages.keys(some)
            if messages.simple:
                left = as_dicts(values, keys)
                while left and producer.produce_batch(topic, left) < len(left):
                    left = [message for message in left if _is_full(message)]
                    producer.poll(0.01)
                continue
            more = keys or repeat(None, len(values)), messages.times(some), messages.headers(some)
            for value, key, stamp, headers in zip(values, *more, strict=True):
                _produce_one(producer, topic, value, key, stamp, headers)
        producer.poll(0)


def _produce_one(
    producer: Producer, topic: str, value: object, key: object, stamp: int, headers: list[tuple[str, object]]
) -> None:
    while True:
        try:
            producer.produce(topic, value, key, timestamp=stamp, headers=headers)  # type: ignore[arg-type]
            return
        except BufferError:
            producer.poll(0.01)


def _is_full(message: dict[str, object]) -> bool:
    """Whether a message was not taken because the queue is full; KafkaException if it can never be taken."""
    error = message.pop("_error", None)
    if error is None:
        return False
    if isinstance(error, KafkaError) and error.code() == KafkaError._QUEUE_FULL:
        return True
    raise KafkaException(error)


def open_table(options: Options, partition_by: Sequence[str], schema: pa.Schema) -> KafkaTopic:
    """The topic that a sink names; SettingError if an option is wrong."""
    if partition_by:
        raise SettingError("a Kafka topic has no folders; leave PARTITION BY out, and write key 'COLUMN'")
    topic, message = TopicOptions.read(options), MessageOptions.read(options, schema)
    options.done()
    return KafkaTopic(topic, MessageEncoder(message, schema))
