"""The folder of a checkpoint: for its user alone, without links, and with the names of others left alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eddyline as el
from eddyline.errors import JobError, ScriptError, SettingError
from eddyline.state.log.private import make_private

TEXT = """CREATE STREAM a (ts TIMESTAMP, k BIGINT) USING parquet OPTIONS (path '{root}/a') TIMESTAMP BY ts;
CREATE SINK out USING {format} OPTIONS (path '{root}/out');
INSERT INTO out SELECT x.k FROM a [RANGE 10 SECONDS] x, a [RANGE 10 SECONDS] y WHERE x.k = y.k;"""


@pytest.fixture(params=[0o000, 0o022])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def put(root: Path, first: int) -> None:
    (root / "a").mkdir(exist_ok=True)
    times = pa.array([1_000_000 * second for second in range(first, first + 100)], pa.timestamp("us"))
    table = pa.table({"ts": times, "k": list(range(first, first + 100))})
    pq.write_table(table, root / "a" / f"{first}.parquet")


def run(root: Path, format_: str = "json", final: bool = False, **settings: object) -> None:
    text = TEXT.format(root=root, format=format_)
    settings = {"batch_rows": 10, "slots": 2, **settings}
    el.query(text).start(checkpoint=str(root / "checkpoint"), settings=settings, final=final).wait()


def modes(folder: Path) -> dict[str, set[int]]:
    """The modes of folders and of files."""
    found: dict[str, set[int]] = {"folders": {stat.S_IMODE(folder.stat().st_mode)}, "files": set()}
    for path in folder.rglob("*"):
        found["folders" if path.is_dir() else "files"].add(stat.S_IMODE(path.stat().st_mode))
    return found


def rows(root: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in (root / "out").glob("*.json"))


def test_a_checkpoint_is_for_its_user_alone_and_results_are_not(umask: int, tmp_path: Path) -> None:
    put(tmp_path, 0)
    run(tmp_path)
    assert modes(tmp_path / "checkpoint") == {"folders": {0o700}, "files": {0o600}}
    assert modes(tmp_path / "out") == {"folders": {0o777 & ~umask}, "files": {0o666 & ~umask}}


def test_a_checkpoint_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    put(tmp_path, 0)
    run(tmp_path)
    for path in [tmp_path / "checkpoint", *(tmp_path / "checkpoint").rglob("*")]:
        path.chmod(0o755)
    put(tmp_path, 100)
    run(tmp_path)
    assert modes(tmp_path / "checkpoint") == {"folders": {0o700}, "files": {0o600}}
    make_private(str(tmp_path / "nothing"))


@pytest.mark.parametrize("name", ["log", "commits", "small", "decided", "files", "files/a", "checkpoint.json", "odd"])
def test_a_checkpoint_with_a_link_is_refused_and_nothing_behind_it_is_deleted(name: str, tmp_path: Path) -> None:
    put(tmp_path, 0)
    run(tmp_path)
    precious, link = tmp_path / "precious", tmp_path / "checkpoint" / name
    if link.is_dir():
        link.rename(precious)
    else:
        precious.mkdir()
        if link.exists():
            link.unlink()
    (precious / "letter.txt").write_text("dear")
    (precious / "00000000-0-old").write_text("a name like ours")
    link.symlink_to(precious)
    before = sorted(path.name for path in precious.iterdir())
    with pytest.raises(SettingError, match=rf"cannot use .*checkpoint for a checkpoint: {name} in it is a link"):
        run(tmp_path, final=True)
    assert sorted(path.name for path in precious.iterdir()) == before


def test_the_checkpoint_itself_may_be_a_link(tmp_path: Path) -> None:
    put(tmp_path, 0)
    (tmp_path / "disk").mkdir()
    (tmp_path / "checkpoint").symlink_to(tmp_path / "disk")
    run(tmp_path)
    put(tmp_path, 100)
    run(tmp_path, final=True)
    assert rows(tmp_path) == 200


def test_files_of_others_in_a_checkpoint_stay(tmp_path: Path) -> None:
    put(tmp_path, 0)
    run(tmp_path)
    strange = [tmp_path / "checkpoint" / name / "notes.txt" for name in ("log", "small", "commits", "decided")]
    for path in strange:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    put(tmp_path, 100)
    run(tmp_path, final=True)
    assert rows(tmp_path) == 200 and all(path.read_text() == "mine" for path in strange)


@pytest.mark.parametrize(
    "place", ["_staged", "k=1", "k=1/j=2", "part-00000000-00000-other.json", "_staged/0123456789ab"]
)
def test_an_output_folder_with_a_link_is_refused(place: str, tmp_path: Path) -> None:
    put(tmp_path, 0)
    precious, link = tmp_path / "precious", tmp_path / "out" / place
    precious.mkdir()
    (precious / "00000000-0-00000.json").write_text("dear")
    link.parent.mkdir(parents=True)
    link.symlink_to(precious)
    with pytest.raises(ScriptError, match=rf"out/{place} is a link to a folder; remove the link, or choose another"):
        run(tmp_path)
    assert (precious / "00000000-0-00000.json").read_text() == "dear"


@pytest.mark.parametrize("name", ["files", "log", "commits", "checkpoint.json"])
def test_a_checkpoint_that_lacks_a_part_is_damaged(name: str, tmp_path: Path) -> None:
    """In the state after a kill in the middle: the last batches are not committed yet."""
    put(tmp_path, 0)
    run(tmp_path)
    lost = tmp_path / "checkpoint" / name
    lost.rename(tmp_path / "lost")
    (tmp_path / "a" / "-1.parquet").write_bytes((tmp_path / "a" / "0.parquet").read_bytes())
    there = rows(tmp_path)
    with pytest.raises(JobError, match=rf"checkpoint.* is damaged: .*{name}.* (is|are) missing"):
        run(tmp_path)
    assert rows(tmp_path) == there
    (tmp_path / "a" / "-1.parquet").unlink()
    (tmp_path / "lost").rename(lost)
    put(tmp_path, 100)
    run(tmp_path, final=True)
    assert rows(tmp_path) == 200


def test_a_decision_without_the_commit_before_it_is_damage(tmp_path: Path) -> None:
    put(tmp_path, 0)
    run(tmp_path, "parquet")
    (commit,) = (tmp_path / "checkpoint" / "commits").iterdir()
    (tmp_path / "checkpoint" / "decided" / f"{int(commit.name) + 1:08}").write_text("made before the commit was lost")
    commit.unlink()
    with pytest.raises(JobError, match=rf"the checkpoint is damaged: commits/{commit.name} is missing"):
        run(tmp_path, "parquet")
