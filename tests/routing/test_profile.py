"""A profile keeps the newest samples and knows how old they are."""

from __future__ import annotations

import numpy as np

from eddyline.routing.profile import ENOUGH, KEPT, Profile


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
