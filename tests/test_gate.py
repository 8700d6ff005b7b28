"""Which tests `./run test` leaves out, which processes share a Spark session, and when a test takes too long."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import Groups, is_long
from tests.support.seconds import GENEROUS, LIMIT, Seconds, Taken


def item(name: str, *fixtures: str, marks: tuple[str, ...] = (), **params: object) -> Any:
    call = SimpleNamespace(params=params)
    find = {mark: mark for mark in marks}.get
    return SimpleNamespace(nodeid=name, fixturenames=fixtures, callspec=call, get_closest_marker=find)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (item("tests/plan/test_tree.py::test_a", "tmp_path"), False),
        (item("tests/spark/test_runner.py::test_a", "run_on_spark", "spark"), True),
        (item("tests/spark/test_runner.py::test_a", "run_on_spark", "spark", marks=("gate",)), False),
        (item("tests/spark/test_placement.py::test_a"), False),
        (item("tests/runtime/values/test_conformance.py::test_a[postgres scan]", way="postgres scan", every=3), True),
        (item("tests/runtime/values/test_conformance.py::test_a[sqlite]", way="sqlite", every=3), False),
        (item("tests/lab/chaos/test_main.py::test_a"), True),
        (item("tests/lab/planted/test_planted.py::test_a"), False),
    ],
    ids=lambda one: getattr(one, "nodeid", ""),
)
def test_what_starts_a_server_is_long(one: Any, expected: bool) -> None:
    assert is_long(one) == expected


def test_two_processes_share_the_tests_on_spark() -> None:
    def scope(name: str) -> str:
        return Groups._split_scope(None, name)  # type: ignore[arg-type]

    runner, given = "tests/spark/test_runner.py::test_a[1]", "tests/spark/test_given.py::test_b"
    assert scope(runner) == scope(given) != scope("tests/spark/test_frames.py::test_c")
    assert scope("tests/spark/test_placement.py::test_d[2]") == "tests/spark/test_placement.py::test_d"
    assert scope("tests/runtime/sinks/test_kafka.py::test_e") == scope("tests/runtime/sources/test_kafka.py::test_f")


def report(name: str, cpu: float, when: str = "call", clock: float = 0.1, limit: float = LIMIT) -> Any:
    return SimpleNamespace(nodeid=name, when=when, duration=clock, cpu_seconds=cpu, cpu_limit=limit)


@pytest.mark.parametrize("expression", ["not long", ""])
def test_a_slow_test_fails_the_gate_and_no_other_run(expression: str) -> None:
    seconds = Seconds(SimpleNamespace(option=SimpleNamespace(markexpr=expression)))  # type: ignore[arg-type]
    for one in (
        report("a", 1),
        report("b", 3, "setup"),
        report("b", 3),
        report("c", 9, limit=20),
        report("d", 9, "teardown"),
    ):
        seconds.pytest_runtest_logreport(one)
    session = SimpleNamespace(exitstatus=pytest.ExitCode.OK)
    seconds.pytest_sessionfinish(session)  # type: ignore[arg-type]
    slow = ["b: 6.0 s of CPU, 0.1 s"] if expression else []
    assert seconds.too_slow() == slow and bool(session.exitstatus) == bool(slow)


def test_a_test_that_waits_is_too_slow() -> None:
    assert Taken(1, cpu=0.1, clock=GENEROUS + 1).is_too_much and not Taken(1, cpu=LIMIT / 2, clock=90).is_too_much
