"""The chained hash index beside a dictionary of lists."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from eddyline.kernels import hash_index as kernels

BLOCK = 7
NO_TIME = np.empty(0, np.int64)
EXTREMES = np.array([0, -1, 1, -(2**63), 2**63 - 1, 2**62, -2, 2**32, -(2**32)])


def empty_table(slots: int) -> np.ndarray:
    table = np.zeros((slots, 2), np.int64)
    table[:, kernels.HEAD] = kernels.EMPTY
    return table


class Twin:
    """key -> rows, oldest first."""

    def __init__(self) -> None:
        self.rows: dict[int, list[int]] = defaultdict(list)

    def build(self, keys: np.ndarray, first: int, last: int) -> None:
        for row in range(first, last):
            self.rows[int(keys[row])].append(row)

    def pop(self, keys: np.ndarray, first: int, last: int) -> None:
        for row in reversed(range(first, last)):
            assert self.rows[int(keys[row])].pop() == row

    def probe(self, keys, rows, times, low, high, before, min_live) -> tuple[list[tuple[int, int]], int]:
        """The matches, and the number of live rows that were too new to match."""
        matches, too_new = [], 0
        for i in range(rows.size):
            end = before[i] if before.size > 1 else before[0]
            for row in reversed(self.rows[int(keys[rows[i]])]):
                if row < min_live:
                    continue
                if row >= end or (low.size and times[row] > high[i]):
                    too_new += 1
                elif not low.size or low[i] <= times[row]:
                    matches.append((i, row))
        return matches, too_new


def probe_all(
    table, after, times, keys, rows, low, high, before, min_live, passed, room, newest=NO_TIME, together=3
) -> list[tuple[int, int]]:
    """All matches in order; the kernel is called repeatedly with output arrays of size `room`."""
    low, high = (low, high) if low.size else (np.array([-(2**63)]), np.array([2**63 - 1]))
    found, at, chains, waiting = [], 0, 0, np.full(2 * together + 1, -9)
    while at < rows.size:
        out_tuple, out_row = np.full(room + 1, -9), np.full(room + 1, -9)
        bounds = low, high, before, min_live, newest, BLOCK
        to = out_tuple[:room], out_row[:room]
        n, at, chains = kernels.probe(table, after, times, keys, rows, *bounds, passed, waiting[:-1], at, chains, *to)
        assert all(type(number) is int for number in (n, at, chains))  # no float crept in
        assert n <= room and chains <= together and out_tuple[room] == out_row[room] == waiting[-1] == -9
        found += zip(out_tuple[:n].tolist(), out_row[:n].tolist(), strict=True)
    return sorted(found, key=lambda match: (match[0], -match[1]))


def newest_times(times: np.ndarray) -> np.ndarray:
    """The newest time up to the end of each whole block of rows."""
    return np.maximum.accumulate(times)[BLOCK - 1 :: BLOCK]


def test_chains_end_where_all_rows_before_are_too_old() -> None:
    """All rows have one key; rows in blocks that are too old would match if the kernel looked at them."""
    rows, passed = 10 * BLOCK, np.zeros(1, np.int64)
    times, keys, table, after = np.arange(rows), np.zeros(rows, np.int64), empty_table(8), np.zeros(rows, np.int64)
    kernels.build(table, after, keys, 0, rows)
    newest, times[: 9 * BLOCK] = newest_times(times), rows - 4
    low = np.array([rows - 4, rows - 5, rows - 3])
    for together in (1, 2, 3):
        passed[0] = 0
        args = (table, after, times, keys, np.zeros(3, np.int64), low, low, np.array([rows]), 0, passed, 1000)
        assert probe_all(*args, newest, together) == list(enumerate(low.tolist()))
        assert passed[0] == 3 + 4 + 2  # rows that are too new are visited


def random_keys(rng: np.random.Generator, n: int, kind: str) -> np.ndarray:
    if kind == "few":
        return rng.integers(-3, 3, n)
    if kind == "extreme":
        return EXTREMES[rng.integers(0, EXTREMES.size, n)]
    if kind == "floats":
        return rng.integers(0, 50, n).astype(np.float64).view(np.int64)
    return rng.integers(-(2**63), 2**63 - 1, n)


@pytest.mark.parametrize("kind", ["few", "extreme", "floats", "many"])
@pytest.mark.parametrize("room", [1, 3, 1000])
def test_builds_pops_and_refills_as_the_twin(kind: str, room: int) -> None:
    rng = np.random.default_rng([len(kind), room])
    for _ in range(15):
        n = 300
        keys, times, after = random_keys(rng, n, kind), rng.integers(-20, 20, n), np.full(n, -7)
        table, used, twin, rows, floor = empty_table(n + 3), 0, Twin(), 0, 0
        for _ in range(12):
            doing = rng.choice(["build", "pop", "fill", "probe"])
            if doing == "build":
                last = min(n, rows + int(rng.integers(0, 60)))
                used += kernels.build(table, after, keys, rows, last)
                twin.build(keys, rows, last)
                rows = last
            elif doing == "pop":
                first = int(rng.integers(floor, rows + 1))
                kernels.pop(table, after, keys, first, rows)
                twin.pop(keys, first, rows)
                rows = first
            elif doing == "fill":
                floor = int(rng.integers(floor, rows + 1))
                live = sum(1 for r in twin.rows.values() if r and r[-1] >= floor)
                found = np.empty((used + 1, 2), np.int64)
                assert kernels.living(table, floor, found) == live
                table = table if rng.random() < 0.5 else empty_table(n + int(rng.integers(1, 90)))
                kernels.fill(table, found[:live])
                used = live
                twin.rows = defaultdict(list, {k: r for k, r in twin.rows.items() if r and r[-1] >= floor})
            assert used == np.count_nonzero(table[:, kernels.HEAD] != kernels.EMPTY)
            asked = rng.integers(0, n, 20)
            low = rng.integers(-25, 10, 20) if rng.random() < 0.7 else NO_TIME
            high = low + 15
            before = rng.integers(0, rows + 1, 20 if rng.random() < 0.6 else 1)
            min_live, passed = int(rng.integers(floor, rows + 1)), np.zeros(1, np.int64)
            args, together = (table, after, times, keys, asked, low, high, before, min_live), int(rng.integers(1, 25))
            found = probe_all(*args, passed, room, together=together)
            expected, too_new = twin.probe(keys, asked, times, low, high, before, min_live)
            assert (found, passed[0]) == (expected, too_new)
            if low.size:
                passed[0] = 0
                assert probe_all(*args, passed, room, newest_times(times[:rows]), together) == expected
                assert passed[0] <= too_new


def test_no_tuples_and_an_empty_table() -> None:
    table, none, passed = empty_table(8), np.empty(0, np.int64), np.zeros(1, np.int64)
    nothing = probe_all(table, none, none, none, none, none, none, np.array([5]), 0, passed, 1)
    assert nothing == []
    keys = np.array([5, 5])
    found = probe_all(table, none, none, keys, np.array([0, 1]), none, none, np.array([9, 9]), 0, passed, 4)
    assert found == [] and passed[0] == 0
    assert kernels.build(table, none, keys, 0, 0) == 0
    assert kernels.living(table, 0, np.empty((1, 2), np.int64)) == 0


def test_a_table_without_a_free_slot_to_spare_wraps_round() -> None:
    """Open addressing runs over the end of the table: 7 of 8 slots taken, whatever the keys."""
    rng, all_rows, passed = np.random.default_rng(3), np.arange(7), np.zeros(1, np.int64)
    times = np.zeros(7, np.int64)
    for _ in range(200):
        keys = rng.integers(-(2**63), 2**63 - 1, 7)
        table, after, before = empty_table(8), np.zeros(7, np.int64), np.array([7])
        assert kernels.build(table, after, keys, 0, 7) == 7
        found = probe_all(table, after, times, keys, all_rows, NO_TIME, NO_TIME, before, 0, passed, 2)
        assert found == [(i, i) for i in range(7)]
        kernels.pop(table, after, keys, 2, 7)
        found = probe_all(table, after, times, keys, all_rows, NO_TIME, NO_TIME, before, 0, passed, 2)
        assert found == [(0, 0), (1, 1)]


@pytest.mark.parametrize(
    "keys",
    [
        np.arange(1000),
        -np.arange(1000),
        np.arange(1000.0).view(np.int64),
        np.arange(0, 1000 * 1_000_000, 1_000_000),
        np.arange(1000) << 32,
        np.arange(1000) << 48,
        np.linspace(0, 1, 1000).view(np.int64),
    ],
    ids=["ints", "negative", "whole floats", "seconds", "high half", "high bits", "floats"],
)
def test_usual_keys_are_spread_over_the_table(keys: np.ndarray) -> None:
    """A hash that maps regular keys to neighbouring slots would make every lookup a scan."""
    table, after = empty_table(2000), np.zeros(keys.size, np.int64)
    kernels.build(table, after, keys, 0, keys.size)
    taken = table[:, kernels.HEAD] != kernels.EMPTY
    edges = np.flatnonzero(np.diff(np.concatenate([[False], taken, [False]]).astype(np.int8)))
    longest = int((edges[1::2] - edges[::2]).max())
    assert longest < 200


def test_keys_that_have_no_live_row() -> None:
    random, table, after = np.random.default_rng(5), empty_table(64), np.empty(40, np.int64)
    keys = np.concatenate([EXTREMES, random.integers(0, 20, 31)])
    kernels.build(table, after, keys, 0, 30)
    rows, out = random.integers(0, 40, 200), np.empty(201, np.int64)
    for min_live in (-1, 0, 7, 30):
        there = {int(key) for row, key in enumerate(keys[:30]) if row >= min_live}
        expected = [i for i, row in enumerate(rows) if int(keys[row]) not in there]
        assert out[: kernels.lacking(table, keys, rows, min_live, out)].tolist() == expected
    kernels.pop(table, after, keys, 0, 30)
    assert kernels.lacking(table, keys, rows, 0, out) == rows.size
    assert kernels.lacking(table, keys, rows[:0], 0, out) == 0
