"""Two SteMs over the same rows: each finds the rows that were built for it, as a list of Python rows says."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.expr import SourceColumn, of_source
from eddyline.state.arena import Arena
from eddyline.state.layout import Layout, together
from eddyline.state.probing import NO_BOUND, Limits
from eddyline.state.stem import SteM

K, S, X = SourceColumn(0, "k", pa.int64()), SourceColumn(0, "s", pa.string()), SourceColumn(0, "x", pa.int64())
ALONE = Layout(True, False, (X,), (K, S), ((K,),), (X,), edges=((K,), (K, S)))
OTHER = Layout(True, False, (S,), (K, S), ((S, K),), (X,), edges=((S, K),)).of_source(1)
LAYOUTS = together([ALONE, OTHER], (0, 0))


def stems() -> list[SteM]:
    arena = Arena()
    owner = SteM(arena, LAYOUTS[0])
    return [owner, SteM(arena, LAYOUTS[1], owner=(0, owner))]


def found(stem: SteM, source: int, on: tuple[SourceColumn, ...], like: int, before: int) -> list[int]:
    """The rows with the key of row number `like`, of those that were built before a number."""
    on = tuple(SourceColumn(source, e.name, e.type) for e in on)
    bound = stem.prober.rows_before(np.array([before]))
    limits = Limits(NO_BOUND, NO_BOUND, bound, stem.prober.min_live, 64, np.zeros(1, np.int64))
    keys = stem.rows.key_values(on)
    return sorted(r for _, rows in stem.prober.probe_key(on, keys, np.array([like]), limits) for r in rows.tolist())


def test_a_layout_is_the_same_for_all_aliases_but_for_the_names() -> None:
    assert LAYOUTS[1].of_source(0) == LAYOUTS[0]
    assert LAYOUTS[0].stored == (X, S) and LAYOUTS[0].indexes == LAYOUTS[0].edges == ((K,), (K, S), (S, K))
    assert together([ALONE, OTHER], (0, 1)) == [ALONE, OTHER]


@pytest.mark.parametrize("seed", range(8))
def test_each_finds_what_was_built_for_it(seed: int) -> None:
    rng, both, number, rows = random.Random(seed), stems(), 0, list[tuple[int, int, str]]()
    builds: list[list[tuple[int, int]]] = [[], []]
    """By SteM, the number at each build, and the rows after it."""
    for _ in range(12):
        committed, before = len(rows), number
        builds = [[(-1, committed)], [(-1, committed)]]
        some = [(rng.randrange(50), rng.randrange(3), rng.choice("ab")) for _ in range(rng.randrange(1, 30))]
        rows += some
        values = {K: pa.array([r[1] for r in some]), S: pa.array([r[2] for r in some])}
        both[0].rows.append({**values, X: values[K]}, np.array([r[0] for r in some]), None)
        while any(stem.waiting for stem in both):
            source = rng.choice([s for s, stem in enumerate(both) if stem.waiting])
            taken = rng.randint(1, both[source].waiting)
            both[source].build(number, taken)
            builds[source].append((number, both[source].built))
            number += taken
            for at, stem in enumerate(both):
                when, like = rng.randint(before, number), rng.randrange(stem.rows.min_live, len(rows))
                last = max(end for made, end in builds[at] if made < when)
                alike = [r for r in range(stem.rows.min_live, last) if rows[r][1:] == rows[like][1:]]
                assert found(stem, at, (S, K), like, when) == alike
        assert both[1].nbytes == 0 < both[0].nbytes and both[0].held == both[1].held
        if rng.random() < 0.4:
            for stem in both:
                stem.wind_back()
            del rows[committed:]
            number = before
            continue
        both[0].expire(rng.randrange(20))
        for stem in both:
            stem.commit()
        if rng.random() < 0.3:
            live = np.arange(both[0].rows.min_live, len(rows))
            kept = live[np.sort(rng.sample(range(live.size), live.size // 2))]
            both[0].retain(kept, {})
            rows += [rows[r] for r in kept.tolist()]
            assert both[0].built == both[1].built == len(rows) and both[1].waiting == 0


def test_values_have_the_names_of_both() -> None:
    owner, other = stems()
    owner.rows.append({K: pa.array([7]), S: pa.array(["a"]), X: pa.array([9])}, np.array([1]), None)
    other.build(0, 1)
    assert owner.waiting == 1 and other.waiting == 0
    at = np.array([0])
    for source, rows in enumerate((owner.rows, other.rows)):
        k, s, x = (of_source(e, source) for e in (K, S, X))
        assert rows.gather(x, at).to_pylist() == [9] and rows.gather(s, at).to_pylist() == ["a"]
        assert rows.key_values((k,))[0] == 7 and rows.order_values(x)[0] == owner.rows.order_values(X)[0]
        assert rows.has_key((s, k)) and not rows.has_key((x,))
        assert rows.same_key(s, at, owner.rows, S, at).all()
