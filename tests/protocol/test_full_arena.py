"""If the folder of arenas is full, the job stops with an error, not a signal, and continues from its checkpoint in
another folder."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import pytest

from eddyline import faults
from eddyline.errors import JobError
from tests.support.durable_world import Row, World

UNBOUNDED = "UNBOUNDED", "UNBOUNDED"
ROWS = 5000
SENTENCE = (
    r"{place} is full \([\d.]+ (bytes|KB|MB|GB) free of [\d.]+ [MG]B\): the state of slot 0 takes [\d.]+ [KM]B and"
    r" needs [\d.]+ [KM]B more; set arena_dir to a folder with more room, or make windows smaller; .*arena_limit.*"
)


def batch(number: int) -> list[Row]:
    """Rows of `a`, each with its own key."""
    return [(number * ROWS + row, number * ROWS + row) for row in range(ROWS)]


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    yield
    faults.inject(None)


def test_a_reservation_fails(tmp_path: Path) -> None:
    world, reached = World(tmp_path, UNBOUNDED), list[str]()
    world.batch(a=batch(0))

    def strike(point: str) -> None:
        reached.append(point)
        if point == "arena: pages are reserved" and "turn: everything was received" in reached:
            raise OSError(errno.ENOSPC, "No space left on device")

    faults.inject(strike)
    with pytest.raises(JobError, match=SENTENCE.format(place=re.escape(str(tmp_path)))):
        world.batch(a=batch(1))
    faults.inject(None)
    assert not (tmp_path / "host" / "0").exists(), "the state of a turn that failed is dropped"
    again = World(tmp_path, UNBOUNDED, sink=world.sink)
    again.batch(a=batch(1))
    again.batch(b=[(2 * ROWS, 7), (2 * ROWS, ROWS + 7)])
    assert [row[2] for row in again.results] == [7, ROWS + 7]


def fill(folder: Path, arenas: Path) -> tuple[int, str]:
    """Run batches until there is no room; returns how many were committed, and the error."""
    world = World(folder, UNBOUNDED, host=str(arenas))
    for number in count():
        try:
            world.batch(a=batch(number))
        except JobError as error:
            return number, str(error)
    raise AssertionError


def test_a_folder_in_memory_is_full(tmp_path: Path, small_folder: Path) -> None:
    """Runs in a process of its own, because a signal might end it."""
    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        done, said = other.submit(fill, tmp_path, small_folder / "job").result()
    assert done >= 2
    assert re.fullmatch(SENTENCE.format(place=re.escape(str(small_folder))), said)
    assert list((small_folder / "job").iterdir()) == [], "the arena of a failed turn is removed"
    world = World(tmp_path, UNBOUNDED, host="other folder")
    world.batch(a=batch(done))
    last = (done + 1) * ROWS
    world.batch(b=[(last, 0), (last, last - 1)])
    assert [row[2] for row in world.results] == [0, last - 1]
