"""Evidence fades with newer evidence and with age, and a single interrupted call is not believed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eddyline.routing.statistics import Level, Recent, Reference, Work
from eddyline.routing.tuning import DEFAULT

HALF_ROWS, HALF_TUPLES = DEFAULT.half_rows, DEFAULT.half_tuples
COST = 1e-5
QUICK = 1e-8
"""A cost so small that a hundred tuples tell nothing about it."""


def recent(tuples: int, produced: int, seconds: float | None = None, moment: int = 0) -> Recent:
    made = Recent()
    made.add(tuples, produced, tuples * COST if seconds is None else seconds, moment)
    return made


def steady(selectivity: float) -> Recent:
    """The statistics after many equal calls."""
    made = Recent()
    for _ in range(200):
        made.add(256, int(256 * selectivity), 256 * COST, 0)
    return made


def test_what_came_first_is_taken_as_it_is() -> None:
    made = recent(100, 30, 0.5, 7)
    assert (made.tuples, made.produced, made.seconds, made.calls, made.moment) == (100, 30, 0.5, 1, 7)


def test_newer_tuples_make_older_ones_count_less() -> None:
    made = recent(1000, 600)
    made.add(HALF_TUPLES, 0, HALF_TUPLES * COST, 0)
    assert made.tuples == pytest.approx(500 + HALF_TUPLES)
    assert (made.produced, made.calls) == (pytest.approx(300), pytest.approx(1.5))
    assert made.seconds == pytest.approx((500 + HALF_TUPLES) * COST)


def test_however_the_new_tuples_are_cut_into_calls_the_old_ones_fade_the_same() -> None:
    whole, cut = recent(1000, 1000), recent(1000, 1000)
    whole.add(HALF_TUPLES, 0, HALF_TUPLES * COST, 0)
    for _ in range(64):
        cut.add(HALF_TUPLES // 64, 0, HALF_TUPLES // 64 * COST, 0)
    assert cut.produced == pytest.approx(whole.produced)


def at(moment: int) -> Work:
    work = Work()
    work.moment = moment
    return work


def test_evidence_fades_with_the_rows_that_are_built() -> None:
    made = recent(1000, 600, moment=500)
    assert made.weight(at(500)) == pytest.approx(1000)
    assert made.weight(at(500 + HALF_ROWS)) == pytest.approx(500)
    assert made.weight(at(500 + 3 * HALF_ROWS)) == pytest.approx(125)
    made.add(1, 0, COST, 500 + HALF_ROWS)
    assert made.produced == pytest.approx(300, rel=0.01)
    assert made.moment == 500 + HALF_ROWS
    assert made.weight(at(500 + HALF_ROWS)) == pytest.approx(501, rel=0.01)


def test_the_evidence_of_the_slice_before_does_not_fade() -> None:
    made, work = recent(1000, 600), at(0)
    for moment, weight in ((4 * HALF_ROWS, 1000), (8 * HALF_ROWS, 1000 / 16), (9 * HALF_ROWS, 1000 / 256)):
        work.moment = moment
        work.end_slice()
        work.end_slice()
        assert made.weight(work) == pytest.approx(weight)
    assert work.slices == 3


def test_weight_changes_nothing() -> None:
    made = recent(1000, 600)
    for _ in range(3):
        made.weight(at(HALF_ROWS))
    assert (made.tuples, made.moment) == (1000, 0)


def test_follows_a_selectivity_that_changed() -> None:
    made = steady(1.0)
    for _ in range(4 * HALF_TUPLES // 256):
        made.add(256, 0, 256 * COST, 0)
    assert made.produced / made.tuples < 0.1


def test_one_call_that_was_interrupted_is_not_believed() -> None:
    made = recent(10_000, 5_000)
    made.add(100, 50, 1.0, 0)
    assert made.seconds <= 10_000 * COST + DEFAULT.interrupted * 100 * COST + DEFAULT.call
    assert made.seconds / made.tuples < 1.1 * COST


def test_a_cost_that_really_changed_gets_through() -> None:
    made = steady(0.5)
    for _ in range(3 * HALF_TUPLES // 256):
        made.add(256, 128, 256 * 20 * COST, 0)
    assert made.seconds / made.tuples > 0.8 * 20 * COST
    for _ in range(6 * HALF_TUPLES // 256):
        made.add(256, 128, 256 * COST, 0)
    assert made.seconds / made.tuples < 2 * COST


def test_a_module_that_was_free_can_become_expensive() -> None:
    made = recent(1000, 500, 0.0)
    for _ in range(60):
        made.add(500, 250, 500 * COST, 0)
    assert made.seconds / made.tuples > 0.7 * COST


# What is a surprise


def reference(selectivity: float, tuples: int = 10_000) -> Reference:
    made = Reference()
    for _ in range(10):
        assert not made.surprised(tuples // 10, int(selectivity * tuples / 10))
    return made


@pytest.mark.parametrize(("selectivity", "times"), [(0.3, 1), (0.5, 1), (0.97, 3), (0.02, 4)])
def test_chance_is_a_surprise_as_seldom_as_it_must_be(selectivity: float, times: int) -> None:
    """Packets of a selection that never changes. If chance is nearly normal, the share of surprises is that of values
    more than CLEARLY standard errors off in a normal distribution (less than one in two thousand), give or take three
    standard errors. If few tuples pass, or few do not, there may be `times` as many."""
    rng, made = np.random.default_rng(1), Reference()
    sizes = rng.choice([5, 60, 300, 2000], 10_000)
    passed = rng.binomial(sizes, selectivity)
    surprises = sum(made.surprised(int(n), int(k)) for n, k in zip(sizes, passed, strict=True))
    chance = math.erfc(DEFAULT.clearly / math.sqrt(2))
    assert chance < 1 / 2000
    expected = times * chance * np.count_nonzero(sizes >= DEFAULT.enough_tuples)
    assert surprises <= expected + 3 * math.sqrt(expected)


@pytest.mark.parametrize(("before", "after"), [(0.5, 0.8), (0.5, 0.2), (0.9, 0.99), (0.05, 0.2), (1.0, 0.9)])
def test_a_change_is_a_surprise_once(before: float, after: float) -> None:
    made = reference(before)
    assert made.surprised(1000, int(1000 * after))
    for _ in range(20):  # from then on it is the known selectivity
        assert not made.surprised(1000, int(1000 * after))
    assert made.surprised(1000, int(1000 * before))


def test_a_slow_drift_is_a_surprise_in_the_end() -> None:
    made = reference(0.5, 30_000)
    surprises = sum(made.surprised(500, int(500 * (0.5 + 0.004 * i))) for i in range(100))
    assert 1 <= surprises <= 20


def test_few_tuples_never_surprise() -> None:
    made = reference(0.5)
    assert not any(made.surprised(DEFAULT.enough_tuples - 1, 0) for _ in range(3))
    made = Reference()
    made.surprised(DEFAULT.enough_tuples - 1, DEFAULT.enough_tuples - 1)
    assert not made.surprised(1000, 0)


def test_probes_are_compared_slice_by_slice() -> None:
    """Within a slice the first packets find many matches and the last ones few; this is the same in every slice."""
    made = Reference()
    for moment in range(1000, 21_000, 1000):
        for found in (900, 500, 100):
            assert not made.probed(500, found, moment, False)
    surprises = [
        made.probed(500, found, moment, False) for moment in (21_000, 22_000, 23_000) for found in (1900, 1500, 1100)
    ]
    assert surprises == [False, False, False, True, False, False, False, False, False]


def test_tuples_that_are_joined_already_tell_less() -> None:
    """They have rows in common: a difference that is a surprise for independent tuples is none for them."""
    told = []
    for joined in (False, True):
        made = Reference()
        for moment in range(1000, 31_000, 1000):
            made.probed(1000, 1000, moment, joined)
        told.append([made.probed(1000, found, moment, joined) for moment, found in ((40_000, 1250), (41_000, 1000))])
    assert told == [[False, True], [False, False]]


# The level of a module


def level(selectivity: float, cost: float = COST, packets: int = 20, moment: int = 0) -> Level:
    made = Level()
    for _ in range(packets):
        made.add(1000, selectivity, cost, moment)
    return made


def test_a_level_is_what_was_seen_lately() -> None:
    made = Level()
    made.add(100, 0.5, COST, 3)
    assert (made.tuples, made.selectivity, made.cost, made.moment) == (100, 0.5, COST, 3)
    made.add(300, 0.1, COST, 3)
    assert made.selectivity == pytest.approx((100 * 0.5 ** (300 / HALF_TUPLES) * 0.5 + 300 * 0.1)
                                             / (100 * 0.5 ** (300 / HALF_TUPLES) + 300))  # fmt: skip
    made = level(1.0)
    for _ in range(4 * HALF_TUPLES // 256):
        made.add(256, 0.0, COST, 0)
    assert made.selectivity < 0.1


def test_a_level_forgets_with_the_rows_that_are_built() -> None:
    made, old = level(1.0), level(1.0)
    made.add(256, 0.0, COST, 0)
    old.add(256, 0.0, COST, 4 * HALF_ROWS)
    assert old.selectivity < made.selectivity < 1
    assert old.tuples < made.tuples


def test_a_level_does_not_believe_a_call_that_was_interrupted() -> None:
    rng, made = np.random.default_rng(2), level(0.5)
    for _ in range(500):
        interrupted = rng.random() < 0.1
        made.add(1000, 0.5, COST * (50 if interrupted else rng.uniform(0.9, 1.1)), 0)
        assert 0.85 * COST < made.cost < 1.15 * COST


def test_a_level_follows_a_cost_that_really_changed_within_a_few_packets() -> None:
    made = level(0.5)
    changed = [made.add(1000, 0.5, 20 * COST, 0) for _ in range(DEFAULT.costs_compared)]
    assert made.cost == 20 * COST and sum(changed) == 1
    changed = [made.add(1000, 0.5, COST, 0) for _ in range(2)]  # nothing makes a call seem cheaper than it is
    assert made.cost == COST and sum(changed) == 1
    assert not any(made.add(1000, 0.5, COST * 1.2, 0) for _ in range(20))


def test_short_calls_cannot_raise_the_cost_of_a_level() -> None:
    made = level(0.5, QUICK)
    for _ in range(50):
        made.add(DEFAULT.telling_packet - 1, 0.5, 3 * QUICK, 0)
    assert made.cost == QUICK
    for _ in range(5):
        made.add(DEFAULT.telling_packet - 1, 0.5, QUICK / 4, 0)
    assert made.cost < QUICK / 2
    small = Level()
    small.add(3, 0.5, QUICK, 0)
    assert small.cost == QUICK


def test_a_few_tuples_tell_a_cost_if_they_take_long() -> None:
    for tell in (
        lambda made, moment: made.add(40, 0.5, COST, moment),
        lambda made, moment: made.hint(40, COST, moment),
    ):
        made = level(0.5, QUICK)
        for i in range(DEFAULT.costs_compared):
            tell(made, i)
        assert made.cost == COST


def test_what_told_a_cost_long_ago_is_forgotten() -> None:
    made = level(0.5, QUICK)
    made.add(40, 0.5, COST, 2 * HALF_ROWS)
    assert made.cost == QUICK  # one call alone may have been interrupted
    made.add(40, 0.5, COST, 2 * HALF_ROWS)
    assert made.cost == COST


def test_samples_say_at_once_that_a_module_became_cheap() -> None:
    made = level(0.5)
    assert not made.hint(100, 0.9 * COST, 0)
    assert made.hint(100, COST / 10, 0)
    assert made.cost == COST / 10


def test_samples_tell_that_a_module_became_expensive_when_packets_tell_nothing() -> None:
    made = level(0.5, QUICK)
    for _ in range(3 * DEFAULT.costs_compared):
        assert not made.hint(100, 10 * QUICK, HALF_ROWS // 2)
    assert made.cost == QUICK
    assert made.hint(100, 10 * QUICK, 2 * HALF_ROWS)
    assert made.cost == 10 * QUICK
    made = level(0.5, QUICK)
    for i in range(3 * DEFAULT.costs_compared):
        made.hint(100, QUICK if i % DEFAULT.costs_compared == 0 else 10 * QUICK, 2 * HALF_ROWS)
    assert made.cost == QUICK  # not all samples were more expensive


def test_an_estimate_leaves_out_what_every_call_costs() -> None:
    work, made = Work(), Recent()
    work.add(2e-5)
    for _ in range(10):
        made.add(100, 40, 2e-5 + 100 * COST, 0)
        work.add(2e-5 + 100 * COST)
    cost, selectivity = work.estimate(made)
    assert cost == pytest.approx(COST, rel=1e-3) and selectivity == pytest.approx(0.4)


def test_however_small_the_packets_a_share_of_the_time_counts_for_the_tuples() -> None:
    work, made = Work(), Recent()
    work.add(1e-5)
    made.add(1, 1, 1e-5, 0)
    cost, _ = work.estimate(made)
    assert cost == pytest.approx(DEFAULT.least_share * 1e-5)


def test_nothing_is_free() -> None:
    cost, selectivity = Work().estimate(recent(100, 0, 0.0))
    assert cost > 0 and selectivity == 0


def test_work_adds_up_and_keeps_the_least_call() -> None:
    work = Work()
    assert work.fixed == DEFAULT.call
    for seconds in (1.0, 0.25 * DEFAULT.call, 0.5 * DEFAULT.call):
        work.add(seconds)
    assert (work.calls, work.fixed) == (3, 0.25 * DEFAULT.call)
    assert work.seconds == pytest.approx(1.0, rel=1e-3)
