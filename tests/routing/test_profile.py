"""A profile keeps the newest samples and knows their age."""

from __future__ import annotations

import numpy as np

from eddyline.routing.profile import Profile
from eddyline.routing.tuning import DEFAULT

KEPT, ENOUGH = DEFAULT.profile_size, DEFAULT.profile_least


def rows(first: int, n: int) -> np.ndarray:
    return np.arange(first, first + n, dtype=float)[:, None] * np.ones(3)


def test_the_newest_samples_are_kept() -> None:
    made = Profile(3)
    assert made.size == 0 and made.age(50) == 0
    for i in range(0, 3 * KEPT, KEPT // 4):
        made.add(rows(i, KEPT // 4), i)
    assert made.size == KEPT and made.counts.shape == (KEPT, 3)
    assert made.counts[:, 1].tolist() == list(range(2 * KEPT, 3 * KEPT))
    assert made.moments.tolist() == [i // (KEPT // 4) * (KEPT // 4) for i in range(2 * KEPT, 3 * KEPT)]
    assert made.moment == 3 * KEPT - KEPT // 4


def test_samples_that_are_too_old_are_left_out() -> None:
    made = Profile(3)
    for moment in (100, 200, 300):
        made.add(rows(moment, 2), moment)
    counts, ages = made.newest(350, 150.0)
    assert counts[:, 0].tolist() == [200, 201, 300, 301] and ages.tolist() == [150, 150, 50, 50]
    assert made.newest(350, 10.0)[0].shape == (0, 3)
    assert made.newest(350, 1e9)[1].size == 6


def test_the_age_of_those_that_always_count() -> None:
    made = Profile(3)
    made.add(rows(0, 2), 100)
    assert made.age(150) == 50
    made.add(rows(0, ENOUGH - 1), 200)
    assert made.age(250) == 150
    made.add(rows(0, 1), 240)
    assert made.age(250) == 50
    made.add(rows(0, ENOUGH), 245)
    assert made.age(250) == 5
