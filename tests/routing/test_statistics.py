"""Evidence fades by newer evidence and by age, and a call that was interrupted is not believed at once."""

from __future__ import annotations

import pytest

from eddyline.routing.statistics import (
    FIXED,
    HALF_ROWS,
    HALF_TUPLES,
    LEAST_SHARE,
    SURPRISE,
    Factors,
    Level,
    Recent,
    Work,
)

COST = 1e-5


def recent(tuples: int, produced: int, seconds: float | None = None, moment: int = 0) -> Recent:
    made = Recent()
    made.add(tuples, produced, tuples * COST if seconds is None else seconds, moment)
    return made


def steady(selectivity: float) -> Recent:
    """After many calls that were all alike."""
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


def test_evidence_fades_with_the_rows_that_are_built() -> None:
    made = recent(1000, 600, moment=500)
    assert made.weight(500) == pytest.approx(1000)
    assert made.weight(500 + HALF_ROWS) == pytest.approx(500)
    assert made.weight(500 + 3 * HALF_ROWS) == pytest.approx(125)
    made.add(1, 0, COST, 500 + HALF_ROWS)
    assert made.produced == pytest.approx(300, rel=0.01)
    assert made.moment == 500 + HALF_ROWS
    assert made.weight(500 + HALF_ROWS) == pytest.approx(501, rel=0.01)


def test_weight_changes_nothing() -> None:
    made = recent(1000, 600)
    for _ in range(3):
        made.weight(HALF_ROWS)
    assert (made.tuples, made.moment) == (1000, 0)


def test_follows_a_selectivity_that_changed() -> None:
    made = steady(1.0)
    for _ in range(4 * HALF_TUPLES // 256):
        made.add(256, 0, 256 * COST, 0)
    assert made.produced / made.tuples < 0.1


def test_one_call_that_was_interrupted_is_not_believed() -> None:
    made = recent(10_000, 5_000)
    made.add(100, 50, 1.0, 0)
    assert made.seconds <= 10_000 * COST + SURPRISE * 100 * COST + FIXED
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


# The level of a module, and by which factor the tuples of a signature differ from it


def level(selectivity: float, cost: float = COST, calls: int = 100, moment: int = 0) -> Level:
    made = Level()
    for _ in range(calls):
        made.add(256, selectivity, cost, moment)
    return made


def test_a_level_is_what_was_seen_lately() -> None:
    made = Level()
    made.add(100, 0.5, COST, 3)
    assert (made.tuples, made.selectivity, made.cost, made.moment) == (100, 0.5, COST, 3)
    made.add(300, 0.1, 2 * COST, 3)
    assert 0.1 < made.selectivity < 0.5 and COST < made.cost < 2 * COST
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


def test_a_level_does_not_believe_one_call_that_was_interrupted() -> None:
    made = level(0.5)
    made.add(256, 0.5, 1000 * COST, 0)
    assert made.cost <= (1 + SURPRISE) * COST + FIXED / 256
    for _ in range(3 * HALF_TUPLES // 256):
        made.add(256, 0.5, 20 * COST, 0)
    assert made.cost > 0.8 * 20 * COST


def test_without_evidence_a_signature_does_not_differ() -> None:
    assert Factors().of(level(0.3), 64.0) == (1.0, 1.0)


def test_few_tuples_make_a_small_difference_and_many_the_whole() -> None:
    known, few, many = level(0.2), Factors(), Factors()
    few.add(8, 4.8, 3 * COST, known)
    for _ in range(50):
        many.add(256, 0.6 * 256, 3 * COST, known)
    (little, cheap), (more, dear) = few.of(known, 64.0), many.of(known, 64.0)
    assert 1 < little < 1.5 and 1 < cheap < 1.5
    assert more == pytest.approx(3, rel=0.1) and dear == pytest.approx(3, rel=0.1)
    assert many.of(level(0.4), 64.0)[0] == pytest.approx(3, rel=0.1)  # it stays when the level moves on


def test_a_module_that_lets_nothing_through() -> None:
    known, seen = level(0.0), Factors()
    for _ in range(20):
        seen.add(256, 0.0, COST, known)
    more, dear = seen.of(known, 64.0)
    assert more == pytest.approx(1) and dear == pytest.approx(1)


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
    assert cost == pytest.approx(LEAST_SHARE * 1e-5)


def test_nothing_is_free() -> None:
    cost, selectivity = Work().estimate(recent(100, 0, 0.0))
    assert cost > 0 and selectivity == 0


def test_work_adds_up_and_keeps_the_least_call() -> None:
    work = Work()
    assert work.fixed == FIXED
    for seconds in (1.0, 0.25 * FIXED, 0.5 * FIXED):
        work.add(seconds)
    assert (work.calls, work.fixed) == (3, 0.25 * FIXED)
    assert work.seconds == pytest.approx(1.0, rel=1e-3)
