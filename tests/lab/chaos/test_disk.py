"""A short share of the faults of disks: each kind of file is hit, and the results are right after the next run."""

from __future__ import annotations

import errno
import random
import shutil
from pathlib import Path

import pytest

from lab.chaos import disk as chaos_disk
from lab.chaos.disk import DiskFault, Disks, compiled, draw_fault
from lab.ledger import Entry

CASES = [
    DiskFault("checkpoint", "rename", 4, errno.EIO),
    DiskFault("checkpoint", "write", 9, "short"),
    DiskFault("arena", "truncate", 2, errno.ENOSPC),
    DiskFault("results", "close", 1, errno.ENOSPC),
    DiskFault("source", "open", 6, errno.EMFILE),
]

if not any(map(shutil.which, ("cc", "gcc", "clang"))):
    pytest.skip("there is no compiler of C", allow_module_level=True)


@pytest.mark.share(3)
@pytest.mark.parametrize("fault", CASES, ids=str)
def test_a_job_whose_disk_fails_goes_on_or_says_so(fault: DiskFault) -> None:
    disks = Disks("local", 7)
    disks.run(1, fault)
    assert disks.wrong == [] and disks.hit == 1 and disks.finished == 1
    assert disks.faults == {f"{fault.kind} {fault.operation}": 1}


def test_a_wrong_result_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaos_disk, "verify", lambda job, on_spark: ["a row is missing"])
    disks = Disks("local", 7)
    disks.run(1, CASES[1])
    assert disks.wrong == ["join: a row is missing"]


def test_faults_are_of_every_kind_and_without_a_compiler_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = [draw_fault(random.Random(seed), engine) for seed in range(200) for engine in ("local", "spark")]
    assert {fault.kind for fault in drawn} == set(chaos_disk.OPERATIONS)
    assert {fault.operation for fault in drawn} == set(chaos_disk.FAULTS)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(chaos_disk.NoCompiler, match="needs a compiler of C"):
        compiled(tmp_path)
    lines: list[str] = []
    assert chaos_disk.main("local", 1, 1, lines.append, Entry()) == 0 and lines[0].startswith("skipped: ")
