"""Files are complete or do not exist, on every kind of file system."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from eddyline import faults
from eddyline.errors import JobError, SettingError
from eddyline.state.log.store import UNFINISHED, Store


@pytest.fixture(params=["local", "local by URI", "in memory", "object store"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The mock file system is in memory and not local; as an object store it cannot rename."""
    if request.param == "local":
        return Store(str(tmp_path))
    if request.param == "local by URI":
        return Store(tmp_path.as_uri())
    if request.param == "object store":
        monkeypatch.setattr("eddyline.state.log.store.OBJECT_STORES", ("mock",))
    return Store("mock:///a/b")


def text(store: Store, name: str) -> bytes:
    data: bytes = store.read(name).to_pybytes()
    return data


def test_a_folder_that_is_held_is_refused_to_others(tmp_path: Path) -> None:
    root = str(tmp_path / "checkpoint")
    one, other = Store(root), Store(root)
    one.hold()
    with pytest.raises(JobError, match=f"the checkpoint {root} is in use: only one run may go on with it"):
        other.hold()
    one.let_go()
    one.let_go()
    other.hold()
    del other  # as at the end of its process
    one.hold()
    assert list(tmp_path.rglob("*")) == [tmp_path / "checkpoint"], "a lock leaves no file"


def test_where_there_are_no_locks_everybody_may_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(fd: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    one, other, far = Store(str(tmp_path)), Store(str(tmp_path)), Store("mock:///a")
    for store in (one, other, far):
        store.hold()
        store.let_go()


def test_what_is_written_is_read(store: Store) -> None:
    store.write("log/one", b"first, ", pa.py_buffer(b"second"))
    assert text(store, "log/one") == b"first, second"
    store.write("log/one", b"another")
    store.write("log/none")
    assert text(store, "log/one") == b"another" and text(store, "log/none") == b""
    assert store.names("log") == store.all_names("log") == ["none", "one"]
    assert store.exists("log/one") and not store.exists("log/two") and not store.exists("log")
    store.delete("log/one")
    store.delete("log/one")
    assert store.names("log") == ["none"] and store.names("nowhere") == []


def test_a_buffer_outlives_its_file(store: Store) -> None:
    store.write("x", b"still here")
    read = store.read("x")
    store.delete("x")
    assert read.to_pybytes() == b"still here"


def test_what_is_not_there_cannot_be_read(store: Store) -> None:
    with pytest.raises(JobError, match=r"cannot read log/one under .*: "):
        store.read("log/one")


@pytest.fixture
def points() -> Iterator[list[str]]:
    yield []
    faults.inject(None)


@pytest.mark.parametrize("where", ["before a file is written", "before a file is renamed"])
def test_a_write_that_fails_leaves_what_was_there(where: str, tmp_path: Path, points: list[str]) -> None:
    def full(point: str) -> None:
        points.append(point)
        if point == f"store: {where}":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = Store(str(tmp_path))
    store.write("log/one", b"old")
    faults.inject(full)
    with pytest.raises(JobError, match=r"has no room for log/one \(.* free of .*\): make room, and run the job again"):
        store.write("log/one", b"new")
    assert text(store, "log/one") == b"old" and store.all_names("log") == ["one"]
    assert points[-1] == f"store: {where}"


def test_a_process_that_dies_leaves_a_file_that_is_not_looked_at(tmp_path: Path, points: list[str]) -> None:
    def die(point: str) -> None:
        if point == "store: before a file is renamed":
            raise KeyboardInterrupt

    store = Store(str(tmp_path))
    faults.inject(die)
    with pytest.raises(KeyboardInterrupt):
        store.write("log/one", b"new")
    (left,) = store.all_names("log")
    assert left.startswith(UNFINISHED) and store.names("log") == [] and not store.exists("log/one")


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingError, match=r"cannot use .*file for a checkpoint: it is a file, not a folder"):
        Store(str(tmp_path / "file"))
    (tmp_path / "log").write_text("")
    with pytest.raises(JobError, match="cannot write log/one"):
        Store(str(tmp_path)).write("log/one", b"")
    with pytest.raises(SettingError, match="cannot use nosuch://x for a checkpoint"):
        Store("nosuch://x")


def test_where_a_file_is(tmp_path: Path) -> None:
    assert Store(str(tmp_path)).path("log/one") == f"{tmp_path}/log/one"
    assert Store(tmp_path.as_uri()).path("") == str(tmp_path)
    assert Store(str(tmp_path)).local and Store(tmp_path.as_uri()).local and not Store("mock:///x").local


def test_mock_is_not_local() -> None:
    assert not isinstance(Store("mock:///x")._fs, pafs.LocalFileSystem)


def test_parts_of_a_file(store: Store) -> None:
    store.write("log/one", b"0123456789")
    file = store.open("log/one")
    assert file.size == 10
    assert file.read(3, 4).to_pybytes() == b"3456" and file.read(8).to_pybytes() == b"89"
    with pytest.raises(JobError, match="cannot read log/two under"):
        store.open("log/two")


def test_parts_that_cannot_be_made_leave_no_file(store: Store) -> None:
    def parts() -> Iterator[bytes]:
        yield b"begun"
        raise JobError("the rest is damaged")

    with pytest.raises(JobError, match=r"^the rest is damaged$"):
        store.write_all("log/one", parts())
    if store._renames:
        assert store.all_names("log") == []


def test_only_the_parts_that_are_read_are_in_memory(tmp_path: Path) -> None:
    store, size = Store(str(tmp_path)), 1 << 26
    store.write("large", bytes(size))
    file = store.open("large")
    before = resident()
    parts = [file.read(offset, 1 << 16) for offset in range(0, size, 1 << 23)]
    assert all(part.to_pybytes() == bytes(1 << 16) for part in parts)
    assert resident() - before < size // 4, "only pages near those that were read"
    del parts
    for offset in range(0, size, 1 << 20):
        assert not any(file.read(offset, 1 << 20).to_pybytes())
    assert resident() - before < size // 4, "parts that are not used any more are not mapped"


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
