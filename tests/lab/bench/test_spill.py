"""`bench spill`, small: what a job takes and gives is measured, and each bar can be missed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddyline.errors import SettingError
from lab.bench import spill
from lab.bench.memory_group import NoGroup, place
from lab.bench.spill_job import Measured, Work, job, lateness, mixed

ROWS, STEP = 60_000, 1000
FINE = Measured(2.0, 100_000_000, 40_000_000, (5, 7), late=80.5, batch=1.0, io={}, left=3)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """A join of one minute with windows of 20 seconds."""
    folder, random = tmp_path_factory.mktemp("spill"), np.random.default_rng(1)
    times = pa.array(np.arange(ROWS) * STEP, pa.timestamp("us"))
    for stream in "abc":
        keys = {name: random.integers(0, 30_000, ROWS) for name in "ab"}
        (folder / stream).mkdir()
        pq.write_table(pa.table({"ts": times, **keys, "v": random.random(ROWS)}), folder / stream / "0.parquet")
    return Work(folder, "star", 20)


def test_a_job_is_measured(work: Work) -> None:
    whole = job(work, None, ["batch_rows=6000"])
    limited = job(work, 1_500_000, ["batch_rows=6000"])
    assert whole is not None and limited is not None
    assert whole.digest == limited.digest and whole.digest[0] > 1000
    assert whole.left == 0 < limited.left and limited.state < 1_500_000 < whole.state
    assert whole.late <= whole.batch < 10 < limited.late <= work.window + limited.batch
    for one in (whole, limited):
        assert one.resident > 30_000_000 and one.seconds > 0
        assert one.io["wchar"] > work.size > 1_000_000


def test_a_job_that_takes_too_long_or_fails(work: Work) -> None:
    assert job(work, None, patience=0.05) is None
    with pytest.raises(SettingError, match=r"the job failed: .*no_such"):
        job(work, None, ["no_such=1"])
    assert not list(work.folder.glob("out-*"))


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        ({}, []),
        ({"digest": (5, 8)}, ["the same rows as without a limit"]),
        ({"seconds": 4.1}, ["throughput / without a limit"]),
        ({"resident": 267_000_001}, ["resident memory"]),
        ({"late": 81.1}, ["latest result; bar: spill_delay and a batch"]),
    ],
)
def test_bars(change: dict[str, object], missed: list[str]) -> None:
    """With 10 MB of memory, 267 MB are promised; 0.5 of the throughput is asked for."""
    whole = replace(FINE, late=0.5, left=0)
    found = spill.measured("case", [whole, whole], [replace(FINE, **change)], 10_000_000, 0.5)
    assert [result.metric for result in found if result.ok is False] == missed


def test_the_median_of_pairs() -> None:
    whole = [replace(FINE, seconds=s) for s in (2.0, 3.0, 8.0)]
    limited = [replace(FINE, seconds=s) for s in (4.0, 4.0, 8.0)]
    ratio = spill.measured("case", whole, limited, 10_000_000, 0.8)[1]
    assert (ratio.value, ratio.ok) == (0.75, False)


def test_a_result_counts_with_the_next_commit_that_was_seen() -> None:
    assert lateness({1: 10, 2: 5}, {1: 10, 3: 30}) == 25
    assert lateness({1: 10, 9: 12}, {1: 10, 3: 30}) == 18
    assert lateness({}, {1: 10}) == 0


def test_the_digest_ignores_order_and_nothing_else() -> None:
    table = pa.table({"x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0]})
    assert mixed(table) == mixed(table.take([2, 0, 1]))
    others = [{"x": [1.0, 2.0, 3.0], "y": [5.0, 4.0, 6.0]}, {"x": [4.0, 5.0, 6.0], "y": [1.0, 2.0, 3.0]}]
    assert len({mixed(one) for one in (table, table.slice(1), *map(pa.table, others))}) == 4


@pytest.mark.parametrize(
    ("line", "folder", "name"),
    [
        ("4:cpu,memory:/some/job", "memory/some/job", "memory.limit_in_bytes"),
        ("0::/some/job", "some/job", "memory.max"),
    ],
)
def test_the_group_of_this_process(tmp_path: Path, line: str, folder: str, name: str) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    with pytest.raises(NoGroup):
        place(tmp_path)
    (tmp_path / "proc/self/cgroup").write_text(f"3:cpu:/other\n{line}\n")
    (tmp_path / "sys/fs/cgroup/cgroup.controllers").write_text("memory")
    assert place(tmp_path) == (tmp_path / "sys/fs/cgroup" / folder, name)


def test_zipf_keys_are_popular_in_one_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "ROWS", 8000)
    monkeypatch.setattr(spill, "KEYS", 4000)
    spill._write(tmp_path, "zipf")
    popular = {}
    for stream in "abc":
        keys = pq.read_table(tmp_path / stream)["a"].to_numpy()
        counts = np.bincount(keys, minlength=4000)
        popular[stream] = int(counts.argmax())
        assert counts.max() > 8000 / 10 and 1000 < (counts > 0).sum() < 4000
    assert len(set(popular.values())) == 3


def test_a_part_that_does_not_exist() -> None:
    with pytest.raises(SettingError, match="there is star-uniform, star-zipf, chain-uniform, chain-zipf, peer"):
        spill.run(part="stars")
