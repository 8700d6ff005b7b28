"""Carried columns: weights and states are kept, undone and handed on like the other columns of a SteM."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from eddyline.state.arena import Arena
from eddyline.state.carried import Carried, CarriedStore, together
from eddyline.state.layout import Layout
from eddyline.state.stem import SteM
from tests.support.regions import check_regions

STATES = ((0, "n", pa.int64()), (0, "sum", pa.float64()), (2, "value", pa.string()), (3, "value", pa.bool_()))
BASE, BETWEEN = Layout(True, False, (), (), (), ()), Layout(True, False, (), (), (), (), components=(0,), states=STATES)


def some(first: int, last: int) -> Carried:
    numbers = range(first, last)
    state = {"n": pa.array([2 * i for i in numbers]), "sum": pa.array([None if i % 3 == 0 else i / 2 for i in numbers])}
    texts, flags = pa.array([None if i % 4 == 1 else f"t{i}" for i in numbers]), pa.array([i % 2 == 0 for i in numbers])
    return Carried(np.arange(first, last) + 1, {0: state, 2: {"value": texts}, 3: {"value": flags}})


def same(found: Carried, expected: Carried) -> None:
    assert found.weights.tolist() == expected.weights.tolist()
    assert found.states == expected.states


def test_what_is_stored_is_there() -> None:
    store = CarriedStore(Arena(), STATES)
    store.append(some(0, 5))
    store.append(some(5, 9))
    same(store.gather(np.arange(9)), some(0, 9))
    same(store.gather(np.arange(2, 7)), some(2, 7))
    same(together([store.gather(np.arange(4)), store.gather(np.arange(4, 9))]), some(0, 9))


def test_it_lives_with_the_tuples(tmp_path: Path) -> None:
    """They are wound back, committed, released, restored in another process, and freed."""
    arena = Arena(str(tmp_path), "mine")
    base, stem = SteM(arena, BASE), SteM(arena, BETWEEN)
    base.rows.append({}, np.arange(400), None)
    base.build(0, 400)

    def build(first: int, last: int) -> None:
        stem.rows.append_tuples({0: np.arange(first, last)}, [base.rows], some(first, last))
        stem.build(first, last - first)

    build(0, 100)
    stem.commit()
    build(100, 150)
    stem.wind_back()
    build(100, 120)
    stem.commit()
    base.expire(40)
    stem.expire_tuples([base])
    stem.commit()
    assert stem.rows.min_live == 40 and stem.rows.carried is not None
    same(stem.rows.carried.gather(np.arange(40, 120)), some(40, 120))
    assert stem.nbytes >= 80 * (8 + 8 + 8 + 1)
    saved, regions, freed = stem.saved(), arena.regions, list(arena.freed)
    arena.close()
    arena = Arena(str(tmp_path), "mine")
    again = [SteM(arena, BASE), SteM(arena, BETWEEN)]
    again[1].restore(saved)
    assert again[1].rows.carried is not None and (arena.regions, list(arena.freed)) == (regions, freed)
    same(again[1].rows.carried.gather(np.arange(40, 120)), some(40, 120))
    check_regions(again, arena)
    again[1].free()
    check_regions(again[:1], arena)
    arena.close()
