"""Rows from Python, written to files for a job on Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eddyline as el
from eddyline.runtime.running.handed_over import folder_of, hand_over
from eddyline.runtime.running.job import JobInput, prepare


def _input(rows: pa.Table) -> JobInput:
    return prepare("SELECT k FROM s", {"s": el.stream(rows, "ts").given}).inputs[0]


@pytest.mark.parametrize("whole", [False, True])
def test_rows_of_a_run_that_was_killed_are_written_again(
    table: Callable[..., pa.Table], tmp_path: Path, whole: bool
) -> None:
    """The killed run left a file under a name that readers skip, complete or cut short."""
    rows = table("k", *((second, second) for second in range(6)))
    folder = Path(folder_of(str(tmp_path), "s"))
    hand_over(str(tmp_path), _input(rows.slice(0, 2)), anew=True)
    left = folder / ".00001.parquet"
    pq.write_table(rows.slice(2, 2), left)
    if not whole:
        left.write_bytes(left.read_bytes()[:20])
    hand_over(str(tmp_path), _input(rows), anew=False)
    files = sorted(file.name for file in folder.iterdir())
    assert files == ["00000.parquet", "00001.parquet"]
    assert [k for file in files for k in pq.read_table(folder / file)["k"].to_pylist()] == [0, 1, 2, 3, 4, 5]
