"""Columns: rows keep their numbers and values whatever is released, moved, truncated or handed to another process."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.state import column as module
from eddyline.state.arena import Arena
from eddyline.state.column import Column
from tests.properties import examples

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3000)),
        st.tuples(st.just("release"), st.floats(0, 1)),
        st.tuples(st.just("truncate"), st.floats(0, 1)),
        st.tuples(st.just("hand over"), st.none()),
    ),
    max_size=20,
)


@examples(100)
@given(STEPS, st.sampled_from([0, 1 << 13]), st.sampled_from([("i8", 1), ("u1", 1), ("i4", 3)]))
def test_any_steps(steps: list[tuple[str, float]], small: int, kind: tuple[str, int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SMALL", small)
        arena = Arena()
        column, base = Column(arena, *kind), 0
        rng = np.random.default_rng(1)
        model = np.empty((0, kind[1]), kind[0])
        for step, how in steps:
            if step == "append":
                new = rng.integers(0, 100, (int(how), kind[1])).astype(kind[0])
                column.append(new if kind[1] > 1 else new[:, 0])
                model = np.concatenate([model, new])
            elif step == "release":
                base += int(how * (len(model) - base))
                column.release(base)
            elif step == "truncate":
                model = model[: base + int(how * (len(model) - base))]
                column.truncate(len(model))
            elif len(model):
                saved, column = column.saved(), Column(arena, *kind)
                column.restore(saved)
            assert column.rows == len(model)
            if len(model) > base:
                assert np.array_equal(column.values[base : column.rows].reshape(-1, kind[1]), model[base:])


def test_pages_are_used_again_and_given_back(tmp_path: Path) -> None:
    arena = Arena(str(tmp_path / "arena"))
    column, rows = Column(arena, "i8"), 1 << 20
    sizes = []
    for number in range(5):
        column.append(np.arange(rows) + number)
        column.release(column.rows - 1000)
        sizes.append(arena.bytes)
        saved, column = column.saved(), Column(arena, "i8")
        column.restore(saved)
        assert np.array_equal(column.values[column.rows - 1000 : column.rows], np.arange(rows)[-1000:] + number)
    assert len(set(sizes[1:])) == 1 and sizes[-1] <= 1.1 * 8 * rows  # no more than one round takes
    column.append(np.arange(1000))
    column.release(column.rows - 1500)  # little comes any more: nothing is kept for what might
    assert arena.bytes <= 8 * 2000 + 4 * mmap.PAGESIZE
    assert np.array_equal(column.values[column.rows - 1000 : column.rows], np.arange(1000))
    arena.close()
