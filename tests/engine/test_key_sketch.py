"""The sketch of keys finds what has far more rows than others, and nothing else."""

from __future__ import annotations

import numpy as np

from eddyline.engine.key_sketch import KeySketch
from eddyline.plan.partition_groups import code_groups

GROUPS, SLOTS, ROWS = 256, 4, 100_000


def sketched(codes: np.ndarray, batches: int = 1) -> dict[int, int]:
    sketch = KeySketch(GROUPS, SLOTS)
    for some in np.array_split(codes, batches):
        sketch.add(0, some, code_groups(some, GROUPS))
    return {count.code: count.rows for count in sketch.take()}


def test_uniform_keys_have_none() -> None:
    assert sketched(np.random.default_rng(1).integers(0, 10_000, ROWS)) == {}


def test_a_hot_key_is_counted_in_all_batches() -> None:
    random = np.random.default_rng(2)
    codes = np.where(random.random(ROWS) < 0.2, 42, random.integers(0, 10_000, ROWS))
    for batches in (1, 7, 100):
        (counted,) = sketched(codes, batches).items()
        assert counted[0] == 42 and abs(counted[1] - 0.2 * ROWS) < 0.1 * 0.2 * ROWS


def test_what_was_taken_is_not_counted_again() -> None:
    sketch = KeySketch(GROUPS, SLOTS)
    sketch.add(0, np.zeros(100, np.int64), np.zeros(100, np.int64))
    assert len(sketch.take()) == 1 and sketch.take() == ()
