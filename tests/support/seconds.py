"""The seconds that tests take, by folder, and the limit for a test of the gate.

A test of the gate (`./run test`) that takes more than LIMIT seconds of CPU fails it, in its own process and in those
that it waited for. CPU seconds hardly depend on what else the machine does, so the limit does not fail by chance if
tests stay at half of it. Seconds in which kernels are compiled do not count, and neither does the end of a test, where
processes end that other tests have used too. A test that waits instead of computing is
caught by GENEROUS seconds on the clock. `@pytest.mark.gate(seconds=N)` is for the few tests that must be in the gate
and take more.
"""

from __future__ import annotations

import resource
import time
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest

from eddyline.kernels.jit import numba  # which sets what Numba reads from the environment when it is imported

GATE = "not long"
"""The tests that `./run test` chooses."""
LIMIT, GENEROUS = 5.0, 300.0


@dataclass
class Taken:
    """The seconds of a test or a folder."""

    tests: int = 0
    cpu: float = 0.0
    clock: float = 0.0
    limit: float = LIMIT
    ends: float = 0.0
    """Of the CPU seconds those of its end."""

    def add(self, other: Taken) -> None:
        """Add the seconds of another."""
        self.tests += other.tests
        self.cpu += other.cpu
        self.clock += other.clock
        self.limit = max(self.limit, other.limit)
        self.ends += other.ends

    @property
    def is_too_much(self) -> bool:
        """Whether a test of the gate may not take this."""
        return self.cpu - self.ends > self.limit or self.clock > GENEROUS


class Compiling(numba.core.event.Listener):  # type: ignore[misc]
    """The CPU seconds in which this process has compiled kernels that the cache did not have."""

    def __init__(self) -> None:
        self.seconds, self._depth, self._begin = 0.0, 0, 0.0
        numba.core.event.register("numba:compile", self)

    def on_start(self, event: Any) -> None:
        """A compilation begins; it may be inside of another."""
        self._depth += 1
        if self._depth == 1:
            self._begin = time.process_time()

    def on_end(self, event: Any) -> None:
        """It ends."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.process_time() - self._begin


class Seconds:
    """A plugin of pytest. Each process notes the CPU seconds in its reports; the one that gets the reports sums up."""

    def __init__(self, config: pytest.Config) -> None:
        self._is_gate = config.option.markexpr == GATE and not hasattr(config, "workerinput")
        self._of_tests: dict[str, Taken] = defaultdict(Taken)
        self._compiling = Compiling()
        self._last = self._cpu_seconds()

    def _cpu_seconds(self) -> float:
        """What this process and the processes that it waited for have computed, without compiling."""
        used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(one.ru_utime + one.ru_stime for one in used) - self._compiling.seconds

    def pytest_runtest_logstart(self) -> None:
        """What was computed before, such as the collection, belongs to no test."""
        self._last = self._cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Note what was computed since the last report."""
        report = yield
        now = self._cpu_seconds()
        report.cpu_seconds, self._last = now - self._last, now
        mark = item.get_closest_marker("gate")
        report.cpu_limit = LIMIT if mark is None else float(mark.kwargs.get("seconds", LIMIT))
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Sum up, where all reports come."""
        clock = report.duration if report.when == "call" else 0.0
        cpu, limit = getattr(report, "cpu_seconds", 0.0), getattr(report, "cpu_limit", LIMIT)
        ends = cpu if report.when == "teardown" else 0.0
        self._of_tests[report.nodeid].add(Taken(report.when == "call", cpu, clock, limit, ends))

    def too_slow(self) -> list[str]:
        """The tests of the gate that took more than they may."""
        slow = {name: one for name, one in self._of_tests.items() if self._is_gate and one.is_too_much}
        return [f"{name}: {one.cpu:.1f} s of CPU, {one.clock:.1f} s" for name, one in sorted(slow.items())]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A slow test of the gate fails the gate."""
        if self.too_slow() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the seconds by folder, and the tests that are too slow."""
        folders: dict[str, Taken] = defaultdict(Taken)
        for name, one in self._of_tests.items():
            folders["/".join(name.partition("::")[0].split("/")[:-1][:3])].add(one)
        if len(folders) > 1:
            terminalreporter.section("seconds of CPU by folder")
            total = Taken()
            for folder, one in sorted(folders.items(), key=lambda item: -item[1].cpu):
                terminalreporter.write_line(f"{one.cpu:8.1f} s  {one.tests:6,} tests  {folder}")
                total.add(one)
            terminalreporter.write_line(f"{total.cpu:8.1f} s  {total.tests:6,} tests")
        if slow := self.too_slow():
            terminalreporter.section("tests of the gate that take too long: cut them, or mark them long", red=True)
            for line in slow:
                terminalreporter.write_line(line)
