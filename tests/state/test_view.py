"""Views of SteMs show the same rows in another order of builds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from eddyline.bound.expr import SourceColumn
from eddyline.state.arena import Arena
from eddyline.state.layout import Layout
from eddyline.state.stem import SteM
from eddyline.state.view import View

K = SourceColumn(0, "k", pa.int64())
LAYOUT = Layout(True, False, (K,), (K,), (), (), edges=((K,),))


def stem_of(arena: Arena, rows: int) -> SteM:
    stem = SteM(arena, LAYOUT)
    add(stem, rows)
    stem.commit()
    return stem


def add(stem: SteM, rows: int) -> None:
    at = np.arange(stem.built, stem.built + rows)
    stem.rows.append({K: pa.array(at % 7)}, at, None)
    stem.build(stem.built, rows)


def test_nothing_is_written_before_a_region_is_known_to_be_new(tmp_path: Path) -> None:
    """The region that the view gets at first may hold rows of another process."""
    arena = Arena(str(tmp_path))
    stem = stem_of(arena, 10)
    before = set(arena.files)
    View(arena, stem, [(K,)], 4, fed=True)
    assert set(arena.files) == before


def test_rows_are_there_as_far_as_they_were_built() -> None:
    arena = Arena()
    stem = stem_of(arena, 10)
    view = View(arena, stem, [(K,)], 4, fed=True)
    assert (view.built, view.behind, view.prober.min_live) == (4, 6, 4)
    assert view.build(100, 2) == (4, 6) and view.build(102, 3) == (6, 9)
    assert view.prober.rows_before(np.array([100, 101, 102, 103])).tolist() == [4, 6, 6, 9] and stem.built == 10
    add(stem, 5)
    assert (view.built, view.behind) == (9, 6)


def test_a_view_that_builds_no_rows_shows_those_that_the_stem_has_built() -> None:
    arena = Arena()
    stem = stem_of(arena, 10)
    view = View(arena, stem, [], 4, fed=False)
    add(stem, 5)
    assert view.prober.built == 15 and view.prober.rows_before(np.array([0, 99])).tolist() == [15, 15]
    stem.wind_back()
    assert (view.prober.built, view.prober.min_live) == (10, 4)


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
    assert (view.built, view.behind) == (6, 4)
    view.build(6, 4)
    stem.adopt([(K,)], view.made.hashed)
    assert (K,) in stem.indexes.hashed and not view.behind


def test_what_expired_before_it_was_built_is_passed_over() -> None:
    arena = Arena()
    stem = stem_of(arena, 10)
    view = View(arena, stem, [(K,)], 0, fed=True)
    view.build(0, 2)
    stem.expire(5)
    assert (view.built, view.prober.min_live) == (2, 5), "the batch may be wound back"
    stem.commit()
    view.commit()
    assert (view.built, view.behind) == (5, 5)
    view.build(2, 5)
    view.wind_back()
    assert view.built == 5
