"""A share of the fuzzer: 500 cases, and 60 cases each whose partition groups go to disk or move, or whose tables are
asked. The gate runs half of them in its own processes, a few in each test; `./run test --all` also runs the command,
which starts a process for each core.

A failure prints the seed; EDDYLINE_FUZZ_SEED sets another.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from lab.fuzz.generate import ANY_KIND, CaseKind
from lab.fuzz.main import fuzz

SEED = os.environ.get("EDDYLINE_FUZZ_SEED", "20240229")
CASES, CHUNK = 250, 10
FEW, PIECE = 30, 3
SOME, OTHERS = 60, 120
"""Where the cases begin of those that are few: fewer than a third of their results are empty."""


def shown(first: int, cases: int, kind: CaseKind) -> None:
    report = fuzz(cases, int(SEED), first=first, kind=kind)
    said = [f"seed {SEED}, case {one.index}: {one.kind}\n{one.message}\n{one.script}" for one in report.failures]
    assert not said, "\n".join(said)
    assert report.cases == cases


@pytest.mark.parametrize("first", range(0, CASES, CHUNK))
def test_engine_gives_what_duckdb_gives(first: int) -> None:
    shown(first, CHUNK, ANY_KIND)


@pytest.mark.parametrize("first", range(SOME, SOME + FEW, PIECE))
def test_groups_on_disk_change_no_result(first: int) -> None:
    shown(first, PIECE, CaseKind(spill=True))


@pytest.mark.parametrize("first", range(SOME, SOME + FEW, PIECE))
def test_groups_that_move_change_no_result(first: int) -> None:
    shown(first, PIECE, CaseKind(balance=True))


@pytest.mark.parametrize("first", range(100, 100 + FEW, PIECE))
def test_tables_that_are_asked_change_no_result(first: int) -> None:
    shown(first, PIECE, CaseKind(access=True))


@pytest.mark.parametrize("first", range(SOME, SOME + FEW, PIECE))
def test_aliases_that_share_a_stem_change_no_result(first: int) -> None:
    shown(first, PIECE, CaseKind(aliases=True))


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "cases", "kind"),
    [
        (CASES, CASES, []),
        (OTHERS, FEW, ["--spill"]),
        (OTHERS, FEW, ["--balance"]),
        (160, FEW, ["--access"]),
        (OTHERS, FEW, ["--aliases"]),
    ],
)
def test_the_command(first: int, cases: int, kind: list[str]) -> None:
    given = ["--first", str(first), "--cases", str(cases), "--seed", SEED, *kind]
    command = [sys.executable, "-m", "lab.fuzz.main", *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = f"seed {SEED}\n{done.stdout[-20_000:]}\n{done.stderr[-5_000:]}"
    assert done.returncode == 0, said
    told = re.search(r"(\d+) cases, 0 differences, ([\d.]+) % with an empty result", done.stdout)
    assert told is not None and int(told[1]) == cases, said
    assert float(told[2]) < 30, f"seed {SEED}: so many results are empty that little was compared"
