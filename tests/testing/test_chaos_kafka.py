"""Chaos with Kafka: a short share of it, and that it would notice a row that is twice, lost or not committed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.settings import from_mapping
from eddyline.testing.chaos import Chaos
from eddyline.testing.chaos_jobs import ChaosJob, make_job, verify
from eddyline.testing.chaos_kafka import TARGETS, committed
from eddyline.testing.kafka_broker import KafkaBroker, NoKafka, jars


def finished(kafka: KafkaBroker, folder: Path, target: str) -> ChaosJob:
    job = make_job("join", folder, seed=1, files=3, rows_per_file=100, kafka=(kafka, target))
    prepared = prepare(job.script, out=io.StringIO(), checkpoint=str(job.checkpoint))
    LocalRunner(prepared, from_mapping({"batch_rows": 150, "at_end": "flush"}), str(job.checkpoint)).run()
    return job


@pytest.mark.parametrize("target", TARGETS)
def test_a_job_that_nobody_killed_is_right(target: str, kafka: KafkaBroker, tmp_path: Path) -> None:
    assert list(verify(finished(kafka, tmp_path, target), on_spark=False)) == []


def test_a_message_that_is_twice_is_noticed(kafka: KafkaBroker, tmp_path: Path) -> None:
    job = finished(kafka, tmp_path, "kafka")
    assert job.pipeline is not None
    topic = job.pipeline.topic("out")
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


@pytest.mark.long
def test_killed_with_its_broker() -> None:
    try:
        jars()
    except NoKafka as none:
        pytest.skip(str(none))
    chaos = Chaos("local", seed=3, kafka=True)  # the first victim is the broker
    chaos.run(3)
    assert chaos.wrong == [] and chaos.kills == 3 and chaos.victims["broker"]
