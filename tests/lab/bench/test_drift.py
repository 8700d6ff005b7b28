"""Drift scripts give what their courses say, and how far behind an order is comes out right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eddyline.settings import Settings
from lab.bench.counted import Costs, least_work, work_of
from lab.bench.drift import (
    STRETCH,
    Drifting,
    DriftScript,
    named_scripts,
    random_script,
    steady,
    steps,
    to_and_fro,
)
from lab.bench.quick import STAR, join_scripts, joins_behind, selections_behind, tuples_to_recover

COSTS = Costs(probe=50e-9, match=20e-9, call=15e-9, a_pass=1.3e-9)
ROWS = 4 * STRETCH


def _script(*predicates: Drifting) -> DriftScript:
    return DriftScript("test", ROWS, predicates)


def _shares(script: DriftScript) -> np.ndarray:
    return script.truth(np.random.default_rng(0)).reshape(4, STRETCH, -1).mean(axis=1)


def test_selectivity_takes_its_course() -> None:
    script = _script(Drifting(steady(1), steps((0.1, 0.8, 0.3, 0.6), STRETCH)), Drifting(steady(1), steady(0.5)))
    assert _shares(script)[:, 0] == pytest.approx([0.1, 0.8, 0.3, 0.6], abs=0.03)
    assert _shares(script)[:, 1] == pytest.approx([0.5] * 4, abs=0.03)


def test_slow_drift_is_a_hundredth_every_so_many_rows() -> None:
    course = to_and_fro(0.05, 0.95, 0.3, False, 300_000, 1000)
    values = course.at(np.arange(0, 300_000, 1000))
    changes = np.abs(np.diff(values))
    assert changes.max() == pytest.approx(0.01)
    assert np.median(changes) == pytest.approx(0.01)
    assert (values.min(), values.max()) == pytest.approx((0.05, 0.95))


def test_predicates_of_one_latent_go_together_and_keep_their_selectivity() -> None:
    going = [Drifting(steady(1), steady(s), latent=0) for s in (0.2, 0.6)]
    against = Drifting(steady(1), steady(0.4), latent=0, mirrored=True)
    truth = _script(*going, against).truth(np.random.default_rng(0))
    assert truth.mean(axis=0) == pytest.approx([0.2, 0.6, 0.4], abs=0.03)
    assert (truth[:, 1] | ~truth[:, 0]).all(), "the more selective implies the other"
    assert not (truth[:, 1] & truth[:, 2]).any(), "a mirrored one is its opposite"


def test_following_in_part() -> None:
    half = Drifting(steady(1), steady(0.5), latent=0, follows=steady(0.5))
    truth = _script(replace(half, follows=steady(1.0)), half).truth(np.random.default_rng(0))
    assert truth[truth[:, 0], 1].mean() == pytest.approx(0.75, abs=0.03)
    assert truth[:, 1].mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("script", [*named_scripts(), *map(random_script, range(30))], ids=lambda s: s.name)
def test_scripts_are_sound(script: DriftScript) -> None:
    """Stretches do not straddle a swap, predicates cost something, and a seed always gives the same."""
    assert script.rows % STRETCH == 0
    assert all(row % STRETCH == 0 for row in script.swaps)
    for row in range(0, script.rows, STRETCH):
        assert min(script.passes(row)) >= 150
    if script.name.startswith("seed"):
        assert script == random_script(int(script.name.removeprefix("seed ").split(":")[0]))


def test_the_kinds_of_random_scripts() -> None:
    names = " ".join(random_script(seed).name for seed in range(30))
    assert all(kind in names for kind in ("swap", "slow", "expensive", "correlated"))


@pytest.mark.parametrize("script", join_scripts(), ids=lambda s: s.name)
def test_stretches_of_joins_do_not_straddle_a_swap(script: DriftScript) -> None:
    assert all(row * STAR.sources % STRETCH == 0 for row in (*script.swaps, script.rows))


def test_an_operator_that_turns_expensive_changes_the_best_order() -> None:
    script = next(s for s in named_scripts() if s.name == "an operator turns expensive")
    truth = script.truth(np.random.default_rng(1))
    orders = []
    for at in (0, *script.swaps):
        costs = [COSTS.predicate(k) for k in script.passes(at)]
        orders.append(least_work(truth[at : at + STRETCH], costs)[1])
    assert orders[0][0] == 0 != orders[1][0]
    assert orders[2][0] == 0


def test_behind_is_the_work_of_the_order_over_the_least() -> None:
    predicates = [Drifting(steady(10 * (i + 1)), steps(s, STRETCH)) for i, s in enumerate([(0.9, 0.1), (0.2, 0.8)])]
    predicates[1] = replace(predicates[1], passes=steps((20, 200), STRETCH))
    script = DriftScript("test", 2 * STRETCH, tuple(predicates))
    behind = selections_behind(script, COSTS, seed=3, settings=Settings(router="fixed"))
    truth = script.truth(np.random.default_rng(3))
    for at, ratio in zip((0, STRETCH), behind, strict=True):
        rows, costs = truth[at : at + STRETCH], [COSTS.predicate(k) for k in script.passes(at)]
        assert ratio == pytest.approx(work_of(rows, costs, (0, 1)) / least_work(rows, costs)[0])
    assert behind[0] > 1.3
    assert behind[1] == 1.0


def test_a_fixed_order_is_never_ahead_of_the_best_fixed_order() -> None:
    hits = (Drifting(steady(0), steady(s)) for s in (0.9, 0.1, 0.5))
    script = DriftScript("test", 2 * STRETCH // STAR.sources, tuple(hits))
    behind = joins_behind(STAR, script, COSTS, Settings(router="fixed"))
    assert len(behind) == 2
    assert min(behind) > 1.0


def test_recovery_ends_with_the_last_stretch_that_is_not_near() -> None:
    assert tuples_to_recover([2.0, 1.0, 1.0, 1.0], [1]) == 0
    assert tuples_to_recover([1.0, 1.3, 1.0, 1.2, 1.0], [1]) == 3 * STRETCH
    assert tuples_to_recover([1.0, 1.3, 1.0, 1.2, 1.0], [1, 3]) == STRETCH
