"""Checkpoints: commits, the check that a checkpoint belongs to the job, and the deletion of old files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from eddyline.counts import Counts, StreamCounts
from eddyline.engine.watermarks import Advanced, Reached
from eddyline.errors import JobError, SettingError
from eddyline.protocol import checkpoint as module
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.checkpoint import Checkpoint
from eddyline.protocol.commit import Commit, LogFile
from eddyline.state.log.store import Store

ABOUT = {"stream": {"s": '{"k": "int64"}'}, "query": "SELECT k FROM s", "groups": 256}
COMMIT = Commit(
    3,
    {"s": [10, 0]},
    Reached({"s": 5}, used=5),
    Counts({"s": StreamCounts(used=10)}, 2),
    (LogFile("log/00000003-0-x", 0, 10, {"s": 5, "t": None}),),
    ("small/00000003-0-x",),
    Advanced(counted={0: 7}),
    False,
    "abc",
)
DECISION = BatchDecision(4, "rows", [7], Reached({"s": 5}, used=5), 2, {0: ("log/00000003-0-x",), 1: ()})


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    made = Checkpoint(Store(str(tmp_path)))
    made.open(ABOUT)
    return made


def test_a_commit_comes_back(checkpoint: Checkpoint) -> None:
    assert checkpoint.last() is None
    checkpoint.commit(COMMIT)
    assert checkpoint.last() == checkpoint.commit_of(3) == COMMIT


def test_the_newest_commit_is_the_last_by_number(checkpoint: Checkpoint) -> None:
    for batch in (7, 99_999_999, 100_000_000):
        checkpoint.commit(replace(COMMIT, batch=batch))
    last = checkpoint.last()
    assert last is not None and last.batch == 100_000_000


def test_a_commit_is_never_written_over(checkpoint: Checkpoint) -> None:
    checkpoint.commit(COMMIT)
    with pytest.raises(JobError, match="batch 3 was committed by another run of this job"):
        checkpoint.commit(replace(COMMIT, history="other"))
    assert checkpoint.last() == COMMIT


def test_what_was_decided(checkpoint: Checkpoint) -> None:
    assert checkpoint.decided(4) is None
    checkpoint.decide(DECISION)
    end = replace(DECISION, kind="end", ended=("s",))
    checkpoint.decide(end)
    assert checkpoint.decided(4) == end


def test_a_checkpoint_has_a_history_of_its_own(checkpoint: Checkpoint, tmp_path: Path) -> None:
    again = Checkpoint(Store(str(tmp_path)))
    again.open(ABOUT)
    other = Checkpoint(Store(str(tmp_path / "other")))
    other.open(ABOUT)
    assert again.history == checkpoint.history != other.history


@pytest.mark.parametrize(
    ("was", "now"),
    [("a RANGE 60 60", "a TUMBLE 60 60"), ("a RANGE 600 60, b RANGE 60 60, c", "a HOP 600 60, b TUMBLE 60 60, c")],
)
def test_a_checkpoint_of_windows_that_counted_their_ends(was: str, now: str, tmp_path: Path) -> None:
    Checkpoint(Store(str(tmp_path / "old"))).open({**ABOUT, "query": f"SELECT COUNT(*) over {was}"})
    sentence = r"windows with borrowed names now mean \[start, end\): give the job a new checkpoint folder"
    with pytest.raises(SettingError, match=sentence):
        Checkpoint(Store(str(tmp_path / "old"))).check({**ABOUT, "query": f"SELECT COUNT(*) over {now}"})


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"query": "over s HOP 600000000 60000000 5000000"},
            "and is over s HOP 1 minute, 10 minutes OFFSET 5 seconds;",
        ),
        ({"query": "SELECT 1"}, "query was SELECT k FROM s and is SELECT 1;"),
        ({"query": "SELECT k FROM s, t over s , t "}, "and is SELECT k FROM s, t over s, t;"),
        ({"groups": 7}, "groups was 256 and is 7;"),
        ({"stream": {"s": '{"k": "string"}'}}, "stream s: k was BIGINT and is VARCHAR;"),
        ({"stream": {}}, 'stream s was {"k": "BIGINT"} and is not there;'),
        ({"stream": {**ABOUT["stream"], "t": "{}"}}, "stream t was not there and is {};"),  # type: ignore[dict-item]
        ({"more": 1}, "more was not there and is 1;"),
    ],
)
def test_a_checkpoint_of_something_else(changed: dict[str, object], sentence: str, checkpoint: Checkpoint) -> None:
    with pytest.raises(SettingError) as refused:
        checkpoint.open({**ABOUT, **changed})
    assert "does not fit: " in str(refused.value)
    assert f"{sentence} give the job a new checkpoint folder" in str(refused.value)


def test_another_format(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FORMAT", 9)
    with pytest.raises(SettingError, match="has format 8, and this version has format 9; finish the job"):
        checkpoint.open(ABOUT)


@pytest.mark.parametrize("there", ["0001.parquet", "2026/0001.parquet", ".git/config"])
def test_a_folder_with_other_things(there: str, tmp_path: Path) -> None:
    file = tmp_path / there
    file.parent.mkdir(exist_ok=True)
    file.write_text("precious")
    holds = there.split("/")[0]
    with pytest.raises(
        SettingError, match=rf"is not empty and not a checkpoint \(it holds {holds}\); choose a new or an"
    ):
        Checkpoint(Store(str(tmp_path))).open(ABOUT)
    assert [f for f in tmp_path.rglob("*") if f.is_file()] == [file]


def test_a_folder_in_which_a_first_run_died_at_once(tmp_path: Path) -> None:
    (tmp_path / ".tmp-0123-checkpoint.json").write_text("half")
    Checkpoint(Store(str(tmp_path))).open(ABOUT)


def test_commits_without_what_they_are_of(checkpoint: Checkpoint, tmp_path: Path) -> None:
    checkpoint.commit(COMMIT)
    (tmp_path / "checkpoint.json").unlink()
    with pytest.raises(JobError, match=r"is damaged: checkpoint\.json is missing"):
        checkpoint.open(ABOUT)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("checkpoint.json", lambda c: c.open(ABOUT)),
        ("commits/00000003", lambda c: c.last()),
        ("decided/00000004", lambda c: c.decided(4)),
    ],
)
def test_every_flipped_bit_is_noticed(
    name: str, read: Callable[[Checkpoint], object], checkpoint: Checkpoint, tmp_path: Path
) -> None:
    checkpoint.commit(COMMIT)
    checkpoint.decide(DECISION)
    whole = (tmp_path / name).read_bytes()
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 << at % 8
        (tmp_path / name).write_bytes(changed)
        with pytest.raises(JobError, match=f"damaged: {name} does not match its checksum"):
            read(checkpoint)
    (tmp_path / name).write_bytes(whole)
    read(checkpoint)


def test_what_no_commit_names_is_collected(checkpoint: Checkpoint, tmp_path: Path) -> None:
    for batch in (2, 3):
        checkpoint.commit(replace(COMMIT, batch=batch))
    for batch in (2, 3, 4):
        checkpoint.decide(replace(DECISION, batch=batch))
    keep = ["log/00000003-0-x", "small/00000003-0-x", "spark/offsets/1"]
    gone = [
        "log/00000003-0-y",
        "small/00000002-0-x",
        "log/.tmp-1-a",
        "commits/.tmp-2-b",
        "decided/.tmp-3-c",
        ".tmp-4-d",
    ]
    for name in keep + gone:
        checkpoint.store.write(name, b"")
    for _ in range(2):
        checkpoint.collect(COMMIT)
        left = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file())
        assert left == sorted([*keep, "checkpoint.json", "commits/00000003", "decided/00000004"])
