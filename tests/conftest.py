"""What several tests use: rows with times, files of them, and a job that is run on the local engine."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from xdist.scheduler import LoadScopeScheduling

import eddyline.testing.quiet_exit  # noqa: F401
from lab import SHORT_LIVED
from lab.servers.kafka_broker import KafkaBroker, NoKafka, kafka_broker
from tests.support.seconds import Seconds

os.environ.setdefault("SPARK_SUBMIT_OPTS", SHORT_LIVED)
os.environ.pop("EDDYLINE_LEDGER", None)  # no test writes to the ledger of the checkout
os.environ.pop("CI", None)  # with it pytest compares lists line by line, which for 10,000 rows takes hours
for _name in ("COLUMNS", "LINES"):  # readline sets them in pytest, and processes that it starts believe them
    os.environ.pop(_name, None)
START = datetime(2026, 1, 1)
SPARK = "tests/spark/"
OWN_SPARK = tuple(f"{SPARK}test_{name}.py" for name in ("leftovers", "local_cluster", "spark_chaos"))
"""Tests whose jobs are processes of their own, and need no session."""
NO_SPARK = tuple(
    f"{SPARK}test_{name}.py"
    for name in ("archive", "daemon", "failures", "gateway", "placement", "source_options", "spark_home")
)
"""Tests that need no session."""
FIRST_SESSION = tuple(f"{SPARK}test_{name}.py" for name in ("runner", "given", "arenas", "session", "kafka"))
"""Tests that share a Spark session. The others share a second one, in another process: together they take as long."""
KAFKA = "kafka"
"""In the names of files with tests that need a broker."""
FIRST = (SPARK, "tests/lab/chaos/", "tests/lab/fuzz/", "tests/migration/")
"""Folders whose tests take longest. They begin first, so that at the end no process waits for another."""
LONG_FOLDERS = (
    *(f"tests/lab/{name}" for name in ("bench/", "chaos/", "experiments/", "peers/", "planted/test_noticed.py")),
    *OWN_SPARK,
)
"""Tests that start jobs, servers or other tests, or measure."""
LONG_FIXTURES = frozenset({"spark", "kafka", "server", "browser", "site"})
"""What starts a server, a browser or a JVM."""
SERVERS = frozenset({"spark", "kafka", "postgres", "redis", "valkey"})
"""A parameter that begins with one of these words says that the test needs it."""


def is_long(item: pytest.Item) -> bool:
    """Whether `./run test` leaves a test out, and only `./run test --all` runs it: those that start a server, a browser
    or a JVM, unless they have `@pytest.mark.gate`. Other tests that take long are marked one by one."""
    if item.get_closest_marker("gate") is not None:
        return False
    if item.nodeid.startswith(LONG_FOLDERS) or LONG_FIXTURES.intersection(getattr(item, "fixturenames", ())):
        return True
    call = getattr(item, "callspec", None)
    given = () if call is None else call.params.values()
    return any(isinstance(one, str) and one.partition(" ")[0] in SERVERS for one in given)


class Groups(LoadScopeScheduling):
    """Which tests pytest-xdist gives to one process, one after the other.

    The tests of tests/spark that need a session share two of them; those of Kafka share one broker. The cases of any
    other test function share what the function caches.
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(SPARK) and not nodeid.startswith((*OWN_SPARK, *NO_SPARK)):
            return f"{SPARK} {nodeid.startswith(FIRST_SESSION)}"
        return KAFKA if KAFKA in nodeid.partition("::")[0] else nodeid.partition("[")[0]


def pytest_configure(config: pytest.Config) -> None:
    """Measure the seconds of all tests."""
    config.pluginmanager.register(Seconds(config))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Groups:
    """Called by pytest-xdist where it divides the tests."""
    return Groups(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests as long. With `@pytest.mark.share(9)` all cases of a test but every ninth are long. With `share(9, 3)`
    only every third runs at all, unless EDDYLINE_FULL is set. (Odd numbers, so that both values of a parameter are
    among them.) The longest folders begin first."""
    cases = Counter[str]()
    kept, left_out = [], []
    for item in items:
        function = item.nodeid.partition("[")[0]
        is_left_out = False
        if is_long(item):
            item.add_marker("long")
        for mark in item.iter_markers("share"):
            short, *all_ = mark.args
            if cases[function] % short:
                item.add_marker("long")
            is_left_out = bool(all_ and cases[function] % all_[0]) and "EDDYLINE_FULL" not in os.environ
        (left_out if is_left_out else kept).append(item)
        cases[function] += 1
    config.hook.pytest_deselected(items=left_out)
    items[:] = sorted(kept, key=lambda item: [not item.nodeid.startswith(folder) for folder in FIRST])


def at(seconds: float) -> datetime:
    """An event time."""
    return START + timedelta(seconds=seconds)


@dataclass(frozen=True)
class Ran:
    """What a run gave: its result rows, what it printed, its summary."""

    rows: list[dict[str, Any]]
    printed: str
    summary: Any


@pytest.fixture
def run_script() -> Callable[..., Ran]:
    """Runs a script on the local engine; the rows of a bare SELECT are collected."""

    def run(text: str, settings: Mapping[str, object] | None = None, **options: Any) -> Ran:
        from eddyline.runtime.running.job import prepare
        from eddyline.runtime.running.runner import LocalRunner
        from eddyline.runtime.sinks.callback import CallbackSink
        from eddyline.settings import from_mapping

        rows: list[dict[str, Any]] = []
        out = io.StringIO()
        sink = None if "INSERT" in text else CallbackSink(lambda batch: rows.extend(batch.to_pylist()))
        chosen = from_mapping(settings or {})
        summary = LocalRunner(prepare(text, sink=sink, seed=chosen.seed, out=out), chosen).run(**options)
        return Ran(rows, out.getvalue(), summary)

    return run


@pytest.fixture
def table() -> Callable[..., pa.Table]:
    """A table of (seconds, value...) rows: the first column is the time `ts`."""

    def make(names: str, *rows: Sequence[Any]) -> pa.Table:
        columns = list(zip(*rows, strict=True))
        times = pa.array([None if s is None else at(s) for s in columns[0]], pa.timestamp("us"))
        return pa.table({"ts": times, **dict(zip(names.split(), map(list, columns[1:]), strict=True))})

    return make


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """A broker for all tests of this process; each test makes topics of its own (`topic = kafka.create()`)."""
    with contextlib.ExitStack() as stack:
        try:
            broker = stack.enter_context(kafka_broker())
        except NoKafka as error:
            pytest.skip(str(error))
        yield broker


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one, without settings in the environment."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small_folder(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB in memory."""
    folder = tmp_path / "small"
    folder.mkdir(0o700)
    command = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "eddyline-test", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root, and not in every container, can mount a small file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
