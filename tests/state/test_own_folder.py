"""Folders with an owner: no other process can use them, and the folder of a killed process is removed at the next
start."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from eddyline.errors import JobError
from eddyline.state import own_folder
from eddyline.state.own_folder import ARENAS, CHECKPOINT, OwnFolder, delete, own_name, sweep

HOLDER = """
import sys
from eddyline.state.arena import Arena
from eddyline.state.own_folder import ARENAS, CHECKPOINT, OwnFolder, own_name
folders = [OwnFolder(own_name(sys.argv[1], kind)) for kind in (ARENAS, CHECKPOINT)]
for folder in folders:
    folder.hold()
    open(f"{folder.path}/file", "w").close()
arena = Arena(f"{folders[0].path}/0")
arena.map(arena.region(), 0, 4096)
print("held", flush=True)
sys.stdin.read()
"""


def held(parent: Path, kind: str = ARENAS) -> OwnFolder:
    folder = OwnFolder(own_name(str(parent), kind))
    folder.hold()
    return folder


def test_names_cannot_be_guessed_and_folders_are_for_one_user(tmp_path: Path) -> None:
    folders = [held(tmp_path / "new") for _ in range(3)]
    assert len({folder.path for folder in folders}) == 3
    assert all(os.stat(folder.path).st_mode & 0o777 == 0o700 for folder in folders)


def test_a_folder_that_a_process_holds_stays(tmp_path: Path) -> None:
    folder = held(tmp_path)
    folder.hold()
    sweep(str(tmp_path))
    held(tmp_path, CHECKPOINT)
    assert Path(folder.path).exists()
    folder.let_go()
    sweep(str(tmp_path))
    assert not Path(folder.path).exists()


def test_several_may_hold_one_folder(tmp_path: Path) -> None:
    one = held(tmp_path)
    other = OwnFolder(one.path)
    other.hold()
    one.let_go()
    sweep(str(tmp_path))
    assert Path(one.path).exists()
    other.remove()
    assert list(tmp_path.iterdir()) == []
    one.remove()  # it does not hold the folder any more


def test_only_folders_of_this_user_with_our_names_are_swept(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir(0o700)
    (victim / "file").touch()
    Path(own_name(str(tmp_path), ARENAS)).symlink_to(victim)
    others = [Path(own_name(str(tmp_path), ARENAS)) for _ in range(2)]
    for other in others:
        other.mkdir(0o700)
    others[0].chmod(0o777)
    others[1].rename(others[1].with_name("eddyline-demo"))
    Path(own_name(str(tmp_path), CHECKPOINT)).touch()
    before = sorted(tmp_path.rglob("*"))
    sweep(str(tmp_path))
    sweep(str(tmp_path / "not there"))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_was_swept_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, seen = own_folder.opened, list[str]()

    def slow(path: str) -> int:
        if not seen:
            seen.append(path)
            sweep(str(tmp_path))
            assert list(tmp_path.iterdir()) == []
        return opened(path)

    monkeypatch.setattr(own_folder, "opened", slow)
    folder = held(tmp_path)
    monkeypatch.undo()
    sweep(str(tmp_path))
    assert Path(folder.path).exists()


def test_the_lock_on_a_folder_that_was_swept_is_worth_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flock, seen = fcntl.flock, list[int]()

    def slow(fd: int, operation: int) -> None:
        if operation == fcntl.LOCK_SH and not seen:
            seen.append(fd)
            sweep(str(tmp_path))
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", slow)
    folder = held(tmp_path)
    monkeypatch.undo()
    sweep(str(tmp_path))
    assert seen and Path(folder.path).exists()


def test_a_folder_where_one_should_be_made_is_refused(tmp_path: Path) -> None:
    name = own_name(str(tmp_path), ARENAS)
    Path(name).mkdir(0o777)
    Path(name).chmod(0o777)
    with pytest.raises(JobError, match="must belong to this user alone"):
        OwnFolder(name).hold()


def test_a_folder_is_removed_although_a_process_adds_files_to_it(tmp_path: Path) -> None:
    folder, done = held(tmp_path), threading.Event()
    inner = Path(folder.path, "0")
    inner.mkdir()
    fd = os.open(inner, os.O_RDONLY | os.O_DIRECTORY)

    def add() -> None:
        number = 0
        while not done.is_set():
            number += 1
            try:
                os.close(os.open(f"/proc/self/fd/{fd}/{number}", os.O_CREAT | os.O_WRONLY, 0o600))
            except FileNotFoundError:
                return

    zombie = threading.Thread(target=add)
    zombie.start()
    delete(folder.path)
    done.set()
    zombie.join()
    os.close(fd)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rounds", [1, pytest.param(5, marks=pytest.mark.long)])
def test_nothing_is_left_after_kills(rounds: int, tmp_path: Path) -> None:
    """Each round starts ten processes at once: each sweeps while others make their folders, and lives until it is
    killed."""
    for _ in range(rounds):
        command = [sys.executable, "-c", HOLDER, str(tmp_path)]
        running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(10)]
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
        sweep(str(tmp_path))
        assert len(list(tmp_path.iterdir())) == 20
        for process in running:
            process.send_signal(signal.SIGKILL)
            process.communicate()
    assert len(list(tmp_path.iterdir())) == 20
    sweep(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
