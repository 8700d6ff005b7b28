"""A share of `./run fuzz --functions`, and that it finds what differs."""

from __future__ import annotations

import os
import random

import pytest

from lab.fuzz import fuzz_expressions
from lab.fuzz.edge_values import edge_rows
from lab.fuzz.fuzz_expressions import ExpressionCase, main

SEED = os.environ.get("EDDYLINE_FUZZ_SEED", "20240229")


@pytest.mark.parametrize("cases", [20, pytest.param(1000, marks=pytest.mark.long)])
def test_expressions_give_what_duckdb_gives(cases: int, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = "1" if cases == 20 else "2"
    status = main(["--cases", str(cases), "--rows", "40", "--seed", SEED, "--jobs", jobs])
    printed = capsys.readouterr().out
    assert status == 0, printed
    assert f"{cases} expressions over 40 rows, 0 differences, seed {SEED}" in printed


def test_a_case_is_repeated_by_its_number(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(["--only", "3", "--rows", "5", "--seed", SEED]) == 0
    first, second = (text.splitlines()[0] for text in capsys.readouterr().out.split("CREATE STREAM")[1:])
    assert first == second


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # DuckDB adds the seconds of a TIMESTAMPTZ to its microseconds
        ("1 + epoch(coalesce(s.c21, s.c21))", "epoch(coalesce(s.c21, s.c21))\n    DuckDB: <pyarrow.DoubleScalar: -9"),
        ("s.c8 + nowhere(s.c8)", "ScriptError"),
    ],
)
def test_a_difference_is_shown_at_its_smallest(
    text: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = edge_rows(random.Random(1), 60, ["c8", "c21"])
    monkeypatch.setattr(fuzz_expressions, "draw", lambda seed, rows_: ExpressionCase(text, rows))
    assert main(["--cases", "1", "--jobs", "1"]) == 1
    printed = capsys.readouterr().out
    assert said in printed and "1 differences" in printed
