"""The clock of time-outs: time in which the process did not run counts for none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from eddyline.engine.watermarks import Silence
from eddyline.running_time import TICK, RunningTime, running_seconds
from eddyline.runtime.running.waiting import Waiting


class Clock:
    """A clock that is set by hand, and what reads it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.running = RunningTime(lambda: self.now)

    def runs(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + TICK)
            self.running.read()

    def is_stopped(self, seconds: float) -> None:
        self.now += seconds


def test_a_stopped_process_makes_no_stream_idle() -> None:
    clock = Clock()
    silence = Silence("ab", 5.0, clock.running.read)
    assert silence.begin() == []
    clock.runs(3.0)
    clock.is_stopped(3600.0)
    assert silence.begin() == []
    silence.after(["a"], ())
    clock.runs(2.0)
    assert silence.begin() == ["b"]


def test_a_stopped_process_ends_no_wait() -> None:
    """A batch that waits at most a second, and is stopped for an hour after half of it."""
    clock, looks = Clock(), 0

    class Late:
        def ready(self) -> bool:
            nonlocal looks
            looks += 1
            if looks == 4:
                clock.is_stopped(3600.0)
            else:
                clock.runs(0.1)
            return looks >= 8

    waiting = Waiting(1.0, clock=clock.running.read)
    waiting.begin()
    assert waiting.until_ready(Late(), lambda: True) and waiting.seconds < 2


_SCRIPT = """
from eddyline.running_time import running_seconds
begin = running_seconds()
print("ready", flush=True)
input()
print(running_seconds() - begin, flush=True)
"""


def test_a_process_that_is_stopped() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None and child.stdout is not None and child.stdout.readline() == "ready\n"
        begin = time.monotonic()
        child.send_signal(signal.SIGSTOP)
        time.sleep(2.0)
        child.send_signal(signal.SIGCONT)
        seconds = float(child.communicate("\n", timeout=30)[0])
        assert seconds < time.monotonic() - begin - 1.5


def test_a_forked_process_has_a_clock_of_its_own() -> None:
    running_seconds()
    child = os.fork()
    if not child:
        begin = running_seconds()
        time.sleep(1.0)
        os._exit(0 if running_seconds() - begin > 0.9 else 1)
    assert os.waitpid(child, 0)[1] == 0
