"""Limits of a process, and disks that fail: one line that names the file or the folder, and the limit."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from eddyline.os_errors import is_full, limit_of, number_of, why
from eddyline.runtime.running.failures import told

STREAM = """CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 3000, k.distribution sequence)
TIMESTAMP BY ts;
"""
JOIN = "SELECT x.k FROM s [RANGE 1 SECOND] x, s [RANGE 1 SECOND] y WHERE x.k = y.k;"


def run(folder: Path, kind: int, most: int, script: str, *options: str) -> tuple[int, str]:
    """A job in a process with a limit; returns its status and its last line."""
    (folder / "job.sql").write_text(script)
    command = [sys.executable, "-P", "-m", "eddyline.cli", "run", "job.sql", "--engine", "local", *options]
    limit = f"import os, resource, sys; resource.setrlimit({kind}, ({most}, {most}))"
    command = [sys.executable, "-c", f"{limit}; os.execv(sys.argv[1], sys.argv[1:])", *command]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr and done.stderr.count("\n") <= 2, done.stderr
    return done.returncode, done.stderr.splitlines()[-1]


@pytest.mark.parametrize("options", [(), ("--checkpoint", "ck"), ("--set", "memory=100KB")])
@pytest.mark.parametrize("query", [JOIN, "SELECT k FROM s;"])
def test_a_limit_on_the_size_of_files(query: str, options: tuple[str, ...], tmp_path: Path) -> None:
    sink = f"CREATE SINK o USING csv OPTIONS (path 'out'); INSERT INTO o {query}"
    status, line = run(tmp_path, resource.RLIMIT_FSIZE, 4096, STREAM + sink, *options)
    assert status == 1
    assert line.startswith("eddyline: cannot "), line
    assert "File too large: a process may write files of at most 4.096 KB (ulimit -f)" in line


def test_a_limit_on_open_files(tmp_path: Path) -> None:
    status, line = run(tmp_path, resource.RLIMIT_NOFILE, 8, STREAM + JOIN, "--checkpoint", "ck")
    assert status == 1
    assert line.startswith("eddyline: cannot "), line
    assert line.endswith("Too many open files: a process may have 8 files and connections open (ulimit -n)")


def test_a_limit_on_memory(tmp_path: Path) -> None:
    status, line = run(tmp_path, resource.RLIMIT_AS, 600 << 20, STREAM + JOIN)
    assert status == 1 and line.startswith("eddyline: ")
    assert line.endswith("a process may have at most 629.1 MB of memory and mapped files (ulimit -v)"), line


def test_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    by_arrow = OSError("[Errno 28] Error writing bytes. Detail: [errno 28] No space left on device")
    assert why(by_arrow) == why(OSError(errno.ENOSPC, "x", "file")) == "No space left on device"
    assert is_full(by_arrow) and is_full(OSError(errno.EDQUOT, "")) and not is_full(OSError(errno.EIO, ""))
    assert number_of(ValueError("no")) is None and why(ValueError("")) == "ValueError"
    assert why(ValueError("a\x1b[31m\nb")) == "a\\u001b[31m"
    monkeypatch.setattr("resource.getrlimit", lambda kind: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert (
        limit_of(errno.EMFILE) == limit_of(errno.EIO) == "" and why(OSError(errno.EMFILE, "")) == "Too many open files"
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EIO, "x", "a/b"), "cannot read or write a/b: Input/output error"),
        (OSError(errno.EXDEV, "x", "a", None, "b"), "cannot read or write a -> b: Invalid cross-device link"),
        (OSError(errno.EIO, "x", 7), "cannot read or write data: Input/output error"),
    ],
)
def test_errors_name_the_file(error: OSError, said: str) -> None:
    assert str(told(error)) == said
