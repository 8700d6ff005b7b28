"""Options of Kafka sources and sinks become settings of the client; secrets come from the environment."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from eddyline.errors import SettingError
from eddyline.runtime.kafka_client import KafkaServers
from eddyline.runtime.options import Options
from lab.servers.kafka_broker import PASSWORD, USER, KafkaBroker

_SASL = {"servers": "h:1", "security": "sasl_plaintext", "sasl_user": USER, "sasl_password_env": "SESAME"}


def read(**given: str) -> KafkaServers:
    options = Options("kafka", given)
    servers = KafkaServers.read(options)
    options.done()
    return servers


def test_a_secret_is_only_in_the_settings_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESAME", "hush")
    servers = read(**_SASL)
    assert servers.config()["sasl.password"] == "hush" and "hush" not in repr(servers)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"kafka needs an option servers, as in OPTIONS \(servers 'localhost:9092'\)"),
        ({"servers": "h:1", "security": "tls"}, "option security is plaintext or ssl or sasl_plaintext or sasl_ssl"),
        ({"servers": "h:1", "security": "sasl_ssl"}, "kafka needs an option sasl_user"),
        ({"servers": "h:1", "sasl_user": "me"}, "kafka has no option 'sasl_user'"),
        ({**_SASL, "sasl_mechanism": "gssapi"}, "option sasl_mechanism is plain or scram-sha-256 or scram-sha-512"),
    ],
)
def test_wrong_options(given: dict[str, str], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        read(**given)


def test_a_variable_that_is_not_set() -> None:
    with pytest.raises(SettingError, match="sasl_password_env names the environment variable SESAME, which is not set"):
        read(**_SASL).config()


def test_a_broker_lets_in_who_knows_the_password(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESAME", PASSWORD)
    servers = read(**{**_SASL, "servers": kafka.sasl_servers})
    assert AdminClient(servers.config()).list_topics(timeout=120).brokers  # type: ignore[arg-type]
