"""Signals before a job runs: the process ends with one line, and with it the processes that it has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

_PROGRAM = """
import subprocess, sys, threading, time
from eddyline.cli.stopping import end_at_once
end_at_once()
started = []
thread = threading.Thread(target=lambda: started.append(subprocess.Popen(["sleep", "600"])))
thread.start()
thread.join()
print(started[0].pid, flush=True)
time.sleep(600)
"""


SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.mark.parametrize(
    ("number", "before"), [*((number, []) for number in SIGNALS), (signal.SIGTERM, ["env", "--ignore-signal=HUP"])]
)
def test_a_start_that_is_interrupted(number: signal.Signals, before: list[str]) -> None:
    """A child would live for ten minutes, as a JVM that is starting lives for many seconds, and hold the pipe open."""
    command = [*before, sys.executable, "-c", _PROGRAM]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.send_signal(number)
        assert process.wait(300) == 128 + number
        deadline = time.monotonic() + 300
        while _lives(child) and time.monotonic() < deadline:
            time.sleep(0.01)
        gone = not _lives(child)
        if not gone:
            os.kill(child, signal.SIGKILL)
        assert gone and process.communicate()[1] == "eddyline: interrupted\n"


def _lives(pid: int) -> bool:
    """Whether a process runs; one that has ended may wait for its parent to notice."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_start_under_nohup_does_not_end_when_the_terminal_is_closed() -> None:
    command = ["env", "--ignore-signal=HUP", sys.executable, "-c", _PROGRAM]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 128 + signal.SIGTERM and not _lives(child)
