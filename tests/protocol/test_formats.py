"""Formats: no written type can change unnoticed, and checkpoints of the versions before can be read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from eddyline.codec import schema
from eddyline.errors import JobError
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.checkpoint import FORMAT
from eddyline.protocol.commit import Commit
from eddyline.protocol.log import LogMeta
from eddyline.protocol.small_files import SmallMeta
from eddyline.state.log.sealed import sealed, unsealed
from lab.fuzz.simulation import MemorySink
from tests.support.durable_world import Row, World

RECORDED = {7: "506e0770c584d3b1"}
"""The schema of all types in a checkpoint, by the format of the checkpoint."""

WRITTEN = {format_: Path(__file__).parent / f"format-{format_}.zip" for format_ in (5, 6)}
"""Checkpoints by story, written by the last version of each format; five of BATCHES are committed, and the sixth is
decided."""

STORIES: dict[str, dict[str, Any]] = {
    "join": {"slots": 2},
    "rows": {
        "windows": ("ROWS 3", "RANGE 20 MICROSECONDS SLIDE 5 MICROSECONDS"),
        "outputs": ("a.k", "count(*) AS n", "sum(b.k) AS s"),
        "keys": ("a.k",),
    },
}
BATCHES: list[dict[str, list[Row]]] = [
    {"a": [(t, t % 2), (t + 1, 1)], "b": [(t + 2, 1), (t, 0)]} for t in range(1, 60, 6)
]


def test_a_changed_type_is_noticed() -> None:
    now = schema(Commit, BatchDecision, LogMeta, SmallMeta)
    assert now == RECORDED[FORMAT], (
        f"the types in a checkpoint have changed: record {now} here. If a job could misread what was written before,"
        " or the other way round, raise FORMAT too; if not, every field that is new has a default"
    )


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("slots", [None, 3])
@pytest.mark.parametrize("format_", WRITTEN)
def test_a_checkpoint_of_a_version_before_is_gone_on_with(
    format_: int, story: str, slots: int | None, tmp_path: Path
) -> None:
    options = STORIES[story]
    whole, sink = World(tmp_path / "whole", **options), MemorySink()
    for batch in BATCHES[:5]:
        whole.batch(**batch)
    after = len(whole.results)
    shutil.unpack_archive(WRITTEN[format_], tmp_path)
    old = World(tmp_path / story, sink=sink, **(options if slots is None else {**options, "slots": slots}))
    assert old.coordinator.commit.counts == whole.coordinator.commit.counts
    published = whole.results
    for world in (whole, old):
        for batch in BATCHES[5:]:
            world.batch(**batch)
        world.batch("end")
    assert sorted([*published, *old.results]) == whole.results and len(whole.results) > after
    World(tmp_path / story, **options)  # its files have labels by now, and are read


def test_a_file_of_another_shape_is_refused(tmp_path: Path) -> None:
    shutil.unpack_archive(WRITTEN[6], tmp_path)
    commit = tmp_path / "join" / "checkpoint" / "commits" / "00000004"
    read = json.loads(unsealed(commit.read_bytes()))
    commit.write_bytes(sealed(json.dumps(read | {"watermarks": [1, 2]}).encode()))
    with pytest.raises(JobError, match=r"commits/00000004 was written by another version \(Expected `object`"):
        World(tmp_path / "join")
