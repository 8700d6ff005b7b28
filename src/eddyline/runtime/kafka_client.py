"""How the source and the sink reach a Kafka cluster: options of a declaration become settings of librdkafka.

A secret is never part of a declaration or of a message: an option `..._env` names the environment variable that has it
(runtime/secrets.py), and the value is read where a client is made.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from eddyline.errors import SettingError
from eddyline.extras import install
from eddyline.runtime.options import Options
from eddyline.runtime.secrets import secret

SECURITY = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
MECHANISMS = ("plain", "scram-sha-256", "scram-sha-512")
RECONNECT = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 1000}
"""A broker that comes back is found within a second."""

_FILES = {"ssl_ca": "ssl.ca.location", "ssl_certificate": "ssl.certificate.location", "ssl_key": "ssl.key.location"}


@dataclass(frozen=True)
class KafkaServers:
    """The addresses of a cluster and how to log in."""

    servers: str
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of librdkafka without secrets."""
    secrets: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By setting of librdkafka: the option that names the environment variable with its value, and the variable."""

    @staticmethod
    def read(options: Options) -> KafkaServers:
        """Take the options of a declaration that concern the connection; SettingError if one is wrong."""
        servers = options.required("servers", "localhost:9092")
        settings, secrets = dict[str, str](), dict[str, tuple[str, str]]()
        security = options.choice("security", SECURITY)
        if security != "plaintext":
            settings["security.protocol"] = security
        if security.startswith("sasl"):
            settings["sasl.mechanism"] = options.choice("sasl_mechanism", MECHANISMS).upper()
            settings["sasl.username"] = options.required("sasl_user", "reader")
            variable = options.required("sasl_password_env", "KAFKA_PASSWORD")
            secrets["sasl.password"] = ("sasl_password_env", variable)
        if security.endswith("ssl"):
            settings |= {setting: file for key, setting in _FILES.items() if (file := options.text(key))}
            if variable := options.text("ssl_key_password_env"):
                secrets["ssl.key.password"] = ("ssl_key_password_env", variable)
        return KafkaServers(servers, settings, secrets)

    def config(self, more: Mapping[str, object] | None = None) -> dict[str, object]:
        """The settings of a client, with secrets; SettingError if a variable is not set."""
        known = {setting: secret(*named) for setting, named in self.secrets.items()}
        base: dict[str, object] = {"bootstrap.servers": self.servers, **RECONNECT, **self.settings, **known}
        return base | {"logger": quiet()} | dict(more or {})


def quiet() -> logging.Logger:
    """The logger of clients. librdkafka reports every lost connection; errors that matter are raised."""
    logger = logging.getLogger("eddyline.kafka")
    logger.setLevel(logging.CRITICAL + 1)
    return logger


def check_installed(format_: str = "kafka") -> None:
    """SettingError if the client library is missing."""
    try:
        import confluent_kafka  # noqa: F401
    except ModuleNotFoundError as error:
        raise SettingError(f"{format_} needs confluent-kafka ({error}); type: {install('kafka')}", "format") from None
