"""Faults that a folder asks for happen once, in whichever process comes first."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eddyline import faults
from lab.chaos.strikes import FAULTS, Struck, arm, left, module, points_reached, strike


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "checkpoint" / "log").mkdir(parents=True)
    yield tmp_path / "faults"
    faults.inject(None)


def test_each_fault_happens_once(folder: Path, tmp_path: Path) -> None:
    strike(folder, "here", "dies")
    strike(folder, "here", "disk full")
    strike(folder, "nowhere", "dies")
    arm(folder, tmp_path / "checkpoint")
    with pytest.raises(Struck, match="here"):
        faults.reach("here")
    with pytest.raises(OSError, match="No space left"):
        faults.reach("here")
    faults.reach("here")
    faults.reach("there")
    assert left(folder) == [("nowhere", "dies")] and points_reached(folder) == {"here", "there"}


def test_another_process_is_armed_by_a_module(folder: Path, tmp_path: Path) -> None:
    strike(folder, "here", "torn write")
    (tmp_path / "checkpoint/log/1").write_bytes(b"0123456789")
    text = (
        Path(module(folder, tmp_path / "checkpoint")).read_text() + "from eddyline.faults import reach; reach('here')"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].endswith("Struck: here")
    assert (tmp_path / "checkpoint/log/1").read_bytes() == b"01234" and left(folder) == []


def test_files_of_a_zombie_hurt_nobody_at_once(folder: Path, tmp_path: Path) -> None:
    strike(folder, "here", "late file of a zombie")
    arm(folder, tmp_path / "checkpoint")
    faults.reach("here")
    assert len(list((tmp_path / "checkpoint").rglob("*zombie"))) == 4 and len(FAULTS) == 6
