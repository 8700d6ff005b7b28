"""The arena gives bytes back to the operating system, and columns keep absolute row numbers for ever."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import pytest

from eddyline.errors import JobError
from eddyline.state.arena import REGION, REGIONS, Arena, punch
from eddyline.state.column import FIRST_ROWS, Column

PAGE = mmap.PAGESIZE


def bytes_on_host(arena: Arena) -> int:
    return os.fstat(arena._fd).st_blocks * 512


def test_a_region_costs_nothing_until_it_is_written() -> None:
    arena = Arena()
    window, _ = arena.map(arena.region(), 0, 64 << 20)
    assert window.size == 64 << 20
    before = bytes_on_host(arena)
    window[: 10 * PAGE] = 1
    assert 10 * PAGE <= bytes_on_host(arena) - before <= 12 * PAGE


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
    full = bytes_on_host(arena)
    punch(mapping, 1, 6 * PAGE - 1)
    assert full - bytes_on_host(arena) == 4 * PAGE
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


def test_an_arena_in_a_file_is_there_for_the_next_one(tmp_path: Path) -> None:
    path = str(tmp_path / "arena")
    window, _ = Arena(path).map(0, 0, PAGE)
    window[:] = 5
    again, _ = Arena(path).map(0, 0, PAGE)
    assert (again == 5).all()


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
    """Append, release and truncate at random; rows far from 0 as well, and rows that straddle pages."""
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
        peak = max(peak, bytes_on_host(arena))
    assert column.nbytes == 40_000
    assert peak < 4 * 40_000
    assert (column.values[column.rows - 5000 : column.rows] == 299).all()
    column.release(column.rows)
    assert column.nbytes == 0 and bytes_on_host(arena) <= 2 * PAGE


def test_releasing_backwards_and_twice_is_harmless() -> None:
    column = Column(Arena(), "i8")
    column.append(np.arange(5000))
    column.release(3000)
    column.release(1000)
    column.release(3000)
    assert column.nbytes == 2000 * 8
    assert column.values[3000:5000].tolist() == list(range(3000, 5000))
