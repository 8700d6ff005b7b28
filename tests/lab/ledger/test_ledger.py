"""The ledger: lines of runs, also of those that were stopped, and their sums on the last code and in all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lab.ledger import FOLDER, Code, Line, append, code_of, entered, next_case, read, shown, table

LINE = Line("c1", "s1", "fuzz --spill", seed=7, first=0, cases=100, differences=0, seconds=36.0)
NOW = Code("c2", "s1")


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(tmp_path / "ledger"))
    monkeypatch.setattr("lab.ledger.code_of", lambda root: NOW)
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(signal, "signal", lambda number, handler: before)
    return tmp_path / "ledger"


def test_a_run_is_a_line(ledger: Path) -> None:
    with entered("fuzz", "fuzz", seed=3) as entry:
        entry.cases, entry.differences = 50, 1
    (line,) = read(ledger, "fuzz")
    assert replace(line, seconds=0.0) == Line("c2", "s1", "fuzz", 3, 0, 50, 1, 0.0)


def test_a_run_that_is_stopped_is_a_line_too_and_the_next_goes_on_behind_it(ledger: Path) -> None:
    with pytest.raises(KeyboardInterrupt), entered("fuzz", "fuzz", seed=3) as entry:
        entry.cases = 50
        raise KeyboardInterrupt
    with entered("fuzz", "fuzz", seed=3, continues=True) as entry:
        assert entry.first == 50
        entry.cases = 10
    with entered("fuzz", "fuzz --spill", seed=3, continues=True) as entry:
        assert entry.first == 0, "of another command"
    assert [(line.first, line.cases) for line in read(ledger, "fuzz")] == [(0, 50), (50, 10)]


def test_without_a_folder_nothing_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert FOLDER not in os.environ, "the tests of this repository run without it"
    monkeypatch.chdir(tmp_path)
    with entered("fuzz", "fuzz", seed=3, continues=True) as entry:
        entry.cases = 50
    assert entry.first == 0 and not list(tmp_path.iterdir())


def test_cases_of_other_code_are_shown_again() -> None:
    lines = [LINE, replace(LINE, first=100, cases=20), replace(LINE, src="s0", cases=900)]
    assert next_case(lines, LINE.command, 7, NOW) == 120
    assert next_case(lines, LINE.command, 8, NOW) == 0


def test_a_case_that_was_repeated_counts_once() -> None:
    again = [LINE, replace(LINE, cases=60), replace(LINE, first=90, cases=20), replace(LINE, seed=8, cases=5)]
    both = shown(again)
    assert (both.runs, both.cases, both.seconds) == (4, 115, 144.0)
    assert shown([*again, replace(LINE, src="s0")]).cases == 215, "other code: another thing was shown"


def test_the_table_tells_the_last_code_and_all(tmp_path: Path) -> None:
    assert table(tmp_path, NOW) == "the ledger is empty"
    append(tmp_path, "fuzz", LINE)
    append(tmp_path, "fuzz", replace(LINE, src="s0", cases=12_000, differences=2, seconds=7200.0))
    append(tmp_path, "chaos", replace(LINE, command="chaos --engine local", src="s0"))
    said = [line.split() for line in table(tmp_path, NOW).splitlines()]
    assert said[2:] == [
        ["chaos", "--engine", "local", "0", "0", "0.0", "100", "0", "0.0"],
        ["fuzz", "--spill", "100", "0", "0.0", "12,100", "2", "2.0"],
    ]


def test_a_line_that_is_not_finished_is_left_out(tmp_path: Path) -> None:
    append(tmp_path, "fuzz", LINE)
    with (tmp_path / "fuzz.jsonl").open("a") as file:
        file.write('{"commit": "c')
    assert read(tmp_path, "fuzz") == [LINE]


def test_code_is_the_same_until_something_under_src_differs(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = "-c", "user.name=a", "-c", "user.email=a@b"
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "src").mkdir()
    codes = []
    for number, file in enumerate(["src/a.py", "b.py", "src/a.py"]):
        (tmp_path / file).write_text(f"{number}")
        if file != "b.py" and number:
            changed = code_of(tmp_path)
        git("add", "-A")
        git("commit", "-m", "one")
        codes.append(code_of(tmp_path))
    assert codes[0].src == codes[1].src != codes[2].src and codes[0].commit != codes[1].commit
    assert changed.src == f"{codes[1].src}+", "changes that are not committed are not this code"


SUITE = """
import signal, sys, time
from lab.ledger import entered, stoppable

def main():
    with entered("fuzz", "fuzz", 3) as entry:
        entry.cases = 7
        print("runs", flush=True)
        time.sleep(60)
    return 0

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(stoppable(main))
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_leave_a_line(number: signal.Signals, status: int, tmp_path: Path) -> None:
    environment = {**os.environ, FOLDER: str(tmp_path)}
    command = [sys.executable, "-c", SUITE]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None and run.stdout.readline() == "runs\n"
        begin = time.monotonic()
        run.send_signal(number)
        _, said = run.communicate()
    assert run.returncode == status and time.monotonic() - begin < 50
    assert "Traceback" not in said
    assert [line.cases for line in read(tmp_path, "fuzz")] == [7]
