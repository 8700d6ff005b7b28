"""A share of the fuzzer: 500 cases, and 60 cases each whose partition groups go to disk or move, or whose tables are
asked; `./run test` runs half of them.

A failure prints the seed; EDDYLINE_FUZZ_SEED sets another. The tests run the command, which starts a process for each
core.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

SEED = os.environ.get("EDDYLINE_FUZZ_SEED", "20240229")
CASES, CHUNK = 500, 250
FEW = 30
SOME = (60, 120)
"""Where the cases begin of those that are few: fewer than a third of their results are empty."""


@pytest.mark.share(3)
@pytest.mark.parametrize("first", range(0, CASES, CHUNK))
def test_engine_gives_what_duckdb_gives(first: int) -> None:
    fuzzed(first, CHUNK)


@pytest.mark.share(3)
@pytest.mark.parametrize("first", SOME)
def test_groups_on_disk_change_no_result(first: int) -> None:
    fuzzed(first, FEW, "--spill")


@pytest.mark.share(3)
@pytest.mark.parametrize("first", SOME)
def test_groups_that_move_change_no_result(first: int) -> None:
    fuzzed(first, FEW, "--balance")


@pytest.mark.share(3)
@pytest.mark.parametrize("first", (100, 160))
def test_tables_that_are_asked_change_no_result(first: int) -> None:
    fuzzed(first, FEW, "--access")


@pytest.mark.share(3)
@pytest.mark.parametrize("first", SOME)
def test_aliases_that_share_a_stem_change_no_result(first: int) -> None:
    fuzzed(first, FEW, "--aliases")


def fuzzed(first: int, cases: int, *more: str) -> None:
    given = ["--first", str(first), "--cases", str(cases), "--seed", SEED, *more]
    command = [sys.executable, "-m", "lab.fuzz.main", *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = f"seed {SEED}\n{done.stdout[-20_000:]}\n{done.stderr[-5_000:]}"
    assert done.returncode == 0, said
    told = re.search(r"(\d+) cases, 0 differences, ([\d.]+) % with an empty result", done.stdout)
    assert told is not None and int(told[1]) == cases, said
    assert float(told[2]) < 30, f"seed {SEED}: so many results are empty that little was compared"
