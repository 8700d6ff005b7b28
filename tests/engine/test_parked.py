"""Rows of a sweep that wait on disk."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from eddyline.engine.sweep.spill_file import Parked
from eddyline.errors import JobError


def rows(count: int, seed: int = 0) -> tuple[pa.RecordBatch, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    drawn = np.random.default_rng(seed)
    return pa.record_batch({"x": drawn.integers(0, 1 << 40, count)}), drawn.integers(0, 9, count)


@pytest.mark.parametrize("most", [1, 1000, 1 << 30])
def test_rows_come_back_by_group(tmp_path: Path, most: int) -> None:
    parked, expected = Parked(str(tmp_path), most), list[tuple[int, int]]()
    for seed in range(5):
        batch, groups = rows(70, seed)
        parked.add(batch, groups)
        expected += zip(groups.tolist(), batch.column("x").to_pylist(), strict=True)
    parked.finish()
    for first, last in ((0, 9), (0, 1), (3, 5), (8, 9)):
        found = [x for batch in parked.rows(first, last) for x in batch.column("x").to_pylist()]
        assert sorted(found) == sorted(x for group, x in expected if first <= group < last)
    assert parked.written > 0 and list(tmp_path.iterdir()) == [], "the file has no name"
    parked.close()


def test_many_groups_take_no_memory(tmp_path: Path) -> None:
    """Where each of 65536 groups ends in each piece is on disk, too."""
    parked, batch = Parked(str(tmp_path), 1 << 16), rows(10_000)[0]
    tracemalloc.start()
    try:
        for seed in range(30):
            parked.add(batch, np.random.default_rng(seed).integers(0, 1 << 16, 10_000))
        parked.finish()
        assert tracemalloc.get_traced_memory()[0] < 100_000, "2.4 million bytes of rows, 30 pieces"
    finally:
        tracemalloc.stop()
    assert sum(some.num_rows for some in parked.rows(0, 1 << 16)) == 300_000
    assert sum(some.num_rows for some in parked.rows((1 << 16) - 1, 1 << 16)) > 0
    parked.close()


def test_a_full_disk(small_folder: Path) -> None:
    parked = Parked(str(small_folder), 1 << 16)
    with pytest.raises(JobError, match=f"^{small_folder} has no room for a sweep: set spill_dir to a folder with more"):
        for seed in range(10):
            parked.add(*rows(100_000, seed))
    parked.close()
