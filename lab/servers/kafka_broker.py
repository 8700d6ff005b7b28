"""A real Apache Kafka broker in KRaft mode, for tests, benchmarks and chaos.

The program is the machine's own if KAFKA_HOME names it. Otherwise Maven fetches it once into the user's cache; a lock
keeps processes that start together from fetching at the same time. The broker keeps its ports and its folder when it
is killed and started again, so its clients find it again, and so do transactions that were open.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.servers.guarded_folder import guarded_folder
from lab.servers.valkey import free_port

VERSION = "4.1.0"
USER, PASSWORD = "eddyline", "open-sesame"
"""What the listener with SASL accepts."""
TRIES = 3
READY = 60.0
"""Seconds that a broker may take to start; a busy machine needs twenty."""
_FETCH = 900.0
"""Seconds that Maven may take."""
_JAVA = ("-Xms64m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_CLUSTER = "ZWRkeWxpbmUtdGVzdHMwMA"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>eddyline</groupId><artifactId>wanted</artifactId><version>1</version><dependencies>{wanted}</dependencies>
</project>
"""
_DEPENDENCY = """<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"""
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
_CONNECTOR = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0", _ALONE),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0", _ALONE),
    ("org.apache.kafka", "kafka-clients", "3.9.1", _ALONE),
    ("org.apache.commons", "commons-pool2", "2.12.0", _ALONE),
)
"""Spark's connector without what Spark has itself. Each is the newest version that registries have for certain; the
connector goes with PySpark 4.3 too."""
_LOGIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAIN:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SASL_SSL",
    "inter.broker.listener.name": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": _LOGIN,
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",  # messages may have any timestamp
    "log.cleaner.backoff.ms": "200",
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "0",
    "controlled.shutdown.enable": "false",
}
"""Topics are compacted and cut within a second."""


class NoKafka(Exception):
    """There is no broker to be had; the message says why."""


