"""`bench adapt`, small: all sides give the same results, and the clairvoyant is the best of each phase."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.plan.tree import parse_tree
from lab import bench
from lab.bench import adapt
from lab.bench.migration_phases import Phase, phased_join


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ROUNDS": 1, "SECONDS": 0.6, "WINDOW": 0.25, "RATE": 500.0}.items():
        monkeypatch.setattr(adapt, name, value)


def test_all_of_it() -> None:
    found = bench.run("adapt")
    assert [r.metric for r in found] == ["time / auto", "time / auto", "time / clairvoyant"]
    assert [r.case.split()[1] for r in found[:2]] == ["static", "eddy"]
    assert all(r.bar is not None for r in found)


def test_the_clairvoyant_has_the_best_of_each_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    join = phased_join([Phase(0.4, (50.0,) * 4, (1.0, 1.0, 1.0))] * 2, adapt.EDGES, 0.1, 1)
    names = [adapt.AUTO, "static a", "static b", "eddy c"]
    times = np.array([[2.0, 2.0], [1.0, 9.0], [9.0, 2.0], [4.0, 4.0]])
    monkeypatch.setattr(adapt, "_round", lambda *_: times)
    sides = dict(adapt.sides())
    chosen = dict.fromkeys(names, sides[adapt.AUTO])
    static, eddy, clairvoyant = adapt.compare(join, chosen, 2, 1)
    assert (static.value, static.ok, eddy.value, eddy.ok) == (10 / 4, True, 2.0, True)
    assert clairvoyant.value == 4 / 3 and clairvoyant.ok is False


def test_trees_are_all_those_of_connected_spans() -> None:
    trees = [parse_tree(text, ["s0", "s1", "s2", "s3"]) for text in (*adapt.WIDE, *adapt.BINARY)]
    spans = {frozenset(below.span for below in tree.below()) for tree in trees}
    assert len(spans) == len(trees) == 11
    assert set().union(*spans) == {0b0011, 0b0110, 0b1100, 0b0111, 0b1110}
    binary = [tree for tree in trees if all(len(t.children) == 2 for t in (*tree.below(), tree))]
    assert len(binary) == len(adapt.BINARY)


def test_phases_have_their_rates_and_fan_outs() -> None:
    phases = [Phase(10.0, (300.0, 300.0), (0.5,)), Phase(10.0, (300.0, 100.0), (4.0,))]
    join = phased_join(phases, ((0, 1),), 1.0, 1)
    assert [join.data[name].num_rows for name in ("s0", "s1")] == [6000, 4000]
    keys = join.data["s0"].column("e0").to_numpy()
    assert (keys[:3000].max() + 1, keys[3000:].max() + 1) == (600, 75)
