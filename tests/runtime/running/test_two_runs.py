"""Two runs at the same time never write to one place, unless `mode 'append'` says so."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eddyline.errors import JobError, ScriptError, SettingError
from eddyline.runtime.reporting.summary import Progress
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.settings import from_mapping
from eddyline.state.folder_lock import FolderLock

SCRIPT = (
    "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 2000, rate 100, k.domain '1..9') TIMESTAMP"
    " BY ts; CREATE STREAM t (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 9, rate 100) TIMESTAMP BY ts;"
    " CREATE SINK out USING json OPTIONS (path 'out'MODE);"
    " INSERT INTO out SELECT s.k, s.ts FROM s [RANGE 1 HOUR] AS s, t [RANGE 1 HOUR] AS t"
    " WHERE s.k = t.k OR s.k <> t.k"
)


def runner(mode: str, checkpoint: str | None, **settings: Any) -> LocalRunner:
    text = SCRIPT.replace("MODE", f", mode '{mode}'" if mode else "")
    chosen = from_mapping({"at_end": "flush", "batch_rows": 300, **settings})
    return LocalRunner(prepare(text, checkpoint=checkpoint), chosen, checkpoint)


def published() -> Counter[tuple[Any, ...]]:
    lines = (line for file in Path("out").rglob("part-*") for line in file.read_text().splitlines())
    return Counter(tuple(json.loads(line).values()) for line in lines)


@pytest.mark.parametrize("mode", ["", "overwrite", "append"])
@pytest.mark.parametrize("kept", [True, False])
def test_a_second_run_at_the_same_time(mode: str, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    alone, refused = Counter[tuple[Any, ...]](), list[str]()
    runner("", "once" if kept else None).run()
    alone.update(published())
    for file in Path("out").iterdir():
        file.unlink()
    second = partial(runner, mode, "second" if kept else None)
    waiting = second()  # its first look is before the other run has begun

    def begin_another(progress: Progress) -> None:
        if not refused:
            refused.append("")
            if mode == "append":
                waiting.run()
                return
            with pytest.raises(JobError, match=r"^another run writes to out now \(of this process\): wait until"):
                waiting.run()

    assert runner(mode, "first" if kept else None).run(watch=begin_another).rows_out == alone.total() and refused
    both = {row: 2 * n for row, n in alone.items()} if mode == "append" else alone
    assert published() == Counter(both)
    if mode:
        runner(mode, "third" if kept else None).run()
    else:
        with pytest.raises(ScriptError, match="out already holds results"):
            second()
        assert published() == alone


@pytest.mark.parametrize("kept", [True, False])
def test_where_the_file_system_has_no_locks_the_place_is_looked_at_again(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(FolderLock, "take", lambda lock, folder: None)
    second = runner("", "second" if kept else None)
    first = runner("", "first" if kept else None)
    begun = []

    def run_the_other(progress: Progress) -> None:
        if not begun:
            begun.append(1)
            first.run()

    if kept:
        first.run()
        with pytest.raises(SettingError, match="out already holds results"):
            second.run()
    else:
        with pytest.raises(SettingError, match="out already holds results"):
            second.run(watch=run_the_other)
    assert published().total() == first.reporter.progress().rows_out


def test_a_refused_run_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen = []

    def begin_another(progress: Progress) -> None:
        if not seen:
            seen.append(sorted(map(str, Path("out").rglob("*"))))
            with pytest.raises(JobError, match="another run writes to out now"):
                runner("overwrite", "second").run()
            assert sorted(map(str, Path("out").rglob("*"))) == seen[0]

    runner("overwrite", "first").run(watch=begin_another)
    runner("overwrite", "second").run()  # the checkpoint of the refused run is as new
