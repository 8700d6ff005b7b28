"""Questions to a Kafka cluster: which partitions topics have, and which offsets.

A cluster that was reached once may go away for a while, as it does when a broker restarts: questions are repeated for
`_PATIENCE` seconds. The first question fails sooner, because then the address is probably wrong. Nothing is written to
the cluster: no group, no offset.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from eddyline.errors import JobError
from eddyline.running_time import running_seconds
from eddyline.runtime.kafka_client import KafkaServers

_PATIENCE = 60.0
_FIRST = 8.0
"""Seconds that the first answer may take."""
_PAUSE = 0.1
_SETTLE = 5.0
"""Seconds that a broker may take until it knows the ends of its partitions."""
END, BEGINNING_OF_LOG = -1, -2
"""Times that stand for the end of a partition and for its first message."""
_REFUSED = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED)
_FINAL = (
    *_REFUSED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError._UNKNOWN_TOPIC,
)
"""Errors that no further try mends."""
_T = TypeVar("_T")


def key_of(topic: str, partition: int) -> str:
    """The name of a partition in offsets.

    >>> partition_of(key_of("orders", 3))
    ('orders', 3)
    """
    return f"{topic}/{partition}"


def partition_of(key: str) -> tuple[str, int]:
    """The topic and the number of a partition, by its name in offsets."""
    topic, _, number = key.rpartition("/")
    return topic, int(number)


class KafkaCluster:
    """A client of a cluster. `read_committed` leaves out messages of transactions that are open or aborted."""

    def __init__(
        self, servers: KafkaServers, read_committed: bool, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.servers, self.read_committed, self._sleep = servers, read_committed, sleep
        self._consumer: Any = None
        self._admin: Any = None
        self._reached = False
        self._last: KafkaError | None = None

    def partitions(self, topics: Sequence[str]) -> list[str]:
        """The partitions of topics; JobError if there is no such topic."""

        def ask() -> list[str]:
            return [key for topic in topics for key in of_topic(topic)]

        def of_topic(topic: str) -> list[str]:
            found = self._client().list_topics(topic, timeout=1.0).topics[topic]
            if found.error is not None:
                if found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise self.failed(f"there is no topic {topic}")
                raise KafkaException(found.error)
            return [key_of(topic, number) for number in sorted(found.partitions)]

        return self._asked(ask)

    def ids(self, topics: Sequence[str]) -> dict[str, str]:
        """The id of each topic, which another topic of the same name does not have; brokers before Kafka 2.8 have
        none. JobError if there is no such topic."""

        def ask() -> dict[str, str]:
            if self._admin is None:
                settings: dict[str, Any] = self.servers.config()
                self._admin = AdminClient(settings)
            answers = self._admin.describe_topics(TopicCollection(list(topics)), request_timeout=2.0)
            found = {topic: answer.result().topic_id for topic, answer in answers.items()}
            return {t: str(id_) for t, id_ in found.items() if id_ and id_.get_most_significant_bits()}

        return self._asked(ask)

    def offsets(self, keys: Sequence[str], moment: int) -> dict[str, int]:
        """For each partition the offset of its first message at or after a time in milliseconds, or of END or
        BEGINNING_OF_LOG; -1 if there is no such message."""
        if not keys:
            return {}
        wanted = [TopicPartition(*partition_of(key), moment) for key in keys]

        def ask() -> dict[str, int]:
            found = self._client().offsets_for_times(wanted, timeout=2.0)
            for one in found:
                if one.error is not None:
                    raise KafkaException(one.error)
            return {key_of(one.topic, one.partition): one.offset for one in found}

        return self._asked(ask)

    def settled(self, key: str, at: int) -> dict[str, int]:
        """The end of a partition, which should be at least `at`: a broker that has just come up may not know it yet."""
        end = running_seconds() + _SETTLE
        while (found := self.offsets([key], END))[key] < at and running_seconds() < end:
            self._sleep(_PAUSE)
        return found

    def close(self) -> None:
        """Close the connection; it is opened again when it is needed."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = self._admin = None

    def failed(self, why: str) -> JobError:
        """An error of this cluster."""
        return JobError(f"kafka at {self.servers.servers}: {why}")

    def consumer(self, more: Mapping[str, object], failed: Callable[[KafkaError], None]) -> Any:
        """A new consumer; `failed` hears of errors of the connection."""
        isolation = "read_committed" if self.read_committed else "read_uncommitted"
        settings = {
            "group.id": "eddyline",  # the library wants one; nothing is committed to it
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "isolation.level": isolation,
            "auto.offset.reset": "error",
            "error_cb": failed,
            **more,
        }
        try:
            return Consumer(self.servers.config(settings))
        except KafkaException as error:
            raise self.failed(error.args[0].str()) from None

    def check(self, error: KafkaError | None) -> None:
        """JobError for an error that no further try mends."""
        if error is not None and (error.code() in _FINAL or error.fatal()):
            raise self.failed(error.str())

    def gone(self, seconds: float, error: KafkaError | None) -> JobError:
        """The error of a cluster that does not answer."""
        return self.failed(f"no answer for {seconds:.0f} seconds ({error.str() if error else 'no message came'})")

    def _client(self) -> Any:
        if self._consumer is None:
            self._last = None
            self._consumer = self.consumer({}, self._hear)
        return self._consumer

    def _hear(self, error: KafkaError) -> None:
        if self._last is None or self._last.code() not in _REFUSED:
            self._last = error

    def _asked(self, question: Callable[[], _T]) -> _T:
        """The answer, however often the question must be asked."""
        patience = _PATIENCE if self._reached else _FIRST
        end = running_seconds() + patience
        while True:
            try:
                answer = question()
                self._reached = True
                return answer
            except KafkaException as raised:
                error = raised.args[0]
            self._client().poll(0)  # hears of errors
            self.check(self._last)
            self.check(error)
            if running_seconds() > end:
                raise self.gone(patience, self._last or error)
            self._sleep(_PAUSE)


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Nothing is searched for cycles of garbage meanwhile. Messages are Python objects, but have no cycles; to look
    through many of them again and again takes a third of the time of reading."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class PartitionReader:
    """Reads one partition. It stays where it is after a range, so that the next range needs no new request; messages
    that came too early are kept."""

    def __init__(self, cluster: KafkaCluster, key: str) -> None:
        self._cluster, self.key = cluster, key
        self._topic, self._number = partition_of(key)
        self._last: KafkaError | None = None
        settings = {
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,  # so long it takes to hear of the end of a partition
            "queued.max.messages.kbytes": 8192,
        }
        self._consumer = cluster.consumer(settings, self._hear)
        self._at: int | None = None
        self._ahead: list[Any] = []
        self._end = -1
        """The end of the partition, if it was reached: librdkafka says so once."""

    def start(self, offset: int) -> None:
        """Begin to fetch messages from an offset on."""
        if self._at != offset:
            self._ahead, self._end = [], -1
            self._consumer.assign([TopicPartition(self._topic, self._number, offset)])
            self._at = offset

    @without_collector()
    def messages(self, start: int, end: int, most: int) -> list[Any]:
        """Up to about `most` messages from `start` on, before `end`. The next start is `self.at`: it is `end` if there
        are no more, however many offsets have no message. JobError if messages are gone or none come."""
        self.start(start)
        found, self._ahead = self._ahead, []
        waits = running_seconds() + _PATIENCE
        at = start
        while self._end < end and len(found) < most and (not found or found[-1].offset() < end - 1):
            first = self._consumer.poll(0.5)
            if first is None:
                self._cluster.check(self._last)
                if running_seconds() > waits:
                    raise self._cluster.gone(_PATIENCE, self._last)
                continue
            came = [first, *self._consumer.consume(most, 0)]
            odd = [message for message in came if message.error() is not None]
            for message in odd:
                if message.error().code() == KafkaError._PARTITION_EOF:
                    self._end = message.offset()
                else:
                    self._raise(message.error(), start)
            found += [message for message in came if message.error() is None] if odd else came
        if self._end >= end or (found and found[-1].offset() >= end - 1):
            at = end
        elif found:
            at = found[-1].offset() + 1
        cut = len(found)
        while cut and found[cut - 1].offset() >= end:
            cut -= 1
        found, self._ahead = found[:cut], found[cut:]
        self._at = at
        if self._end == end and not self._ahead:  # nothing to fetch now: do not ask again and again
            self._consumer.unassign()
            self._at = None
        self.at = at
        return found

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def _hear(self, error: KafkaError) -> None:
        self._last = error

    def _raise(self, error: KafkaError, start: int) -> None:
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise self._cluster.failed(
                f"topic {self._topic}, partition {self._number} has no offset {start} any more: messages were removed"
                " by retention before they were read; keep them longer, or start anew without the checkpoint"
            )
        self._cluster.check(error)
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise self._cluster.failed(f"there is no topic {self._topic} any more")
