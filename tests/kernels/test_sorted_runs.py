"""The range probe of one sorted run beside two loops."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.kernels import sorted_runs

NO_TIME = np.empty(0, np.int64)
LEAST, MOST = -(2**63), 2**63 - 1


def probe_all(keys, key_rows, times, least, most, low, high, before, min_live, passed, room) -> list[tuple[int, int]]:
    found, at, place = [], 0, -1
    while at < least.size:
        out_tuple, out_row = np.full(room, -9), np.full(room, -9)
        n, at, place = sorted_runs.probe(
            keys, key_rows, times, least, most, low, high, before, min_live, passed, at, place, out_tuple, out_row
        )
        assert n <= room and (out_tuple[n:] == -9).all()
        found += zip(out_tuple[:n].tolist(), out_row[:n].tolist(), strict=True)
    return found


@pytest.mark.parametrize("room", [1, 2, 500])
def test_probe_as_two_loops(room: int) -> None:
    rng = np.random.default_rng(room)
    for _ in range(200):
        n, tuples = int(rng.integers(0, 15)), int(rng.integers(0, 5))
        values = rng.integers(-4, 4, n)
        values[rng.random(n) < 0.1] = MOST
        values[rng.random(n) < 0.1] = LEAST
        key_rows = np.argsort(values, kind="stable") + 100
        keys, times = values[key_rows - 100], rng.integers(-9, 9, 100 + n)
        least, most = rng.integers(-5, 5, tuples), rng.integers(-5, 5, tuples)
        least[rng.random(tuples) < 0.2] = LEAST
        most[rng.random(tuples) < 0.2] = MOST
        low = rng.integers(-12, 9, tuples) if rng.random() < 0.6 else NO_TIME
        high = low + 10
        each = bool(tuples) and rng.random() < 0.6
        before = 100 + rng.integers(0, n + 1, tuples if each else 1)
        min_live = 100 + int(rng.integers(0, n + 1))
        twin, too_new = [], 0
        for i in range(tuples):
            for key, row in zip(keys, key_rows.tolist(), strict=True):
                if least[i] <= key <= most[i]:
                    new = row >= before[i if each else 0] or (low.size and times[row] > high[i])
                    too_new += bool(new)
                    if not new and row >= min_live and (not low.size or low[i] <= times[row]):
                        twin.append((i, row))
        passed = np.zeros(1, np.int64)
        assert probe_all(keys, key_rows, times, least, most, low, high, before, min_live, passed, room) == twin
        assert passed[0] == too_new


def test_a_range_that_holds_nothing_finds_nothing_even_at_the_ends() -> None:
    keys, rows = np.array([LEAST, 0, MOST]), np.arange(3)
    before, passed = np.array([3]), np.zeros(1, np.int64)
    empty = probe_all(keys, rows, NO_TIME, np.array([MOST]), np.array([LEAST]), NO_TIME, NO_TIME, before, 0, passed, 1)
    assert empty == []
