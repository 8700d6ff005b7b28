"""Chaos between servers: a short share of it, and that it would notice a row that is twice, lost or not committed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.settings import from_mapping
from lab.chaos.jobs import ChaosJob, make_job, verify
from lab.chaos.kafka import Topics, committed
from lab.chaos.main import Chaos
from lab.chaos.servers import SERVERS, Servers, servers
from lab.servers.kafka_broker import KafkaBroker, NoKafka, jars
from lab.servers.postgres import NoPostgres, binaries


@pytest.fixture(scope="module")
def others() -> Iterator[Servers]:
    try:
        with servers(["valkey", "postgres", "http"]) as found:
            yield found
    except NoPostgres as none:
        pytest.skip(str(none))


def finished(there: Servers, folder: Path, number: int, name: str = "join") -> ChaosJob:
    job = make_job(name, folder, seed=1, files=3, rows_per_file=100, servers=(there, number))
    assert job.places is not None
    with job.places.written_by_others(job.folder, job.schema):
        prepared = prepare(job.script, out=io.StringIO(), checkpoint=str(job.checkpoint))
        settings = from_mapping({"batch_rows": 150, "at_end": "flush"})
        LocalRunner(prepared, settings, str(job.checkpoint)).run()
    return job


@pytest.mark.parametrize("number", range(2))
def test_a_job_of_topics_that_nobody_killed_is_right(number: int, kafka: KafkaBroker, tmp_path: Path) -> None:
    assert list(verify(finished(Servers({"kafka": kafka}), tmp_path, number), on_spark=False)) == []


@pytest.mark.parametrize(
    ("number", "name"), [(0, "join"), (1, "enriched"), (2, "enriched"), (3, "enriched"), (5, "aggregate")]
)
def test_a_job_between_servers_that_nobody_killed_is_right(
    number: int, name: str, others: Servers, tmp_path: Path
) -> None:
    assert list(verify(finished(others, tmp_path, number, name), on_spark=False)) == []


def test_a_message_that_is_twice_is_noticed(kafka: KafkaBroker, tmp_path: Path) -> None:
    job = finished(Servers({"kafka": kafka}), tmp_path, 0)
    assert job.places is not None and isinstance(job.places.target, Topics)
    topic = job.places.target.topic("out")
    value = committed(kafka.servers, topic)[0]
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": topic})
    producer.init_transactions(30)
    for end in (producer.abort_transaction, producer.commit_transaction):
        before = list(verify(job, on_spark=False))
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush()
        end(30)
    assert before == []
    assert any("the sink differs" in wrong for wrong in verify(job, on_spark=False))


def test_a_row_of_another_writer_that_is_lost_is_noticed(others: Servers, tmp_path: Path) -> None:
    job = finished(others, tmp_path, 0)
    assert job.places is not None
    job.places._sent[-1000] = 2
    assert list(verify(job, on_spark=False)) == ["1 rows of another writer are lost"]


def test_killed_with_its_broker() -> None:
    try:
        jars()
    except NoKafka as none:
        pytest.skip(str(none))
    chaos = Chaos("local", seed=3, servers=("kafka",), files=12)
    chaos.run(3)
    assert chaos.wrong == [] and chaos.kills == 3 and chaos.victims["kafka"]


def test_killed_with_its_servers() -> None:
    try:
        jars()
        binaries()
    except (NoKafka, NoPostgres) as none:
        pytest.skip(str(none))
    chaos = Chaos("local", seed=3, servers=SERVERS, files=12)
    chaos.run(6)
    assert chaos.wrong == [] and chaos.kills == 6
