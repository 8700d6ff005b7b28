"""The arena returns memory to the operating system, and columns keep absolute row numbers for ever."""

from __future__ import annotations

import fcntl
import mmap
import os
import resource
import signal
from pathlib import Path

import numpy as np
import pytest

from eddyline.errors import InternalError, JobError
from eddyline.state.arena import REGION, REGIONS, Arena, punch, remove
from eddyline.state.column import FIRST_ROWS, Column

PAGE = mmap.PAGESIZE


def test_a_region_costs_nothing_until_it_is_written() -> None:
    arena = Arena()
    window, _ = arena.map(arena.region(), 0, 64 << 20)
    assert window.size == 64 << 20
    before = arena.bytes
    window[: 10 * PAGE] = 1
    assert 10 * PAGE <= arena.bytes - before <= 12 * PAGE


def test_regions_do_not_touch_each_other() -> None:
    arena = Arena()
    one, two = arena.region(), arena.region()
    (first, _), (second, _) = arena.map(one, 0, PAGE), arena.map(two, 0, PAGE)
    first[:], second[:] = 1, 2
    assert (first == 1).all() and (second == 2).all()


def test_punching_gives_whole_pages_back_and_zeroes_them() -> None:
    arena = Arena()
    window, mapping = arena.map(arena.region(), 0, 8 * PAGE)
    window[:] = 7
    full = arena.bytes
    punch(mapping, 1, 6 * PAGE - 1)
    assert full - arena.bytes == 4 * PAGE
    assert window[PAGE - 1] == 7 and not window[PAGE : 5 * PAGE].any() and window[5 * PAGE] == 7
    punch(mapping, PAGE + 1, PAGE + 2)
    punch(mapping, 0, 0)
    assert window[0] == 7


def test_an_array_keeps_its_mapping_alive_when_the_arena_is_gone() -> None:
    arena = Arena()
    window, mapping = arena.map(arena.region(), 0, PAGE)
    window[:] = 9
    arena.close()
    del arena, mapping
    assert (window == 9).all()


def test_an_arena_in_a_folder_is_there_for_the_next_one(tmp_path: Path) -> None:
    folder = str(tmp_path / "arena")
    arena = Arena(folder)
    for value in (5, 6):
        window, _ = arena.map(arena.region(), 0, PAGE)
        window[:] = value
    arena.close()
    again = Arena(folder)
    for value in (5, 6):
        window, _ = again.map(again.region(), 0, PAGE)
        assert (window == value).all()


def test_a_folder_has_one_owner_at_a_time(tmp_path: Path) -> None:
    folder = str(tmp_path / "arena")
    arena = Arena(folder)
    with pytest.raises(JobError, match="in use by another process"):
        Arena(folder)
    with pytest.raises(JobError, match="in use"):
        remove(folder)
    arena.close()
    Arena(folder).close()


def test_the_lock_of_a_folder_that_was_removed_is_worth_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening the folder and locking it, another process removes the arena and makes it again."""
    folder, flock, seen = str(tmp_path / "arena"), fcntl.flock, []
    Arena(folder).close()

    def slow(fd: int, operation: int) -> None:
        if not seen:
            seen.append(fd)
            remove(folder)
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", slow)
    arena = Arena(folder)
    monkeypatch.undo()
    with pytest.raises(JobError, match="in use"):
        Arena(folder)
    arena.close()


def test_an_arena_is_removed_with_all_its_files(tmp_path: Path) -> None:
    folder = str(tmp_path / "arena")
    remove(folder)
    arena = Arena(folder)
    window, _ = arena.map(arena.region(), 0, PAGE)
    window[:] = 1
    arena.close()
    remove(folder)
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_a_folder_may_have_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables are looked up where the arena is used."""
    for host in ("one", "two"):
        (tmp_path / host).mkdir()
        monkeypatch.setenv("EXECUTOR_DIR", str(tmp_path / host))
        arena = Arena("$EXECUTOR_DIR/0")
        assert arena.folder == f"{tmp_path}/{host}/0"
        arena.close()
    remove("$EXECUTOR_DIR/0")
    assert not (tmp_path / "two/0").exists() and (tmp_path / "one/0").exists()
    monkeypatch.delenv("EXECUTOR_DIR")
    with pytest.raises(JobError, match=r"arenas is \$EXECUTOR_DIR/0, but its environment variable is not set"):
        Arena("$EXECUTOR_DIR/0")


