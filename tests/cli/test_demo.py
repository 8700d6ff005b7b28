"""`eddyline demo`: what it says of routes and times is what happened, and its script runs as it was written."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import pytest

from eddyline.cli.demo import event_time
from eddyline.cli.demo_job import RATE, START, phases, script
from eddyline.cli.demo_runs import BatchMark, Demo, Own, Ran
from eddyline.cli.demo_told import told
from eddyline.cli.main import main
from eddyline.routing.decisions import Decision
from eddyline.runtime.reporting.summary import Progress, Summary

PNG = b"\x89PNG"


def run_demo(
    engine: str, seconds: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> tuple[str, dict[str, object]]:
    """What it printed, and its summary; nothing stays in the folder for temporary files."""
    arguments = ["--seconds", str(seconds), "--engine", engine, "--out", str(tmp_path / "new"), "--json"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path))
        assert main(["demo", *arguments]) == 0
    assert not list(tmp_path.glob("eddyline-demo-*"))
    said = capsys.readouterr()
    assert "\x1b" not in said.err
    assert sum(line.startswith("-- ") for line in said.err.splitlines()) >= 1
    summary: dict[str, object] = json.loads(said.out.splitlines()[-1])
    return said.out, summary


def test_on_the_local_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str], in_tmp: Path) -> None:
    out, summary = run_demo("local", 9, capsys, tmp_path)
    assert summary["rows_in"] == 9 * 4 * RATE + 3 * RATE  # payments come twice as often in the last third
    decisions = summary["decisions"]
    assert isinstance(decisions, dict) and f"{sum(decisions.values()):,} decisions in all" in out
    routes = re.findall(r"so payments went (p -> \w -> \w -> \w)", out)
    assert len(routes) == 3
    assert "gave the same results as far as they ran" in out and "Spark's own" not in out
    assert (tmp_path / "new" / "eddyline-demo.png").read_bytes().startswith(PNG)
    written = (tmp_path / "new" / "eddyline-demo.sql").read_text()
    assert written in out
    assert not list(in_tmp.glob("eddyline-demo*"))


def test_seconds_must_be_enough(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("5", "-1", "many"):
        assert main(["demo", "--seconds", wrong]) == 2
        assert f"'{wrong}' is not a whole number of at least 6" in capsys.readouterr().err


def test_rows_and_seconds_between_batches() -> None:
    ran = Ran([BatchMark(0, 0.5, 0.0, ""), BatchMark(100, 1.5, 4.0, "p -> a"), BatchMark(300, 3.5, 8.0, "p -> b")])
    events = (0, 2, 4, 6, 8, 9)
    wanted = [(0, 0.5), (50, 1), (100, 1.5), (200, 2.5), (300, 3.5), (300, 3.5)]
    assert [ran.at(event) for event in events] == wanted
    assert (ran.rate(0, 4), ran.rate(4, 8), ran.rate(8, 9)) == (100, 100, 0)
    assert [ran.route(event) for event in (1, 4, 7, 8, 20)] == ["", "p -> a", "p -> a", "p -> b", "p -> b"]
    assert ran.come_to == 8.0 and Ran().come_to == 0.0
    assert event_time(Progress(watermark_us=START + 1_500_000)) == 1.5 and event_time(Progress()) == 0.0


def test_what_is_told_is_what_was_measured() -> None:
    marks = [BatchMark(n * 100, n * 1.0, n * 1.0, f"p -> {'oas'[min(n // 2, 2)]}") for n in range(1, 7)]
    first = Decision("reroute", 1, "slot 1: p: a, o instead of o, a", "why")
    decisions = [(3.0, first), (3.5, Decision("reroute", 1, "s: p", ""))]
    fixed = [BatchMark(100, 1.0, 1.0, ""), BatchMark(200, 2.0, 2.0, ""), BatchMark(300, 6.0, 3.0, "")]
    adaptive = Ran(marks, decisions, Summary(decisions={"reroute": 2}))
    text = told(Demo(6, "spark", adaptive, Ran(fixed), 3, 1234, Own(2, 25.0, 99)), Path("x.sql"), Path("x.png"))
    assert "by 3.0 s  slot 1: p: a, o instead of o, a" in text and "s: p" not in text.replace("p: a", "")
    assert "so payments went p -> a" in text and "2 decisions in all" in text
    assert "the fixed order, that of the script, was 4.0 times slower." in text
    assert re.search(r"2 to 3 s +100 rows/s +25 rows/s", text) and re.search(r"4 to 6 s +100 rows/s +not run", text)
    assert "100 rows/s, 4.0 times that." in text and "(1,234 in 3 s, 99 in 2 s)" in text
    assert "The picture: x.png" in text and "./run eddyline run x.sql --live" in text


def test_phases_cover_the_time() -> None:
    for seconds in (6, 9, 60, 61):
        ends = [(p.begin, p.end) for p in phases(seconds)]
        assert ends[0][0] == 0 and ends[-1][1] == seconds and ends[0][1] == ends[1][0] and ends[1][1] == ends[2][0]
    assert script(9, "out").count("CREATE STREAM") == 4
