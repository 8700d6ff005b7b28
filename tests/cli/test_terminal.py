"""What a person sees in a terminal: rows, one closing line, and nothing glued together."""

from __future__ import annotations

from pathlib import Path

import pytest

from eddyline.cli.display import Display
from eddyline.cli.progress import ProgressLine
from eddyline.runtime.reporting.summary import Progress
from tests.support.terminal import on_terminal

_SCRIPT = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 600, rate 100, k.domain '0..1') TIMESTAMP BY ts;
SELECT k % 1 AS nothing, COUNT(*) AS rows FROM s [RANGE 10 SECONDS] GROUP BY k % 1;
"""


def test_the_progress_line_gives_way_to_rows(in_tmp: Path) -> None:
    """The rows come at the end, when a progress line stands on the terminal."""
    (in_tmp / "job.sql").write_text(_SCRIPT)
    session = on_terminal("run", "job.sql", "--engine", "local", "--set", "batch_rows=300", "--progress")
    assert session.status == 0
    assert "rows/s | " in session.output  # there was one
    *rows, closing, end = [line.rstrip() for line in session.terminal.lines]
    assert rows == ["nothing  rows", "-------  ----", "      0   600"]
    assert closing.startswith("done: 600 rows in, 1 rows out")
    assert end == "" and not session.terminal.hidden


def test_a_short_run_shows_no_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(Display, "usable", lambda: True)
    with ProgressLine(Display(), always=False) as line:
        line(Progress(rows_in=1, seconds=0.9))
        assert capsys.readouterr().err == ""
        line(Progress(rows_in=2, seconds=1.1))
        assert "2 rows in | " in capsys.readouterr().err


def test_a_terminal_that_changes_its_size(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("NO_COLOR", "1")
    display = Display()
    display.show("one\ntwo")
    assert capsys.readouterr().err == "\x1b[?25lone\ntwo"
    display.show("three")
    assert capsys.readouterr().err == "\r\x1b[2K\x1b[1A\x1b[2Kthree"
    display.erase()
    display.erase()
    assert capsys.readouterr().err == "\r\x1b[2K\n\x1b[?25h\r\x1b[1A\x1b[2K"
