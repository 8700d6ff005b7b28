"""Where slots keep their state on Spark: a folder that is full, workers that die, and nothing that is left."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from eddyline.errors import JobError
from tests.conftest import Ran, at

Files = Callable[..., str]
Runs = Callable[..., Ran]
ROWS = 40_000

DEADLY = """
import os, signal
import pyarrow as pa
import eddyline as el

@el.udf(returns=pa.int64())
def deadly(values):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def _left(*folders: Path | str) -> list[str]:
    return [path.name for folder in folders for path in Path(folder).glob("eddyline-*-*-*")]


@pytest.fixture
def text(files: Files) -> str:
    """A join without windows whose state, of 80,000 rows, takes more than 4 MB."""
    table = pa.table({"ts": pa.array([at(i / 1000) for i in range(ROWS)], pa.timestamp("us")), "k": list(range(ROWS))})
    parts = [table.slice(first, 10_000) for first in range(0, ROWS, 10_000)]
    streams = f"CREATE STREAM {files('a', *parts)}; CREATE STREAM {files('b', *parts)};"
    return f"{streams} SELECT a.k AS k FROM a [UNBOUNDED] AS a, b [UNBOUNDED] AS b WHERE a.k = b.k"


def test_a_folder_that_is_full(run_on_spark: Runs, text: str, small_folder: Path, tmp_path: Path) -> None:
    """The job stops with a sentence, and goes on from its checkpoint in another folder."""
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(JobError, match=f"^{re.escape(str(small_folder))} is full .*; set arena_dir to"):
        run_on_spark(text, checkpoint, arena_dir=small_folder, batch_rows=20_000)
    assert list((checkpoint / "commits").iterdir()) and _left(small_folder) == []
    ran = run_on_spark(text, checkpoint, arena_dir=tmp_path / "other", batch_rows=20_000)
    assert ran.summary.rows_out == ROWS and _left(tmp_path / "other") == []


@pytest.mark.parametrize("free", [12_288, 24_576, 36_864, 400_000])
def test_a_checkpoint_without_room(run_on_spark: Runs, text: str, small_folder: Path, free: int) -> None:
    """Whoever writes when the disk is full: the JVM or Python, in the first batch or later. The job stops with a
    sentence, and goes on when there is room."""
    checkpoint, filler = small_folder / "checkpoint", small_folder / "filler"
    filler.write_bytes(bytes((4 << 20) - free))
    short = text.replace("[UNBOUNDED]", "[RANGE 20 SECONDS]")
    sentence = (
        rf"^{checkpoint} has no room for .* \(.* free of 4.194 MB\): make room, and run the job again; it continues"
    )
    with pytest.raises(JobError, match=sentence):
        run_on_spark(short, checkpoint, memory="700KB", batch_rows=10_000)
    filler.unlink()
    ran = run_on_spark(short, checkpoint, memory="700KB", batch_rows=10_000)
    assert (ran.summary.rows_out, ran.summary.finished) == (ROWS, True) and ran.summary.groups_left > 0


def test_workers_that_are_killed(
    run_on_spark: Runs, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "deadly_module.py").write_text(DEADLY)
    with pytest.raises(JobError, match="a Python worker of Spark was killed or crashed, 4 times in a row: if the host"):
        run_on_spark(
            f"{text} AND deadly(a.k) = 1", modules=(str(tmp_path / "deadly_module.py"),), arena_dir=tmp_path / "arenas"
        )
    assert _left(tmp_path, tmp_path / "arenas") == []
