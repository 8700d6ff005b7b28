"""Views of SteMs: other looks at the same rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from eddyline.query.expr import Column as Name
from eddyline.state.arena import Arena
from eddyline.state.layout import Layout
from eddyline.state.stem import SteM
from eddyline.state.view import View

K = Name(0, "k", pa.int64())
LAYOUT = Layout(True, False, (K,), (K,), (), (), edges=((K,),))


def stem_of(arena: Arena, rows: int) -> SteM:
    stem = SteM(arena, LAYOUT)
    add(stem, rows)
    stem.commit()
    return stem


def add(stem: SteM, rows: int) -> None:
    at = np.arange(stem.rows, stem.rows + rows)
    stem.store({K: pa.array(at % 7)}, at, None)
    stem.build(stem.rows, rows)


@pytest.mark.parametrize("fed", [False, True])
def test_nothing_is_written_before_a_region_is_known_to_be_new(fed: bool, tmp_path: Path) -> None:
    """Another process may have rows in the region that it is given at first."""
    arena = Arena(str(tmp_path))
    stem = stem_of(arena, 10)
    before = set(arena.files)
    view = View(arena, stem, [(K,)], 0, fed)
    view.look()
    assert set(arena.files) == before


def test_rows_are_there_as_far_as_they_were_built() -> None:
    arena = Arena()
    stem = stem_of(arena, 10)
    view = View(arena, stem, [(K,)], 4, fed=True)
    assert (view.rows, view.behind, view.min_live) == (4, 6, 4)
    assert view.build(100, 2) == (4, 6) and view.build(102, 3) == (6, 9)
    assert view.rows_before(np.array([100, 101, 102, 103])).tolist() == [4, 6, 6, 9] and stem.rows == 10
    add(stem, 5)
    view.look()
    assert (view.rows, view.behind) == (9, 6)


def test_it_is_committed_and_wound_back_with_the_stem() -> None:
    arena = Arena()
    stem = stem_of(arena, 10)
    view = View(arena, stem, [(K,)], 0, fed=True)
    view.build(0, 6)
    view.commit()
    add(stem, 4)
    view.build(6, 8)
    view.wind_back()
    stem.wind_back()
    view.look()
    assert (view.rows, view.behind) == (6, 4)
    view.build(6, 4)
    stem.adopt([(K,)], view.made)
    assert stem.is_indexed_by((K,)) and not view.behind


def test_what_expired_before_it_was_built_is_passed_over() -> None:
    arena = Arena()
    stem = stem_of(arena, 10)
    view = View(arena, stem, [(K,)], 0, fed=True)
    view.build(0, 2)
    stem.expire(5)
    view.look()
    assert (view.rows, view.min_live) == (2, 5), "the batch may be wound back"
    stem.commit()
    view.commit()
    assert (view.rows, view.behind) == (5, 5)
    view.build(2, 5)
    view.wind_back()
    assert view.rows == 5
