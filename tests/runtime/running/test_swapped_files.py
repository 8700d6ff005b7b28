"""Files of a checkpoint in the place of others of their kind: the job is refused, or its rows are the same."""

from __future__ import annotations

import datetime as dt
import shutil
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eddyline as el
from eddyline.errors import JobError
from eddyline.protocol.checkpoint import Checkpoint
from eddyline.state.log.store import Store

BEGIN = dt.datetime(2026, 1, 1)
JOIN = "SELECT a.s, b.s AS t FROM a [RANGE 30 SECONDS] a, b [RANGE 30 SECONDS] b WHERE a.k = b.k"
COUNTS = (
    "SELECT a.k, COUNT(*) AS n FROM a [ROWS 9] a, b [RANGE 30 SECONDS SLIDE 10 SECONDS] b WHERE a.k = b.k GROUP BY a.k"
)


def put(folder: Path, first: int, rows: int, keys: int) -> None:
    folder.mkdir(exist_ok=True)
    some = range(first, first + rows)
    times = pa.array([BEGIN + dt.timedelta(seconds=i) for i in some], pa.timestamp("us"))
    table = {"ts": times, "k": [i % keys for i in some], "s": [f"s{i}" for i in some]}
    pq.write_table(pa.table(table), folder / f"{first}.parquet")


class World:
    """A join, or an aggregate, of two streams of files; `run` goes on with a checkpoint."""

    def __init__(self, root: Path, query: str) -> None:
        self.root, streams = root, ""
        for name in "ab":
            streams += f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, s VARCHAR) USING parquet"
            streams += f" OPTIONS (path '{root / name}') TIMESTAMP BY ts;"
        self.text = streams + query
        self.put(0, 100)

    def put(self, first: int, rows: int) -> None:
        put(self.root / "a", first, rows, 7)
        put(self.root / "b", first, rows, 5)

    def run(self, checkpoint: str, final: bool = False) -> list[str]:
        given: list[str] = []
        settings = {"batch_rows": 30, "slots": 2}
        given_to = {"sink": lambda batch: given.extend(map(str, batch.to_pylist())), "final": final}
        el.query(self.text).start(checkpoint=str(self.root / checkpoint), settings=settings, **given_to).wait()
        return sorted(given)


@pytest.mark.parametrize(("query", "folders"), [(JOIN, {"log", "files"}), (COUNTS, {"log", "small", "files"})])
def test_no_file_is_read_in_the_place_of_another(query: str, folders: set[str], tmp_path: Path) -> None:
    world = World(tmp_path, query)
    world.run("other")
    world.run("one")
    world.put(100, 60)
    shutil.copytree(tmp_path / "one", tmp_path / "good")
    assert world.run("good", final=True)
    kinds: dict[str, list[Path]] = {folder: [] for folder in folders}
    last = Checkpoint(Store(str(tmp_path / "one"))).last()
    assert last is not None
    kinds["log"] = [tmp_path / "one" / file.name for file in last.log]
    kinds["small"] = [tmp_path / "one" / name for name in last.small]
    kinds["files"] = sorted((tmp_path / "one" / "files").rglob("0*"))
    *_, before, commit = sorted((tmp_path / "one" / "commits").iterdir())
    swaps = [(before, commit), (tmp_path / "other" / "commits" / commit.name, commit)]
    swaps += [pair for kind in kinds.values() for pair in pairwise([*kind, *kind[:1]])]
    assert all(len(kinds[folder]) > 1 for folder in folders)
    for source, target in swaps:
        name = target.relative_to(tmp_path / "one")
        shutil.rmtree(tmp_path / "bad", ignore_errors=True)
        shutil.copytree(tmp_path / "one", tmp_path / "bad")
        shutil.copy(source, tmp_path / "bad" / name)
        with pytest.raises(JobError, match=f"^the checkpoint is damaged: {name} is "):
            world.run("bad", final=True)
