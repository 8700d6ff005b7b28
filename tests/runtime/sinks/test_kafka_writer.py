"""A batch in a topic once, whatever dies: transactions, the number of the newest batch, fencing; on a real broker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count

import pytest
from confluent_kafka import KafkaException, Producer

from eddyline import faults
from eddyline.errors import JobError
from eddyline.runtime.kafka_client import KafkaServers
from eddyline.runtime.sinks.kafka_writer import Fenced, TransactionalWriter
from eddyline.runtime.sinks.sink import NO_BATCH, BatchMark, BatchOwner, Delivery
from lab.servers.kafka_broker import KafkaBroker
from tests.support.kafka_topics import committed, uncommitted

_NAMES = count()


class Died(Exception):
    """The process of a writer dies here: nothing of it is closed in an orderly way."""


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    yield
    faults.inject(None)


def dies_at(point: str) -> None:
    def strike(name: str) -> None:
        if name == point:
            raise Died(name)

    faults.inject(strike)


def writer(kafka: KafkaBroker, topic: str, owner: str = "", seconds: float = 30.0) -> TransactionalWriter:
    owner = owner or f"owner-{topic}-{next(_NAMES)}"
    made = TransactionalWriter(KafkaServers(kafka.servers), topic, owner, "the topic", seconds, {"linger.ms": 0})
    made.begin()
    return made


def messages(topic: str, *values: str) -> object:
    def produce(producer: Producer) -> None:
        for value in values:
            producer.produce(topic, value)

    return produce


def write(made: TransactionalWriter, topic: str, batch: int, *values: str) -> None:
    made.write(delivery(batch), messages(topic, *values))  # type: ignore[arg-type]


def delivery(batch: int, history: int = 7) -> Delivery:
    return Delivery(BatchOwner("job", "results"), BatchMark(batch, history), None)


def test_a_batch_that_comes_again_is_left_out(kafka: KafkaBroker) -> None:
    topic = kafka.create()
    one = writer(kafka, topic, f"owner-{topic}")
    assert one.newest is None
    write(one, topic, 0, "a", "b")
    write(one, topic, 0, "a", "b")
    write(one, topic, 3, "c")
    one.close()
    two = writer(kafka, topic, f"owner-{topic}")
    assert two.newest == BatchMark(3, 7)
    write(two, topic, 3, "c")
    write(two, topic, 4, "d")
    for batch, history in ((3, 7), (4, 8)):
        with pytest.raises(JobError, match="the topic has batch 4 of another run of this job; start it again"):
            two.write(delivery(batch, history), messages(topic, "e"))  # type: ignore[arg-type]
    assert committed(kafka, topic) == [b"a", b"b", b"c", b"d"]
    two.close()


@pytest.mark.parametrize(
    ("point", "has"),
    [
        ("kafka: messages are produced", 0),
        ("kafka: before a transaction is committed", 0),
        ("kafka: a transaction is committed", 1),
    ],
)
def test_a_writer_dies_in_a_transaction(point: str, has: int, kafka: KafkaBroker) -> None:
    topic = kafka.create()
    victim = writer(kafka, topic, f"owner-{topic}")
    victim.mark(NO_BATCH)
    dies_at(point)

    def produce(producer: Producer) -> None:
        producer.produce(topic, "a")
        producer.flush()

    with pytest.raises(Died):
        victim.write(delivery(0), produce)
    faults.inject(None)
    assert uncommitted(kafka, topic) == [b"a"] and len(committed(kafka, topic)) == has
    heir = writer(kafka, topic, f"owner-{topic}")
    assert heir.newest == (BatchMark(0, 7) if has else NO_BATCH)
    write(heir, topic, 0, "a")
    assert committed(kafka, topic) == [b"a"]
    if has:
        with pytest.raises(Fenced, match="another run of this job has taken over its transactions"):
            write(victim, topic, 1, "zombie")
    else:
        assert victim._producer is not None
        with pytest.raises(KafkaException, match="fenced"):
            victim._producer.commit_transaction()
    assert committed(kafka, topic) == [b"a"]
    heir.close()


def test_owners_do_not_disturb_each_other(kafka: KafkaBroker) -> None:
    topic = kafka.create()
    one, two = writer(kafka, topic), writer(kafka, topic)
    write(one, topic, 5, "a")
    write(two, topic, 0, "b")
    assert (one.newest, two.newest) == (BatchMark(5, 7), BatchMark(0, 7))
    assert sorted(committed(kafka, topic)) == [b"a", b"b"]
    one.close()
    two.close()


def test_a_batch_that_is_refused(kafka: KafkaBroker) -> None:
    topic = kafka.create(max_message_bytes=2000)
    made = writer(kafka, topic)
    with pytest.raises(JobError, match=r"the topic did not take batch 0: .*too large"):
        write(made, topic, 0, "x" * 5000)
    assert committed(kafka, topic) == []
    made.close()


@pytest.mark.parametrize("point", ["kafka: messages are produced", "kafka: before a transaction is committed"])
def test_the_broker_dies_in_a_transaction(point: str, kafka: KafkaBroker) -> None:
    """The writer waits for the broker, finds out whether the batch is there, and writes it again if not."""
    topic = kafka.create()
    made = writer(kafka, topic, seconds=100.0)
    write(made, topic, 0, "a")
    killed = []

    def strike(name: str) -> None:
        if name == point and not killed:
            killed.append(name)
            kafka.kill()
            threading.Thread(target=kafka.start).start()

    faults.inject(strike)
    write(made, topic, 1, "b")
    assert killed and committed(kafka, topic) == [b"a", b"b"] and made.newest == BatchMark(1, 7)
    made.close()
