"""Columns: rows keep their numbers and values, whatever is released, moved, truncated or handed to another process."""

from __future__ import annotations

import mmap
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.state import arena as arena_module
from eddyline.state.arena import Arena
from eddyline.state.column import Column
from eddyline.state.tuning import StateTuning
from tests.support.properties import examples

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
    arena = Arena(tuning=StateTuning(moved_bytes=small))
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
    assert len(set(sizes[1:])) == 1 and sizes[-1] <= 1.1 * 8 * rows  # no more than one round needs
    column.append(np.arange(1000))
    column.release(column.rows - 1500)  # few rows arrive now, so no pages are kept in reserve
    assert arena.bytes <= 8 * 2000 + 4 * mmap.PAGESIZE
    assert np.array_equal(column.values[column.rows - 1000 : column.rows], np.arange(1000))
    arena.close()


def test_pages_that_were_given_back_are_not_taken_again_by_a_move(tmp_path: Path) -> None:
    """Rows trickle through a column for a long time, so the beginning of its file is a large hole; then nearly all are
    released."""
    arena = Arena(str(tmp_path / "arena"))
    column, rows = Column(arena, "i8"), 1 << 16
    for number in range(40):
        column.append(np.full(rows, number))
        column.release(max(0, column.rows - 4 * rows))
    assert arena.bytes <= 1.2 * 8 * 4 * rows
    column.release(column.rows - 1000)
    assert arena.bytes <= 8 * 1000 + 4 * mmap.PAGESIZE
    assert (column.values[column.rows - 1000 : column.rows] == 39).all()
    arena.close()


@examples(60)
@given(STEPS, st.sampled_from([0, 1 << 13]), st.sampled_from([("i8", 1), ("u1", 1), ("i4", 3)]), st.booleans())
def test_pages_are_reserved_before_they_are_touched(
    steps: list[tuple[str, float]], small: int, kind: tuple[str, int], old_kernel: bool
) -> None:
    """After any steps: appending allocates no page, because `reserve` has allocated them before."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        if old_kernel:
            patch.setattr(arena_module, "_populated", lambda *where: False)
        arena = Arena(f"{folder}/arena", tuning=StateTuning(moved_bytes=small))
        column, base = Column(arena, *kind), 0
        append = Column.append

        def watched(column: Column, values: np.ndarray) -> None:
            column.reserve(column.rows + len(values))
            before = arena.bytes
            append(column, values)
            assert arena.bytes == before, "a page was not reserved"

        patch.setattr(Column, "append", watched)
        for step, how in steps:
            if step == "append":
                column.append(np.ones((int(how), kind[1]) if kind[1] > 1 else int(how), kind[0]))
            elif step == "release":
                base += int(how * (column.rows - base))
                column.release(base)
            elif step == "truncate":
                column.truncate(base + int(how * (column.rows - base)))
                column.trim()
            else:
                saved, column = column.saved(), Column(arena, *kind)
                column.restore(saved)
        arena.close()
