"""The list probe, expiry, time intervals and distances beside plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.kernels import scan
from eddyline.plan.bounds import UNBOUND

NO_TIME = np.empty(0, np.int64)


def limits_before(rng: np.random.Generator, first: int, last: int, tuples: int) -> np.ndarray:
    """For each tuple the number of rows before it, or one number for all tuples."""
    return rng.integers(first, last + 1, tuples if rng.random() < 0.6 and tuples else 1)


def of_tuple(before: np.ndarray, i: int) -> int:
    return int(before[i if before.size > 1 else 0])


def probe_all(times, low, high, before, min_live, passed, tuples, room) -> list[tuple[int, int]]:
    found, at, chain = [], 0, -1
    while at < tuples:
        out_tuple, out_row = np.full(room, -9), np.full(room, -9)
        n, at, chain = scan.probe(times, low, high, before, min_live, passed, tuples, at, chain, out_tuple, out_row)
        assert n <= room and (out_tuple[n:] == -9).all()
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
        before, min_live = limits_before(rng, 0, n, tuples), int(rng.integers(0, n + 1))
        seen = [(i, row) for i in range(tuples) for row in range(min_live, of_tuple(before, i))]
        twin = [(i, row) for i, row in seen if not low.size or low[i] <= times[row] <= high[i]]
        too_new = sum(1 for i, row in seen if low.size and times[row] > high[i])
        passed = np.array([5])
        assert probe_all(times, low, high, before, min_live, passed, tuples, room) == twin
        assert passed.tolist() == [5 + too_new]


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
        own_low, own_high = [int(times[r]) - back for r in rows], [int(times[r]) + on for r in rows]
        exact_low = [max(int(a), b) for a, b in zip(low, own_low, strict=True)]
        exact_high = [min(int(a), b) for a, b in zip(high, own_high, strict=True)]
        scan.narrow(low, high, times, rows, back, on, False)
        assert (low.tolist(), high.tolist()) == (exact_low, exact_high)
        scan.narrow(low, high, times, rows, back, on, True)
        assert (low.tolist(), high.tolist()) == (own_low, own_high)


def test_apart_as_numpy_and_without_overflow_at_the_largest_times() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        times, others = rng.integers(-9, 9, 8), rng.integers(-9, 9, 6)
        if rng.random() < 0.3:
            times[:2], others[:2] = [-(2**60), 2**60], [2**60, -(2**60)]
        rows, other_rows = rng.integers(0, 8, 20), rng.integers(0, 6, 20)
        most, other_most = (int(rng.choice([-UNBOUND, -2, 0, 3, 7, UNBOUND])) for _ in range(2))
        keep = rng.random(20) < 0.8
        later = times[rows].astype(object) - others[other_rows].astype(object)
        twin = keep & np.array([d <= most and -d <= other_most for d in later])
        scan.apart(keep, times, rows, others, other_rows, most, other_most)
        assert keep.tolist() == twin.tolist()
    scan.apart(np.empty(0, np.bool_), NO_TIME, NO_TIME, NO_TIME, NO_TIME, 0, 0)
