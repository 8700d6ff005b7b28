"""`eddyline demo` as people see it first: on Spark, beside Spark's own joins."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eddyline.cli.demo_job import RATE
from tests.cli.test_demo import PNG, run_demo


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_the_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, summary = run_demo("spark", 6, capsys, tmp_path)
    assert summary["rows_in"] == 6 * 4 * RATE + 2 * RATE
    assert isinstance(summary["decisions"], dict) and summary["decisions"]["reroute"] > 0
    assert "Spark's own stream-stream joins, in the order of the script, over the first 2 s: " in out
    assert re.search(r"Both orders, and Spark's own joins, gave the same results .*in 3 s, [\d,]+ in 2 s\)", out)
    assert (tmp_path / "new" / "eddyline-demo.png").read_bytes().startswith(PNG)
