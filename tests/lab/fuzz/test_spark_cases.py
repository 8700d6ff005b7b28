"""What is done to a random case so that Spark can read it; running it there is in tests/spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eddyline.cql.script import parse
from eddyline.testing.oracle import Oracle
from lab.fuzz.generate import generate
from lab.fuzz.main import case_seed
from lab.fuzz.run import expected_of, run, wrong
from lab.fuzz.spark_cases import in_files, write


@pytest.mark.parametrize("index", range(12))
def test_all_rows_are_in_the_files_and_none_is_late(index: int, tmp_path: Path) -> None:
    drawn = generate(case_seed(5, index))
    case = in_files(drawn)
    text = write(case, tmp_path)
    assert case.row_count == drawn.row_count
    assert sum(pq.read_table(tmp_path / s.name).num_rows for s in case.streams) == case.row_count
    assert [d.name for d in parse(text).declarations] == [s.name for s in case.streams]
    for stream in case.streams:
        assert pq.read_schema(next((tmp_path / stream.name).iterdir())).remove_metadata() == stream.schema
    expected = expected_of(case, Oracle())
    assert sum(rows.late for rows in expected.rows.values()) == 0
    assert wrong(run(case), expected) is None


def test_some_cases_had_late_rows() -> None:
    assert any("late rows" in generate(case_seed(5, index)).features for index in range(12))
