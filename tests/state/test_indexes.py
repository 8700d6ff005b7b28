"""The two indexes over long lives: their size is bounded, and they are right after every release, wind-back and
renewal."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from eddyline.codec import packed, unpacked
from eddyline.state import hash_index
from eddyline.state.arena import Arena
from eddyline.state.column import Column, ColumnSnapshot
from eddyline.state.hash_index import HashIndex
from eddyline.state.probing import NO_BOUND, Limits, chunks
from eddyline.state.sorted_index import SortedIndex

NO_TIMES = np.empty(0, np.int64)


def limits(before: int | np.ndarray, min_live: int, room: int = 1 << 16) -> Limits:
    return Limits(NO_BOUND, NO_BOUND, np.atleast_1d(before), min_live, room, np.zeros(1, np.int64))


def pairs(matches) -> list[tuple[int, int]]:
    return sorted((int(t), int(r)) for tuples, rows in matches for t, r in zip(tuples, rows, strict=True))


Index = TypeVar("Index", HashIndex, SortedIndex)


def travelled(keys: Column, index: Index, kind: type[Index]) -> tuple[Column, Index]:
    """The same index, restored as in another process."""
    of_keys, of_index, held = packed(keys.saved()), index.saved(), index.nbytes
    used = index._used if isinstance(index, HashIndex) else None
    keys._arena.close()
    arena = Arena(keys._arena.folder)
    keys = Column(arena, "i8")
    index = kind(arena, keys)
    keys.restore(unpacked(of_keys, ColumnSnapshot))
    index.restore(unpacked(packed(of_index), type(of_index)))
    assert index.nbytes == held
    assert used is None or index._used == used
    return keys, index


def renewed(rng: np.random.Generator, keys: Column, index: HashIndex | SortedIndex, first: int, last: int) -> list[int]:
    """Some of the rows first..last-1 get the next numbers, and all others are forgotten; returns the new numbers
    first..last-1."""
    kept = first + np.flatnonzero(rng.random(last - first) < rng.choice([0.0, 0.1, 0.9]))
    numbers = np.full(last - first, -1)
    numbers[kept - first] = np.arange(last, last + kept.size)
    keys.retain(kept)
    index.renew(first, numbers, keys.rows)
    return [last, keys.rows]


def test_a_hash_index_over_ever_new_keys_stays_as_large_as_what_lives() -> None:
    arena = Arena()
    keys = Column(arena, "i8")
    index = HashIndex(arena, keys)
    live, step, sizes, on_host = 2000, 500, [], []
    for first in range(0, 400_000, step):
        last = first + step
        keys.append(np.arange(first, last) * 7)
        floor = max(0, first - live)
        index.build(first, last, floor)
        index.release(floor)
        keys.release(floor)
        sizes.append(len(index._table))
        on_host.append(arena.bytes)
        if first % 20_000 == 0:
            asked = np.arange(floor, last)
            found = pairs(index.probe(keys.values, asked, NO_TIMES, limits(last, floor)))
            assert found == [(i, floor + i) for i in range(asked.size)]
    assert max(sizes[20:]) <= 4 * (live + step)
    assert index.nbytes <= 16 * 4 * (live + step) + 8 * (live + 2 * step)
    assert max(on_host[20:]) <= 3 * min(on_host[20:])
    assert np.mean(on_host[-100:]) <= 1.2 * np.mean(on_host[20:120])


def test_a_table_that_is_no_longer_needed_is_given_back() -> None:
    arena = Arena()
    keys = Column(arena, "i8")
    index, many = HashIndex(arena, keys), 300_000
    keys.append(np.arange(many))
    index.build(0, many, 0)
    large = arena.bytes
    for first in range(many, many + 400_000, 100_000):
        keys.append(np.arange(first, first + 100_000))
        keys.release(first)
        index.release(first)
        index.build(first, first + 100_000, first)
    assert arena.bytes < 0.6 * large


def test_one_key_for_ever_needs_no_larger_table() -> None:
    arena = Arena()
    keys = Column(arena, "i8")
    index = HashIndex(arena, keys)
    for first in range(0, 50_000, 100):
        keys.append(np.full(100, 3))
        index.build(first, first + 100, max(0, first - 100))
    assert len(index._table) <= 4 * hash_index.SMALLEST


def test_a_hash_index_wound_back_at_any_point(tmp_path: Path) -> None:
    """Undone batches may make the table grow. Exactly the keys that had expired by the last commit are removed. Now and
    then the index is restored as in another process."""
    rng = np.random.default_rng(5)
    for life in range(20):
        arena = Arena(str(tmp_path / str(life)))
        keys = Column(arena, "i8")
        index, rows, floor = HashIndex(arena, keys), 0, 0
        for _ in range(20):
            committed = rows
            for _ in range(int(rng.integers(1, 4))):
                n = int(rng.choice([1, 30, 400]))
                keys.append(rng.integers(-300, 300, n) * int(rng.choice([1, 2**40])))
                index.build(rows, rows + n, floor)
                rows += n
            if rng.random() < 0.5:
                keys, index = travelled(keys, index, HashIndex)
            if rng.random() < 0.5:
                index.pop(committed)
                keys.truncate(committed)
                rows = committed
            else:
                floor = int(rng.integers(floor, rows + 1))
                index.release(floor)
                keys.release(floor)
                if rng.random() < 0.3:
                    floor, rows = renewed(rng, keys, index, floor, rows)
            values = keys.values[floor:rows]
            asked, same = np.arange(floor, rows), np.argwhere(values[:, None] == values[None, :])
            found = pairs(index.probe(keys.values, asked, NO_TIMES, limits(rows, floor, 77)))
            assert found == sorted((int(i), int(j) + floor) for i, j in same)
            if asked.size > 1:  # each probes for the rows before it
                found = pairs(index.probe(keys.values, asked, NO_TIMES, limits(asked, floor, 77)))
                assert found == sorted((int(i), int(j) + floor) for i, j in same if j < i)


@pytest.mark.parametrize("seed", range(6))
def test_a_sorted_index_beside_brute_force(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    arena = Arena(str(tmp_path))
    keys = Column(arena, "i8")
    index, rows, committed, floor = SortedIndex(arena, keys), 0, 0, 0
    for _ in range(60):
        for _ in range(int(rng.integers(1, 4))):
            n = int(rng.choice([1, 2, 40, 200]))
            keys.append(rng.integers(-50, 50, n) * int(rng.choice([1, 2**50])))
            index.build(rows, rows + n, floor)
            rows += n
        if rng.random() < 0.3:
            keys, index = travelled(keys, index, SortedIndex)
        if rng.random() < 0.4:
            index.pop(committed)
            keys.truncate(committed)
            rows = committed
        elif rng.random() < 0.8:
            committed, floor = rows, int(rng.integers(floor, rows + 1))
            index.release(floor)
            keys.release(floor)
            if rng.random() < 0.3:
                floor, rows = renewed(rng, keys, index, floor, rows)
                committed = rows
        else:
            committed = rows
        least, most = rng.integers(-60, 60, 8), rng.integers(-60, 60, 8)
        min_live = int(rng.integers(floor, rows + 1))
        before = rng.integers(floor, rows + 1, 8)
        values = keys.values[floor:rows]
        wanted = [
            (i, r)
            for i in range(8)
            for r, key in enumerate(values.tolist(), floor)
            if least[i] <= key <= most[i] and min_live <= r < before[i]
        ]
        found = pairs(index.probe(least, most, NO_TIMES, limits(before, min_live, 13)))
        assert found == sorted(wanted)


def test_a_sorted_index_moves_rows_seldom_and_forgets_the_dead() -> None:
    arena = Arena()
    keys = Column(arena, "i8")
    index = SortedIndex(arena, keys)
    rng = np.random.default_rng(8)
    sizes, runs = [], []
    for first in range(0, 100_000, 100):
        keys.append(rng.integers(0, 1000, 100))
        floor = max(0, first - 2000)
        index.build(first, first + 100, floor)
        index.release(floor)
        keys.release(floor)
        sizes.append(index.nbytes // 16)
        runs.append(len(index._runs))
    assert max(sizes) <= 3 * 2200
    assert max(runs) <= 14


def test_matches_come_in_pieces_of_room() -> None:
    arena = Arena()
    keys = Column(arena, "i8")
    keys.append(np.full(1000, 5))
    index = HashIndex(arena, keys)
    index.build(0, 1000, 0)
    pieces = [rows.size for _, rows in index.probe(keys.values, np.arange(10), NO_TIMES, limits(1000, 0, 300))]
    assert sum(pieces) == 10_000 and max(pieces) <= 300 and len(pieces) < 60


def test_chunks_of_no_tuples_and_of_no_matches() -> None:
    def never(at, cursor, out_tuple, out_row):
        raise AssertionError("asked for nothing")

    assert list(chunks(never, 0, -1, 10)) == []
    assert list(chunks(lambda at, cursor, a, b: (0, 5, -1), 5, -1, 10)) == []