class KafkaBroker:
    """A broker with a folder and ports of its own: `start`, `kill` and `stop` may follow each other any number of
    times. `servers` is its address for clients; on `sasl_servers` they must show USER and PASSWORD; on `tls_servers`
    too, by TLS: there it shows `certificate`, a file. Without openssl there is no certificate, and nothing listens
    there."""

    def __init__(self, folder: Path, more: Mapping[str, str] | None = None) -> None:
        self._jars, self.certificate = jars(), _certificate()
        self._folder, self._more = folder, dict(more or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._choose_ports()

    def _choose_ports(self) -> None:
        self.port, self.sasl_port, self.tls_port, self._controller = (free_port() for _ in range(4))
        ports = self.port, self.sasl_port, self.tls_port
        self.servers, self.sasl_servers, self.tls_servers = (f"127.0.0.1:{port}" for port in ports)

    @property
    def pid(self) -> int:
        """The process of the running broker."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Starts the broker where it was, and waits until it answers. NoKafka if it does not start."""
        fresh = not (self._folder / "data").exists()
        for left in reversed(range(TRIES)):
            if fresh:
                shutil.rmtree(self._folder / "data", ignore_errors=True)
                shutil.copytree(_formatted(self._jars), self._folder / "data")
            self._launch()
            if self._is_ready():
                return
            self.kill()
            if fresh:  # somebody took a port between our look at it and the start
                self._choose_ports()
            if not left:
                said = (self._folder / "log").read_text(encoding="utf-8", errors="replace").split()
                raise NoKafka(f"the Kafka broker does not start: {' '.join(said)[-300:]}")

    def kill(self) -> None:
        """Kills the broker as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stops the broker, which writes what it has to disk."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """The broker hangs."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """The broker goes on."""
        os.kill(self.pid, signal.SIGCONT)

    def create(self, topic: str | None = None, partitions: int = 1, **config: object) -> str:
        """Creates a topic, with a name that no other has unless one is given, and waits for it; `config` are its
        settings, with _ in place of a dot. Returns its name."""
        from confluent_kafka.cimpl import NewTopic

        topic = topic or f"topic-{uuid.uuid4().hex[:8]}"
        settings = {name.replace("_", "."): str(value) for name, value in config.items()}
        admin = client(self.servers)
        admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(30)
        while len(admin.list_topics(topic, timeout=10).topics[topic].partitions) < partitions:
            time.sleep(0.01)
        return topic

    def create_again(self, topic: str, partitions: int = 1) -> None:
        """Deletes a topic and creates an empty one of the same name."""
        admin = client(self.servers)
        admin.delete_topics([topic])[topic].result(30)
        while topic in admin.list_topics(timeout=10).topics:
            time.sleep(0.01)
        self.create(topic, partitions)

    def _launch(self) -> None:
        listeners = {"PLAIN": self.port, "SASL": self.sasl_port, "CONTROLLER": self._controller}
        tls: dict[str, str] = {}
        if self.certificate is not None:
            listeners["TLS"] = self.tls_port
            shown = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.certificate)}
            tls = {f"listener.name.tls.{name}": value for name, value in shown.items()}
            tls["listener.name.tls.plain.sasl.jaas.config"] = _LOGIN
        named = {name: f"{name}://127.0.0.1:{port}" for name, port in listeners.items()}
        properties = {
            **_PROPERTIES,
            "listeners": ",".join(named.values()),
            "advertised.listeners": ",".join(named[name] for name in named if name != "CONTROLLER"),
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "log.dirs": str(self._folder / "data"),
            **tls,
            **self._more,
        }
        temporary = f"-Djava.io.tmpdir={self._folder}"  # a broker that is killed leaves its unpacked libraries there
        command = [_java(), *_JAVA, temporary, "-cp", f"{self._jars}/*", "kafka.Kafka"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, _written(self._folder, properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
            )

    def _is_ready(self) -> bool:
        assert self._process is not None
        from confluent_kafka import KafkaException

        admin, end = client(self.servers), time.monotonic() + READY
        while self._process.poll() is None and time.monotonic() < end:
            with contextlib.suppress(KafkaException):
                if admin.list_topics(timeout=0.5).brokers:
                    return True
        return False

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def kafka_broker(more: Mapping[str, str] | None = None) -> Iterator[KafkaBroker]:
    """A broker that runs until the end of the `with`; its data are in a temporary folder. `more` are properties of the
    broker. NoKafka if there is none to be had."""
    with guarded_folder("eddyline-kafka-") as folder:
        broker = KafkaBroker(folder, more)
        try:
            broker.start()
            yield broker
        finally:
            broker.kill()  # its data are not needed again


def client(servers: str) -> Any:
    """A client for the administration of a broker; it says nothing while the broker is away."""
    from confluent_kafka.admin import AdminClient

    quiet = logging.getLogger("lab.kafka")
    quiet.setLevel(logging.CRITICAL)
    return AdminClient(
        {"bootstrap.servers": servers, "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 200}, logger=quiet
    )


def jars() -> Path:
    """The folder with the broker's program, fetched if need be; NoKafka if that fails."""
    _java()
    if home := os.environ.get("KAFKA_HOME"):
        return Path(home) / "libs"
    with _lock():
        return _fetched("jars", (("org.apache.kafka", "kafka_2.13", VERSION, ""),))


def connector_jars() -> list[Path]:
    """The files of Spark's own Kafka connector, fetched if need be; NoKafka if that fails."""
    with _lock():
        return sorted(_fetched("connector", _CONNECTOR).iterdir())


def _fetched(name: str, artifacts: Sequence[tuple[str, str, str, str]]) -> Path:
    """The folder of the cache with artefacts of Maven's, and what they need."""
    folder = _cache() / name
    if folder.exists():
        return folder
    mvn = shutil.which("mvn")
    if mvn is None:
        raise NoKafka("no Maven fetches Apache Kafka here; type: sudo apt-get install maven, or set KAFKA_HOME")
    with tempfile.TemporaryDirectory(dir=_cache()) as temporary:
        wanted = "".join(_DEPENDENCY.format(*artifact) for artifact in artifacts)
        (Path(temporary) / "pom.xml").write_text(_POM.format(wanted=wanted), encoding="utf-8")
        copy = "dependency:copy-dependencies", "-DoutputDirectory=jars", "-DincludeScope=runtime"
        try:
            done = subprocess.run(
                [mvn, "-q", "-B", *copy], cwd=temporary, capture_output=True, text=True, check=False, timeout=_FETCH
            )
        except subprocess.TimeoutExpired:
            raise NoKafka(f"Maven did not fetch {artifacts[0][1]} in {_FETCH:.0f} seconds") from None
        if done.returncode:
            raise NoKafka(f"Maven cannot fetch {artifacts[0][1]}: {' '.join(done.stdout.split())[:300]}")
        (Path(temporary) / "jars").rename(folder)
    return folder


def _formatted(jars_: Path) -> Path:
    """A new broker's folder, to be copied: it has no addresses in it, and to make one takes a JVM and two seconds."""
    with _lock():
        data = _cache() / f"formatted-{jars_.parent.name}"
        if not data.exists():
            with tempfile.TemporaryDirectory(dir=_cache()) as temporary:
                properties = {
                    **_PROPERTIES,
                    "log.dirs": f"{temporary}/data",
                    "listeners": "PLAIN://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
                    "controller.quorum.voters": "1@127.0.0.1:9093",
                }
                command = (
                    "kafka.tools.StorageTool",
                    "format",
                    "-t",
                    _CLUSTER,
                    "-c",
                    _written(Path(temporary), properties),
                )
                done = subprocess.run(
                    [_java(), *_JAVA, "-cp", f"{jars_}/*", *command], capture_output=True, text=True, check=False
                )
                if done.returncode:
                    raise NoKafka(f"Kafka's folder cannot be made: {' '.join(done.stderr.split())[-300:]}")
                Path(temporary, "data").rename(data)
        return data


def _certificate() -> Path | None:
    """A file with a key and its certificate for 127.0.0.1; None if there is no openssl."""
    with _lock():
        file = _cache() / "certificate.pem"
        if not file.exists():
            new = file.with_suffix(".new")
            command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650"]
            command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
            command += ["-keyout", str(new), "-out", str(new)]
            try:
                subprocess.run(command, capture_output=True, check=True)
            except (OSError, subprocess.CalledProcessError):
                return None
            new.rename(file)
        return file


def _written(folder: Path, properties: Mapping[str, str]) -> str:
    file = folder / "properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()), encoding="utf-8")
    return str(file)


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        raise NoKafka("Apache Kafka needs Java; type: sudo apt-get install openjdk-17-jre-headless")
    return java


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "eddyline" / f"kafka-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    """One process at a time changes the cache."""
    with (_cache() / "lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
