"""The share of the fuzzer that CI runs: 1,500 cases of a seed that is printed; EDDYLINE_FUZZ_SEED sets another."""

from __future__ import annotations

import os

import pytest

from eddyline.testing.fuzz import fuzz

SEED = int(os.environ.get("EDDYLINE_FUZZ_SEED", "20240229"))
CASES, CHUNKS = 1_500, 6


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_engine_gives_what_duckdb_gives(chunk: int) -> None:
    share = CASES // CHUNKS
    report = fuzz(share, SEED, first=chunk * share)
    shown = "\n".join(f"case {f.index}: {f.kind}; {f.verdict}\n{f.message}\n{f.script}" for f in report.failures)
    assert not report.failures, f"seed {SEED}\n{shown}"
    assert report.cases == share
    assert report.empty < 0.3 * share, (
        f"seed {SEED}: {report.empty} of {share} results are empty, so little was compared"
    )
