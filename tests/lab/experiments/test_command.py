"""`./run experiment`: what it lists, writes and refuses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eddyline.extras import install
from lab.experiments import EXPERIMENTS, overheads, teddies
from lab.experiments.__main__ import main


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teddies, "_QUICK_STEPS", 200)
    monkeypatch.setattr(overheads, "_QUICK_ROWS", 20)


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)
    assert all(len(line.split()) > 3 for line in lines)


def test_writes_csv_and_png(in_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert main(["teddies-7", "--quick", "--out", "a/b"]) == 0
    assert sorted(path.name for path in Path("a/b").iterdir()) == [
        "teddies-7.csv",
        "teddies-7.png",
        "teddies-7.summary.csv",
    ]
    said = capsys.readouterr()
    assert "| join selectivity | R | S | T | RS | ST |" in said.out
    assert f"teddies-7: wrote {Path('a/b/teddies-7.csv')} and {Path('a/b/teddies-7.summary.csv')}\n" in said.err


def test_default_folder_and_no_matplotlib(
    in_tmp: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["teddies-7", "--quick"]) == 0
    assert {path.suffix for path in Path("experiments-out").iterdir()} == {".csv"}
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"eddyline: a PNG needs matplotlib, which is not installed: {install('plots')}"


@pytest.mark.parametrize(
    ("arguments", "status", "answer"),
    [
        (["fig7"], 2, "eddyline: there is no experiment 'fig7'; there is teddies-6, teddies-7, "),
        (["teddies-6", "--out", "file"], 1, "eddyline: cannot write to the folder file: File exists"),
        (["all", "--out", "file/x"], 1, "eddyline: cannot write to the folder file/x: Not a directory"),
    ],
)
def test_refusals(
    in_tmp: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, answer: str
) -> None:
    Path("file").write_text("")
    assert main(arguments) == status
    said = capsys.readouterr()
    assert said.err.startswith(answer)
    assert len(said.err.splitlines()) == 1
    assert said.out == ""
