"""The list probe, expiry and time intervals beside plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.kernels import scan
from eddyline.plan.bounds import UNBOUND

NO_TIME = np.empty(0, np.int64)


def probe_all(times, low, high, before, min_live, tuples, room) -> list[tuple[int, int]]:
    found, at, chain = [], 0, -1
    while at < tuples:
        out_tuple, out_row = np.full(room, -9), np.full(room, -9)
        n, at, chain = scan.probe(times, low, high, before, min_live, tuples, at, chain, out_tuple, out_row)
        found += zip(out_tuple[:n].tolist(), out_row[:n].tolist(), strict=True)
    return found


@pytest.mark.parametrize("room", [1, 2, 500])
def test_probe_as_two_loops(room: int) -> None:
    rng = np.random.default_rng(room)
    for _ in range(100):
        n, tuples = int(rng.integers(0, 12)), int(rng.integers(0, 6))
        times = rng.integers(-9, 9, n)
        low = rng.integers(-12, 9, tuples) if rng.random() < 0.7 else NO_TIME
        high = low + rng.integers(-1, 12)
        before, min_live = int(rng.integers(0, n + 1)), int(rng.integers(0, n + 1))
        twin = [
            (i, row)
            for i in range(tuples)
            for row in range(min_live, before)
            if not low.size or low[i] <= times[row] <= high[i]
        ]
        assert probe_all(times, low, high, before, min_live, tuples, room) == twin


def test_first_at_least() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        n = int(rng.integers(0, 10))
        values = rng.integers(-5, 5, n)
        first, last = sorted(rng.integers(0, n + 1, 2).tolist())
        bound = int(rng.choice([-(2**62), -3, 0, 3, 2**62]))
        twin = next((r for r in range(first, last) if values[r] >= bound), last)
        assert scan.first_at_least(values, first, last, bound) == twin


def test_narrow_as_numpy_and_without_overflow_at_the_largest_times() -> None:
    rng = np.random.default_rng(2)
    for _ in range(100):
        times = rng.integers(-(2**60), 2**60 + 1, 8)
        times[:2] = [-(2**60), 2**60]
        rows = rng.integers(0, 8, 5)
        back, on = (int(rng.choice([-UNBOUND, -5, 0, 7, UNBOUND])) for _ in range(2))
        low, high = np.full(5, -(2**63)), np.full(5, 2**63 - 1)
        low[0], high[0] = 3, 4
        exact_low = [max(int(low[i]), int(times[r]) - back) for i, r in enumerate(rows)]
        exact_high = [min(int(high[i]), int(times[r]) + on) for i, r in enumerate(rows)]
        scan.narrow(low, high, times, rows, back, on)
        assert low.tolist() == exact_low
        assert high.tolist() == exact_high
