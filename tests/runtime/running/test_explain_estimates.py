"""A job with a checkpoint explains the estimates of its slots, as a job in one process does."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.settings import from_mapping
from tests.engine.test_planner import KEYS, MATCH, RATES, SELECT, TREE, streams

DECLARED = "".join(f"CREATE STREAM {n} USING parquet OPTIONS (path '{n}') TIMESTAMP BY ts;\n" for n in RATES)
SCRIPT = f"{DECLARED}CREATE SINK out USING parquet OPTIONS (path 'out');\nINSERT INTO out {SELECT};"


@pytest.mark.parametrize("slots", [1, 2])
def test_what_slots_believe_is_explained(slots: int, in_tmp: Path) -> None:
    for name, rows in streams().items():
        (in_tmp / name).mkdir()
        pq.write_table(pa.Table.from_batches([rows]), in_tmp / name / "0.parquet")
    settings = from_mapping({"batch_rows": sum(RATES.values()) // 5, "slots": slots})
    runner = LocalRunner(prepare(SCRIPT, seed=0), settings, "checkpoint")
    assert "estimated" not in runner.reporter.explain()
    summary = runner.run()
    assert summary.plan == runner.reporter.explain() and f"binary tree {TREE} of 3 sources" in summary.plan
    text = summary.plan[summary.plan.index(f"estimated, for {TREE}") :]
    assert text.startswith(f"estimated, for {TREE}{', 2 slots' if slots == 2 else ''}:\n")
    assert "measured:\n" in summary.plan and summary.plan.index("measured:\n") < summary.plan.index(text)
    rates = {name: float(rate.replace(",", "")) for name, rate in re.findall(r"  (\w): ([0-9,.]+) a second", text)}
    assert rates["b"] == pytest.approx(RATES["b"], rel=0.02), "b is split, so slots together have all of it"
    assert rates["c"] >= RATES["c"] * 0.98
    found = [float(share) for share in re.findall(r"  selectivity of .*: ([0-9.e-]+)", text)]
    assert len(found) == 2 and all(
        one / 2 < share < 2 * slots * one for share, one in zip(found, (1 / MATCH, 1 / KEYS), strict=True)
    )
    assert re.search(r"  predicted: \S+ of a core, .*; measured: \S+ of a core, ", text)
