"""`./run bench`: what it prints, lists and refuses."""

from __future__ import annotations

import json

import pytest

from lab import bench
from lab.bench import Result
from lab.bench.__main__ import main


def test_bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    results = [Result("three-way", "rows/s", 2e6, "1/s", 1e6, True), Result("star", "rows/s", 5.5, "1/s")]
    monkeypatch.setitem(bench.BENCHMARKS, "core", lambda: results)
    assert main(["core"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "case       metric      value  unit        bar  ok",
        "three-way  rows/s  2,000,000  1/s   1,000,000  yes",
        "star       rows/s        5.5  1/s",
    ]
    assert main(["core", "--json"]) == 0
    first = {"case": "three-way", "metric": "rows/s", "value": 2e6, "unit": "1/s", "bar": 1e6, "ok": True}
    assert json.loads(capsys.readouterr().out) == {"name": "core", "results": [first, results[1].as_dict()]}
    monkeypatch.setitem(bench.BENCHMARKS, "core", lambda: [Result("x", "y", 1, "", 2, False)])
    assert main(["core"]) == 1
    capsys.readouterr()
    assert main([]) == 0
    assert capsys.readouterr().out.splitlines() == list(bench.BENCHMARKS)


def test_no_such_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    assert capsys.readouterr().err.startswith("eddyline: there is no benchmark 'nothing'; there is core, memory")
