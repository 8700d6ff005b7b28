"""Formats: no written type can change unnoticed, and files of other shapes are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eddyline.codec import schema
from eddyline.errors import JobError
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.checkpoint import FORMAT
from eddyline.protocol.commit import Commit
from eddyline.protocol.log import LogMeta
from eddyline.protocol.small_files import SmallMeta
from eddyline.state.log.sealed import sealed
from tests.support.durable_world import World

RECORDED = {8: "899245f87223f4ad"}
"""The schema of all types in a checkpoint, by the format of the checkpoint."""


def test_a_changed_type_is_noticed() -> None:
    now = schema(Commit, BatchDecision, LogMeta, SmallMeta)
    assert now == RECORDED[FORMAT], (
        f"the types in a checkpoint have changed: record {now} here. If a job could misread what was written before,"
        " or the other way round, raise FORMAT too; if not, every field that is new has a default"
    )


def test_a_file_of_another_shape_is_refused(tmp_path: Path) -> None:
    world, name = World(tmp_path), "commits/00000000"
    world.batch(a=[(1, 1)], b=[(2, 1)])
    files = world.checkpoint.files
    changed = json.loads(files.read(name)) | {"watermarks": [1, 2]}
    (tmp_path / "checkpoint" / name).write_bytes(sealed(json.dumps(changed).encode(), files.label(name)))
    with pytest.raises(JobError, match=r"commits/00000000 was written by another version \(Expected `object`"):
        World(tmp_path)
