"""Cells of `bench peers`: time, CPU time and memory of a process tree, limits, and what is reported."""

from __future__ import annotations

import csv
import logging
import os
import sys
from pathlib import Path

import pytest

from eddyline.errors import SettingError
from lab import bench
from lab.peers import cells as module
from lab.peers import results
from lab.peers.cells import Cell
from lab.peers.environments import NoEnvironment
from lab.peers.process import Watched, watched
from lab.peers.queries import QUERIES
from lab.peers.report import write

_BURN = "import time\nwhile time.process_time() < 0.3: pass\n"


def _python(program: str, limit: float = 300) -> Watched:
    return watched([sys.executable, "-c", program], limit, {"FROM_TEST": "yes"})


def test_the_whole_tree_counts() -> None:
    """Also a process that outlives its parent, as Spark's JVM does."""
    begun = f"import subprocess, sys, os, json\nsubprocess.Popen([sys.executable, '-c', {_BURN!r}])\n"
    last = "print('no json')\nprint(json.dumps({'done': 3}))\nprint(json.dumps({'seconds': 1.5, 'rows': 3}))"
    run = _python(begun + _BURN + "data = bytearray(60_000_000)\nimport time; time.sleep(1.5)\n" + last)
    assert run.error == "" and not run.timed_out
    assert run.cpu >= 0.6 and run.wall >= 1.5
    assert run.memory > 60_000_000
    assert run.told == {"done": 3, "seconds": 1.5, "rows": 3}
    assert _python("import os; assert os.environ['FROM_TEST'] == 'yes'").error == ""


def test_limits_and_failures(tmp_path: Path) -> None:
    place = tmp_path / "pid"
    child = f"import os, time; open({str(place)!r}, 'w').write(str(os.getpid())); time.sleep(100)"
    start = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])"
    run = _python("print('{\"done\": 7}', flush=True)\n" + start, 10)
    assert run.timed_out and run.told == {"done": 7}
    assert not os.path.exists(f"/proc/{place.read_text()}")
    assert _python("raise ValueError('no such thing')").error == "ValueError: no such thing"


def _cell(query: str, peer: str, steady: float, cpu: float) -> Cell:
    cell = Cell(query, peer, 1000)
    cell.runs = [Watched(2.0, cpu, 5_000_000, {"seconds": 1000 / steady, "rows": 1000}, "", False)]
    cell.results = (10, 42)
    return cell


def test_results_and_files(tmp_path: Path) -> None:
    cells = [_cell("q", "eddyline", 2000, 1), _cell("q", "flink", 1000, 3), _cell("q", "pathway", 4000, 0.5)]
    cells.append(Cell("q", "spark", 1000, why="90 s limit reached, 500 of 1,000 rows done"))
    found = [result for cell in cells for result in results(cell, cells)]
    by = {(r.case, r.metric): r for r in found}
    fast = "eddyline is so many times as fast"
    assert by["q: flink", fast].value == 2 and by["q: flink", fast].ok
    assert by["q: pathway", fast].value == 0.5 and by["q: pathway", fast].ok is False
    assert by["q: flink", "its CPU time / that of eddyline"].value == 3
    assert by["q: eddyline", "with start-up"].value == 500
    assert by["q: eddyline", "CPU time"].value == 1000
    assert found[-1].case.endswith("500 of 1,000 rows done") and found[-1].ok is None
    write(cells, tmp_path)
    rows = list(csv.DictReader((tmp_path / "peers.csv").open()))
    assert [row["steady_rows_per_s"] for row in rows] == ["2000", "1000", "4000", ""]
    assert rows[3]["note"] == cells[3].why


def test_a_peer_that_cannot_be_installed_is_left_out_by_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(name: str) -> str:
        raise NoEnvironment(f"no matching distribution for {name}")

    monkeypatch.setattr(module, "python_of", missing)
    with caplog.at_level(logging.INFO, "lab.peers"):
        cells = module.compare(QUERIES["nexmark-q8"], ("flink", "pathway"), 1000, 2, 5)
    assert [cell.why for cell in cells] == [f"left out: no matching distribution for {n}" for n in ("flink", "pathway")]
    assert len(caplog.messages) == 2


def test_other_results_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [_cell("q", "eddyline", 1, 1), _cell("q", "duckdb", 1, 1)]
    cells[0].results = (10, 43)
    module._judge(cells)
    assert cells[0].why == "other results than duckdb: (10, 43) and not (10, 42)" and not cells[1].why
    assert results(cells[0], cells)[0].ok is False


def test_choices() -> None:
    with pytest.raises(SettingError, match=r"^--query star2: there is three-way, star, .*; did you mean 'star'"):
        bench.run("peers", query="star2")
    with pytest.raises(SettingError, match=r"^--peer flunk: .*did you mean 'flink'"):
        bench.run("peers", peer="spark, flunk")
