"""One run at a time works in a folder, whatever became of the one before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from eddyline.state.folder_lock import FolderLock, FolderTaken

HOLD = """
import sys, time
from eddyline.state.folder_lock import FolderLock
lock = FolderLock()
lock.take(sys.argv[1])
print("held", flush=True)
time.sleep(600)
"""


def test_a_folder_has_one_holder_and_the_dead_have_none(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE)
    lock = FolderLock()
    try:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        with pytest.raises(FolderTaken, match=f"^process {other.pid}$"):
            lock.take(str(tmp_path))
    finally:
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    assert not lock.held
    lock.take(str(tmp_path))
    lock.take(str(tmp_path))
    assert lock.held and not list(tmp_path.iterdir())
    with pytest.raises(FolderTaken, match="of this process"):
        FolderLock().take(str(tmp_path))
    lock.let_go()
    FolderLock().take(str(tmp_path))