def test_an_arena_is_made_only_where_the_folder_of_the_job_is(tmp_path: Path) -> None:
    """A worker that starts after the end of the job leaves nothing."""
    with pytest.raises(JobError, match="was removed: the job has ended"):
        Arena(str(tmp_path / "job" / "0"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755])
def test_a_folder_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0").chmod(mode)
    with pytest.raises(JobError, match="must belong to this user alone"):
        Arena(str(tmp_path / "0"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir(0o700)
    os.chown(tmp_path / "0", 65534, 65534)
    with pytest.raises(JobError, match="must belong to this user alone"):
        Arena(str(tmp_path / "0"))


def test_links_are_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir(0o700)
    (tmp_path / "0").symlink_to(victim)
    with pytest.raises(JobError, match="is a link or a file"):
        Arena(str(tmp_path / "0"))
    arena = Arena(str(tmp_path / "1"))
    (victim / "file").write_text("precious")
    (tmp_path / "1" / "0").symlink_to(victim / "file")
    with pytest.raises(JobError, match=r"cannot keep state in .*1: Too many levels of symbolic links"):
        arena.map(arena.region(), 0, PAGE)
    assert (victim / "file").read_text() == "precious"
    arena.clear()
    assert (victim / "file").read_text() == "precious"


def test_a_cleared_arena_begins_anew(tmp_path: Path) -> None:
    arena = Arena(str(tmp_path))
    window, _ = arena.map(arena.region(), 0, 64 * PAGE)
    window[:] = 1
    assert arena.files == {"0": 64 * PAGE}
    assert 64 * PAGE <= arena.bytes <= 68 * PAGE
    arena.clear()
    assert arena.files == {} and arena.bytes <= PAGE
    assert (window == 1).all()
    again, _ = arena.map(arena.region(), 0, PAGE)
    assert not again.any()


def test_a_closed_arena_maps_nothing(tmp_path: Path) -> None:
    arena = Arena(str(tmp_path))
    arena.close()
    with pytest.raises(InternalError, match="closed"):
        arena.map(0, 0, PAGE)


def test_a_column_that_outgrows_its_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size limit of files depends on the file system; a process may also have a limit of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    arena = Arena(str(tmp_path))
    resource.setrlimit(resource.RLIMIT_FSIZE, (PAGE, hard))
    try:
        with pytest.raises(JobError, match=rf"cannot keep state in {tmp_path}: File too large: .* \(ulimit -f\)"):
            arena.map(arena.region(), 0, 2 * PAGE)
        monkeypatch.setattr("eddyline.state.arena.limit_of", lambda number: "")  # as if the file system had the limit
        with pytest.raises(JobError, match="outgrown its file"):
            arena.map(arena.region(), 0, 2 * PAGE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.parametrize("start", [0, 123_456])
def test_a_column_goes_on_in_another_arena_of_the_same_folder(tmp_path: Path, start: int) -> None:
    arena = Arena(str(tmp_path))
    columns = [Column(arena, "i8"), Column(arena, "u2", 3)]
    for column in columns:
        column.release(start)
        column.rows = start
        column.append(np.arange(30_000 * column._width).reshape(30_000, -1).squeeze().astype(column.values.dtype))
        column.release(start + 20_000)
    saved = [column.saved() for column in columns]
    wanted = [column.values[start + 20_000 : start + 30_000].copy() for column in columns]
    arena.close()
    arena = Arena(str(tmp_path))
    again = [Column(arena, "i8"), Column(arena, "u2", 3)]
    for column, of_column, values in zip(again, saved, wanted, strict=True):
        column.restore(of_column)
        assert (column.values[start + 20_000 : column.rows] == values).all()
        column.truncate(start + 25_000)
        column.append(values[:7])
        assert (column.values[start + 25_000 : start + 25_007] == values[:7]).all()
        before = arena.bytes
        column.release(column.rows)
        assert arena.bytes < before


def test_trimming_gives_back_what_was_truncated() -> None:
    arena = Arena()
    column = Column(arena, "i8")
    column.append(np.arange(100_000))
    column.truncate(1000)
    assert arena.bytes > 700_000
    column.trim()
    assert arena.bytes < 20_000 and column.values[:1000].tolist() == list(range(1000))


def test_a_column_stops_at_the_end_of_its_region_and_not_in_the_next() -> None:
    arena = Arena()
    column = Column(arena, "i8")
    column.release(REGION // 8 - 10)
    column.rows = REGION // 8 - 10
    with pytest.raises(JobError, match="outgrown"):
        column.append(np.arange(20))


def test_too_many_regions_are_refused() -> None:
    arena = Arena()
    for _ in range(REGIONS):
        arena.region()
    with pytest.raises(JobError, match="columns of state"):
        arena.region()


@pytest.mark.parametrize(
    ("dtype", "width"), [("i8", 1), ("u1", 1), ("u2", 1), ("u8", 2), ("u8", 4), ("u1", 3), ("u1", 7)]
)
@pytest.mark.parametrize("start", [0, 1, 123_456_789, 10**11])
def test_a_column_beside_a_plain_array(dtype: str, width: int, start: int) -> None:
    """Append, release and truncate at random, also with rows far from 0 and rows that straddle pages."""
    rng = np.random.default_rng([width, start % 97])
    column = Column(Arena(), dtype, width)
    column.release(start)
    column.rows = start
    shape = () if width == 1 else (width,)
    twin: dict[int, np.ndarray] = {}
    base = rows = start
    for _ in range(40):
        doing = rng.choice(["append", "append", "release", "truncate"])
        if doing == "append":
            n = int(rng.choice([0, 1, 50, 3000]))
            values = rng.integers(0, 250, (n, *shape)).astype(dtype)
            column.append(values)
            twin |= dict(zip(range(rows, rows + n), values, strict=True))
            rows += n
        elif doing == "release":
            base = int(rng.integers(base, rows + 1))
            column.release(base)
        else:
            rows = int(rng.integers(max(base, rows - 2000), rows + 1))
            column.truncate(rows)
        assert column.rows == rows
        assert column.nbytes == (rows - base) * np.dtype(dtype).itemsize * width
        seen = np.arange(base, rows)
        wanted = np.array([twin[r] for r in seen.tolist()], dtype).reshape((seen.size, *shape))
        assert (column.values[seen] == wanted).all()
        assert (column.values[base:rows] == wanted).all()


def test_views_from_before_a_growth_see_what_is_written_after_it() -> None:
    column = Column(Arena(), "i8")
    column.append(np.arange(10))
    old = column.values
    column.append(np.arange(10 * FIRST_ROWS))
    column.truncate(3)
    column.append(np.array([77]))
    assert old is not column.values
    assert old[3] == 77


def test_a_column_that_is_released_holds_only_what_lives() -> None:
    arena = Arena()
    column = Column(arena, "i8")
    peak = 0
    for i in range(300):
        column.append(np.full(5000, i))
        column.release(max(0, column.rows - 5000))
        peak = max(peak, arena.bytes)
    assert column.nbytes == 40_000
    assert peak < 4 * 40_000
    assert (column.values[column.rows - 5000 : column.rows] == 299).all()
    column.release(column.rows)
    assert column.nbytes == 0 and arena.bytes <= 2 * PAGE


def test_releasing_backwards_and_twice_is_harmless() -> None:
    column = Column(Arena(), "i8")
    column.append(np.arange(5000))
    column.release(3000)
    column.release(1000)
    column.release(3000)
    assert column.nbytes == 2000 * 8
    assert column.values[3000:5000].tolist() == list(range(3000, 5000))
