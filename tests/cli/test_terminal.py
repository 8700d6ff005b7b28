"""What a person sees in a terminal: rows, one closing line, and nothing glued together."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

_SCRIPT = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 600, rate 100, k.domain '0..1') TIMESTAMP BY ts;
SELECT k % 1 AS nothing, COUNT(*) AS rows FROM s [RANGE 10 SECONDS] GROUP BY k % 1;
"""


def _shown(written: str) -> list[str]:
    """The lines as a terminal shows them: what follows a carriage return is written over the line."""
    lines = []
    for line in written.replace("\r\n", "\n").split("\n"):
        shown = ""
        for part in line.split("\r"):
            shown = part + shown[len(part) :]
        lines.append(shown.rstrip())
    return lines


def _in_terminal(command: list[str], folder: Path) -> str:
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 65536):
            said += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait() == 0, said
    return said.decode()


def test_the_progress_line_gives_way_to_rows(tmp_path: Path) -> None:
    """The rows come at the end, when a progress line stands on the terminal."""
    (tmp_path / "job.sql").write_text(_SCRIPT)
    command = [sys.executable, "-m", "eddyline.cli", "run", "job.sql", "--engine", "local", "--set", "batch_rows=300"]
    written = _in_terminal(command, tmp_path)
    assert "rows/s | " in written  # there was one
    *rows, closing, end = _shown(written)
    assert rows == ["nothing  rows", "-------  ----", "      0   600"]
    assert closing.startswith("done: 600 rows in, 1 rows out")
    assert end == ""
