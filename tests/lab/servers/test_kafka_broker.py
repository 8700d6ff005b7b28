"""The broker of the tests: a crash keeps what was sent, ends what was not committed, and keeps the address."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from lab.servers.kafka_broker import KafkaBroker, NoKafka, jars


def _read(servers: str, topic: str) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "-",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    read: list[bytes] = []
    while True:
        for message in consumer.consume(100, 10):
            if message.error() is not None:
                consumer.close()
                return read
            read.append(message.value())


def test_a_killed_broker_comes_back(kafka: KafkaBroker) -> None:
    topic, servers, pid = kafka.create(), kafka.servers, kafka.pid
    settings = {"bootstrap.servers": servers, "transactional.id": topic, "transaction.timeout.ms": 2000}
    producer = Producer(settings)
    producer.init_transactions(20)
    for value, commit in ((b"kept", True), (b"open", False)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(20)
        if commit:
            producer.commit_transaction(20)
    kafka.kill()
    assert not os.path.exists(f"/proc/{pid}")
    kafka.start()
    assert (kafka.servers, kafka.pid != pid) == (servers, True)
    again = Producer(settings)
    again.init_transactions(20)  # aborts the open transaction
    again.begin_transaction()
    again.produce(topic, b"later")
    again.commit_transaction(20)
    assert _read(servers, topic) == [b"kept", b"later"]


def test_without_maven_or_java_there_is_no_broker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if java := os.environ.get("JAVA_HOME") or shutil.which("java"):
        folder = Path(java).resolve() if os.environ.get("JAVA_HOME") else Path(java).resolve().parent.parent
        monkeypatch.setenv("PATH", "")
        monkeypatch.setenv("JAVA_HOME", str(folder))
        with pytest.raises(NoKafka, match=r"type: sudo apt-get install maven, or set KAFKA_HOME$"):
            jars()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoKafka, match=r"^Apache Kafka needs Java"):
        jars()
