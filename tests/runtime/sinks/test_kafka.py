"""A Kafka topic as a sink: what is refused before the first row, messages without a checkpoint, a lost number."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient

from eddyline.errors import JobError, SettingError
from eddyline.runtime.options import Options
from eddyline.runtime.sinks.kafka import KafkaTopic, open_table
from eddyline.runtime.sinks.sink import BatchMark, BatchOwner, Delivery
from lab.servers.kafka_broker import KafkaBroker
from tests.runtime.sinks.test_table_sink import (  # noqa: F401
    System,
    dying,
    expected,
    in_folder,
    test_a_finished_job_delivers_its_last_batch_again,
    test_a_library_that_is_missing,
    test_an_old_copy_of_a_checkpoint,
    test_every_row_is_there_once_whatever_dies,
    test_two_jobs_write_to_one_table,
    test_without_a_checkpoint,
)
from tests.support.kafka_topics import committed, messages

_WHEN = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
_ROWS = pa.record_batch({"k": [1, 2], "s": ["x", None], "at": pa.array([_WHEN, _WHEN], pa.timestamp("us", "UTC"))})


@pytest.fixture
def system(kafka: KafkaBroker, in_folder: Path) -> System:  # noqa: F811
    """A topic with the tests of all sinks that keep the numbers of batches."""
    name = kafka.create(partitions=2)
    options = f"servers '{kafka.servers}', topic '{name}', key 'k'"
    return System(f"USING kafka OPTIONS ({options})", lambda: rows_of(kafka, name))


def rows_of(kafka: KafkaBroker, name: str) -> list[dict[str, Any]]:
    """The committed messages as rows, up to the first transaction that is open."""
    read = [json.loads(value or b"") for value in committed(kafka, name)]
    return [{name: datetime.fromisoformat(v) if isinstance(v, str) else v for name, v in row.items()} for row in read]


def topic(kafka: KafkaBroker, name: str, partition_by: tuple[str, ...] = (), **given: str) -> KafkaTopic:
    return open_table(Options("kafka", {"servers": kafka.servers, "topic": name, **given}), partition_by, _ROWS.schema)


def delivery(owner: BatchOwner | None, batch: int) -> Delivery | None:
    return None if owner is None else Delivery(owner, BatchMark(batch, 7), None)


def rows() -> Iterator[pa.RecordBatch]:
    return iter([_ROWS])


def test_what_is_refused_before_the_first_row(kafka: KafkaBroker) -> None:
    with pytest.raises(SettingError, match=r"topic nowhere does not exist; create it, or write partitions '3' to have"):
        topic(kafka, "nowhere").check()
    with pytest.raises(SettingError, match="a Kafka topic has no folders; leave PARTITION BY out, and write key"):
        topic(kafka, "nowhere", partition_by=("k",))
    with pytest.raises(SettingError, match="kafka has no option 'keys'; did you mean 'key'"):
        topic(kafka, "nowhere", keys="k")
    with pytest.raises(SettingError, match="option lost_marker is stop or write or skip, not 'forget'"):
        topic(kafka, "nowhere", lost_marker="forget")


def test_servers_that_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eddyline.runtime.sinks.kafka._CHECK_SECONDS", 0.5)
    options = Options("kafka", {"servers": "127.0.0.1:1", "topic": "x"})
    with pytest.raises(JobError, match=r"topic .* cannot be written to: the servers 127\.0\.0\.1:1 do not answer"):
        open_table(options, (), _ROWS.schema).check()


def test_a_topic_that_is_made(kafka: KafkaBroker) -> None:
    made = topic(kafka, "made-by-the-sink", partitions="3")
    for _ in range(2):
        made.check()
        made.open()
    made.add(rows, None)
    assert sorted(json.loads(value or b"")["k"] for value in committed(kafka, "made-by-the-sink")) == [1, 2]
    made.close()


def test_key_headers_and_time(kafka: KafkaBroker) -> None:
    name = kafka.create()
    made = topic(kafka, name, key="k", headers='s, from="here"', timestamp="at")
    made.add(rows, None)
    one, two = messages(kafka, name)
    assert (one.key(), one.headers()) == (b"1", [("s", b"x"), ("from", b"here")])
    assert (two.key(), two.headers()) == (b"2", [("s", None), ("from", b"here")])
    assert one.timestamp()[1] == int(_WHEN.timestamp() * 1000)
    made.close()


@pytest.mark.parametrize(("lost_marker", "has"), [("write", 4), ("skip", 2)])
def test_a_number_that_the_cluster_has_forgotten(lost_marker: str, has: int, kafka: KafkaBroker) -> None:
    """The run died between the transaction and the end of the batch, and came back after offsets.retention.minutes."""
    name = kafka.create()
    owner = BatchOwner(name, "results")
    first = topic(kafka, name)
    first.begin(owner, None)
    first.add(rows, delivery(owner, 0))
    first.close()
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    admin.delete_consumer_groups([owner.name])[owner.name].result(20)
    again = topic(kafka, name)
    again.begin(owner, 0)
    with pytest.raises(JobError, match=r"no longer knows whether it has batch 0 of this job .* lost_marker 'skip'"):
        again.add(rows, delivery(owner, 0))
    again.close()
    chosen = topic(kafka, name, lost_marker=lost_marker)
    chosen.begin(owner, 0)
    chosen.add(rows, delivery(owner, 0))
    assert len(committed(kafka, name)) == has and chosen.newest(owner) == BatchMark(0, 7)
    chosen.close()


def test_a_batch_of_this_run_needs_no_number(kafka: KafkaBroker) -> None:
    """A sink that is new to a job writes its first batch: nobody can have written it before."""
    name = kafka.create()
    made, owner = topic(kafka, name), BatchOwner(name, "results")
    made.begin(owner, 4)
    made.add(rows, delivery(owner, 5))
    assert len(committed(kafka, name)) == 2 and made.newest(owner) == BatchMark(5, 7)
    made.close()


def test_more_messages_than_the_client_holds(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eddyline.runtime.sinks.kafka._QUEUE", 100)
    monkeypatch.setattr("eddyline.runtime.sinks.kafka._CHUNK", 70)
    many = pa.record_batch({"k": list(range(1000)), "s": ["x"] * 1000, "at": [_WHEN] * 1000}, schema=_ROWS.schema)
    read: list[Callable[[], Iterator[pa.RecordBatch]]] = [lambda: iter([many])]
    for given in ({}, {"headers": "s"}):
        name = kafka.create()
        made, owner = topic(kafka, name, **given), BatchOwner(name, "results")
        made.begin(owner, None)
        made.add(read[0], delivery(owner, 0))
        assert sorted(json.loads(value or b"")["k"] for value in committed(kafka, name)) == list(range(1000))
        made.close()


@pytest.mark.parametrize("owned", [True, False])
def test_the_topic_says_what_is_too_large(kafka: KafkaBroker, owned: bool) -> None:
    name = kafka.create(max_message_bytes=3_000_000)
    owner = BatchOwner(name, "results") if owned else None
    made = topic(kafka, name, compression="none")
    if owner is not None:
        made.begin(owner, None)
    fits, large = (
        pa.record_batch({"k": [1], "s": ["x" * size], "at": [_WHEN]}, schema=_ROWS.schema)
        for size in (2_000_000, 4_000_000)
    )
    made.add(lambda: iter([fits]), delivery(owner, 0))
    with pytest.raises(JobError, match=f"the Kafka topic {name} .*Message size too large"):
        made.add(lambda: iter([large]), delivery(owner, 1))
    made.close()
    (value,) = committed(kafka, name)
    assert len(value or b"") > 2_000_000
