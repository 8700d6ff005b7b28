"""Writes batches of messages to one Kafka topic, each batch in one transaction together with its number.

The number is the committed offset of a consumer group that has the name of the owner and no consumers: offset n + 1 on
partition 0 of the topic means that batches up to n are there; its metadata is the history of batch n. The transaction
commits the messages and this offset together, so the offset always tells the truth, whichever process died at whichever
moment.

The transactional id is the owner's name too. `begin` ends the transaction that an earlier writer of this owner has left
open, and fences that writer: it can never commit again. The offset is read after that, so nothing changes it any more.
If the outcome of a commit is unknown, because the broker died or did not answer, the writer begins again in this way,
looks at the offset, and writes the batch again only if it is not there.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from eddyline.errors import JobError
from eddyline.faults import reach
from eddyline.running_time import running_seconds
from eddyline.runtime.kafka_client import KafkaServers
from eddyline.runtime.sinks.sink import BatchMark, BatchOwner, Delivery

_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
_OFFSET_SECONDS = 10.0
"""Seconds after which a coordinator that does not take an offset is taken for dead."""
_PAUSE = 0.2
"""Seconds between two tries."""

Produce = Callable[[Producer], None]
"""Hands all messages of a batch to a producer; it may be called again with another one."""


class Fenced(JobError):
    """Another writer of the same owner has begun."""


class TransactionalWriter:
    """The writer of one owner. All errors are JobErrors whose texts begin with `name`, the topic in messages."""

    def __init__(
        self, servers: KafkaServers, topic: str, owner: str, name: str, seconds: float, config: dict[str, object]
    ) -> None:
        """The cluster may be away for `seconds`; `config` has more settings of the producer."""
        self._servers, self._topic, self._owner, self._name = servers, topic, owner, name
        self._seconds, self._config = seconds, config
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None
        self.newest: BatchMark | None = None
        """The newest batch in the topic, NO_BATCH if there is none; None if the cluster does not know."""

    def begin(self) -> None:
        """Fence earlier writers and read how many batches the topic has."""
        self._until_done(self._begin, "cannot be written to")

    def write(self, delivery: Delivery, produce: Produce) -> None:
        """Write the messages of a batch, unless the topic has it."""

        def try_once() -> None:
            if self._producer is None:
                self._begin()
            if delivery.is_missing(self._name, self.newest):
                self._transaction(delivery.mark, produce)

        self._until_done(try_once, f"did not take batch {delivery.mark.batch}")

    def mark(self, mark: BatchMark) -> None:
        """Keep the mark of a batch without messages, in a topic that has none."""
        self.write(Delivery(BatchOwner(self._owner, ""), mark, None), lambda producer: None)

    def close(self) -> None:
        """End the connections; a transaction that is open is aborted by the next writer, or by its timeout."""
        if self._producer is not None:
            with contextlib.suppress(KafkaException):  # of a producer that is fenced, for example
                self._producer.purge()
                self._producer.flush(0)
        if self._consumer is not None:
            self._consumer.close()
        self._producer = self._consumer = None

    def _until_done(self, step: Callable[[], None], what: str) -> None:
        end = running_seconds() + self._seconds
        while True:
            try:
                step()
                return
            except KafkaException as error:
                reason = error.args[0]
                self.close()
                if reason.code() in _FENCED:
                    raise Fenced(
                        f"{self._name}: another run of this job has taken over its transactions, or one took longer"
                        " than transaction_timeout; start the job again"
                    ) from None
                if running_seconds() >= end or not _may_pass(reason):
                    raise JobError(f"{self._name} {what}: {told(reason)}") from None
                time.sleep(_PAUSE)

    def _begin(self) -> None:
        self.close()
        config = {"transactional.id": self._owner, **self._config}
        self._producer = Producer(self._servers.config(config))
        self._producer.init_transactions(self._seconds)
        group = {"group.id": self._owner, "enable.auto.commit": False, "isolation.level": "read_committed"}
        self._consumer = Consumer(self._servers.config(group))
        place = self._consumer.committed([TopicPartition(self._topic, 0)], timeout=self._seconds)[0]
        if place.error is not None:
            raise KafkaException(place.error)
        self.newest = BatchMark(place.offset - 1, int(place.metadata or 0)) if place.offset >= 0 else None

    def _transaction(self, mark: BatchMark, produce: Produce) -> None:
        assert self._producer is not None and self._consumer is not None
        producer, place = self._producer, TopicPartition(self._topic, 0, mark.batch + 1, str(mark.history))
        producer.begin_transaction()
        produce(producer)
        reach("kafka: messages are produced")
        group = self._consumer.consumer_group_metadata()
        self._within(_OFFSET_SECONDS, lambda: producer.send_offsets_to_transaction([place], group, _OFFSET_SECONDS))
        reach("kafka: before a transaction is committed")
        producer.commit_transaction(self._seconds)
        reach("kafka: a transaction is committed")
        self.newest = mark

    def _within(self, seconds: float, call: Callable[[], None]) -> None:
        """Make a call of librdkafka that may never come back: rd_kafka_send_offsets_to_transaction does not keep its
        timeout if the group's coordinator dies (librdkafka issues 5456 and 5511). Then the producer is left behind;
        the next one fences it."""
        raised: list[BaseException] = []

        def catch() -> None:
            try:
                call()
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=catch, daemon=True)
        thread.start()
        thread.join(seconds)
        if thread.is_alive():
            self._producer = None  # to purge it would block too
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the group's coordinator does not answer"))
        if raised:
            raise raised[0]


def told(error: Any) -> str:
    """An error of librdkafka as one sentence."""
    return str(error.str()).rstrip(".") or str(error.name())


def _may_pass(error: Any) -> bool:
    """Whether an error may be gone at the next try, with a new producer."""
    return error.code() not in (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError._AUTHENTICATION,
        KafkaError._INVALID_ARG,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
    )


def chunks(rows: Iterator[Any], size: int) -> Iterator[Any]:
    """Record batches of at most `size` rows."""
    for some in rows:
        for start in range(0, some.num_rows, size):
            yield some.slice(start, size)
