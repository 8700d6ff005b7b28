"""What Spark says on good runs does not reach the terminal; what it says of failures does."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from eddyline.cli.main import main
from eddyline.errors import SettingError
from eddyline.spark.connectors import check_master
from eddyline.spark.gateway import _pass_on, worth_saying

_JOB = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 3) TIMESTAMP BY ts; SELECT k FROM s"
_BROKEN = """Traceback (most recent call last):
  File "daemon.py", line 95, in worker
    worker_main(infile, outfile)
ConnectionResetError: [Errno 104] Connection reset by peer

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "daemon.py", line 210, in manager
BrokenPipeError: [Errno 32] Broken pipe
"""
_DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"
_NO_MORE = """Traceback (most recent call last):
  File "python_streaming_source_runner.py", line 265, in main
EOFError
"""
_STARTING = "starting Spark ..."
_FAULT = """Traceback (most recent call last):
  File "user.py", line 1, in <module>
ValueError: too many
"""


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("WARNING: Using incubator modules: jdk.incubator.vector\nout of memory\n", "out of memory\n"),
        (_BROKEN, ""),
        (_NO_MORE + _DURING + _BROKEN, ""),
        (_NO_MORE, _NO_MORE),
        (f"before\n{_BROKEN}after\n", "before\nafter\n"),
        (_FAULT, _FAULT),
        (_FAULT + _BROKEN, _FAULT),
        (_BROKEN + _FAULT, _FAULT),
        (_FAULT + _FAULT, _FAULT + _FAULT),
        (_FAULT + _DURING + _BROKEN, _FAULT + _DURING + _BROKEN),
        (_BROKEN + _DURING + _FAULT, _BROKEN + _DURING + _FAULT),
        (_FAULT + "then\n" + _BROKEN, _FAULT + "then\n"),
        ("a line\n\nanother\n", "a line\n\nanother\n"),
    ],
)
def test_what_is_worth_saying(said: str, left: str) -> None:
    assert "".join(worth_saying(said.splitlines(keepends=True))) == left


def test_a_last_traceback_is_said_while_the_pipe_is_open(capfd: pytest.CaptureFixture[str]) -> None:
    """Its writer may live longer than we do. What Spark says in pieces, or without an end of line, is said too."""
    read, write = os.pipe()
    thread = threading.Thread(target=_pass_on, args=(read,))
    thread.start()
    os.write(write, (_BROKEN + _FAULT[:50]).encode())
    os.write(write, _FAULT[50:].encode())
    said, deadline = "", time.monotonic() + 300
    while not said and time.monotonic() < deadline:
        time.sleep(0.05)
        said = capfd.readouterr().err
    os.write(write, "über".encode())
    os.close(write)
    thread.join()
    assert (said, capfd.readouterr().err) == (_FAULT, "über")


def test_a_master_that_does_not_answer(in_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    with pytest.raises(SettingError, match=r"does not answer \(Connection refused\); start it, or name another"):
        check_master(f"spark://127.0.0.1:{port}")
    (in_tmp / "job.sql").write_text(_JOB)
    assert main(["run", "job.sql", "--conf", f"spark.master=spark://127.0.0.1:{port}"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["validate", "job.sql", "--conf", f"spark.master=spark://127.0.0.1:{port}"]) == 0


@pytest.mark.long
def test_other_letters_in_names_of_files_whatever_the_locale(tmp_path: Path) -> None:
    folder = tmp_path / "jöb"
    (folder / "eingäng").mkdir(parents=True)
    (folder / "eingäng" / "ä.csv").write_text("ts,k,t\n2026-01-01 00:00:00,1,größe\n", encoding="utf-8")
    (folder / "jöb.sql").write_text(
        "CREATE STREAM s (ts TIMESTAMP, k BIGINT, t VARCHAR) USING csv OPTIONS (path 'eingäng') TIMESTAMP BY ts;"
        " CREATE SINK o USING json OPTIONS (path 'ausgäng'); INSERT INTO o SELECT k, t FROM s",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "eddyline.cli", "run", "jöb.sql", "--checkpoint", "ständ"]
    conf = ["--conf", "spark.driver.memory=512m", "--conf", "spark.master=local[1,4]"]
    environment = {**os.environ, "LC_ALL": "POSIX"}
    done = subprocess.run([*command, *conf], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (part,) = (folder / "ausgäng").glob("part-*")
    assert part.read_text(encoding="utf-8") == '{"k":1,"t":"größe"}\n'
    assert sorted(path.name for path in folder.iterdir()) == ["ausgäng", "eingäng", "jöb.sql", "ständ"]


@pytest.mark.long
@pytest.mark.parametrize("end", [False, True])
def test_a_good_run_says_two_lines_and_a_start_can_be_ended(end: bool, tmp_path: Path) -> None:
    """While the JVM starts, SIGTERM ends the process; else the run says that it starts Spark and that it is done, and
    nothing else."""
    (tmp_path / "job.sql").write_text(_JOB)
    command = [sys.executable, "-m", "eddyline.cli", "run", "job.sql"]
    conf = ["--conf", "spark.driver.memory=512m", "--conf", "spark.master=local[1,4]"]
    process = subprocess.Popen([*command, *conf], cwd=tmp_path, stdout=-1, stderr=-1, text=True)
    if end:
        while not (children := _children(process.pid)):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert (process.wait(300), process.communicate()[1]) == (143, f"{_STARTING}\neddyline: interrupted\n")
        deadline = time.monotonic() + 600
        while any(os.path.exists(f"/proc/{child}") for child in children) and time.monotonic() < deadline:
            time.sleep(0.1)  # the JVM ends by itself
        assert not any(os.path.exists(f"/proc/{child}") for child in children)
        return
    out, said = process.communicate(timeout=300)
    assert out.split()[0] == "k"
    lines = [line for line in said.splitlines() if "started again" not in line]  # as on a busy machine
    assert len(lines) == 2 and lines[0] == _STARTING, said
    assert lines[1].startswith("done: 3 rows in, 3 rows out")


def _children(pid: int) -> list[str]:
    """The processes that any thread of a process has started."""
    found: list[str] = []
    with contextlib.suppress(FileNotFoundError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found += (thread / "children").read_text().split()
    return found
