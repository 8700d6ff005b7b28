"""Rates and selectivities are recovered from counts that were made with known ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.codec import packed, unpacked
from eddyline.optimizer.conditions import Condition
from eddyline.optimizer.observed import Observed, ObservedSnapshot
from eddyline.optimizer.tuning import DEFAULT as TUNING
from eddyline.optimizer.workload import Access, Selection
from tests.support.properties import examples

KEY_AB, KEY_BC = Condition(0b011, Access.HASH, True), Condition(0b110, Access.HASH, True)
KEY_ABC = Condition(0b111, Access.HASH, True)
RANGE_AC = Condition(0b101, Access.RANGE, False)
OVER_ALL = Condition(0b111, Access.LIST, False)
HELD = [2000.0, 500.0, 8000.0]
MANY = 200_000


def live(span: int, conditions: Sequence[Condition], shares: Sequence[float]) -> float:
    rows = sum(log(HELD[s]) for s in range(3) if span >> s & 1)
    return exp(rows + sum(log(share) * c.times(span) for c, share in zip(conditions, shares, strict=True)))


def probed(
    keys: Iterable[tuple[int, int]], conditions: Sequence[Condition], shares: Sequence[float], tuples: int = MANY
) -> Observed:
    """The counts of probes (span, target) if conditions have these selectivities."""
    fan_outs = {(s, t): live(s | t, conditions, shares) / live(s, conditions, shares) for s, t in keys}
    observed = Observed(3)
    observed.add(1.0, [0, 0, 0], {key: (tuples, round(tuples * fan_out)) for key, fan_out in fan_outs.items()}, 1.0)
    return observed


def solved(observed: Observed, conditions: Sequence[Condition]) -> list[float]:
    return observed.selectivities(conditions, HELD)


def test_nothing_to_ask_for() -> None:
    assert Observed(2).selectivities([], [1.0, 1.0]) == []


def test_rates_are_rows_per_second_of_event_time() -> None:
    observed = Observed(2)
    assert observed.rate(0) == 0.0
    for _ in range(50):
        observed.add(0.1, [10, 3], {}, 1.0)
    assert [observed.rate(i) for i in (0, 1)] == [pytest.approx(100.0), pytest.approx(30.0)]


@examples(100)
@given(st.floats(-4.0, -1.0), st.floats(-4.0, -1.0))
def test_conditions_that_a_probe_decides_alone(one: float, other: float) -> None:
    conditions, shares = [KEY_AB, KEY_BC], [10.0**one, 10.0**other]
    found = solved(probed([(1, 2), (4, 2)], conditions, shares), conditions)
    assert found == [pytest.approx(share, rel=0.05) for share in shares]


def test_a_class_of_equal_columns_from_any_two_of_its_sources() -> None:
    """Also from a probe by a tuple that has two of them: there it counts once more, not twice."""
    for key in ((1, 4), (2, 4), (1, 2), (0b011, 4)):
        assert solved(probed([key], [KEY_ABC], [0.004]), [KEY_ABC]) == [pytest.approx(0.004, rel=0.02)]


def test_from_probes_of_larger_spans_only() -> None:
    """a -> (b c) and (a b) -> c, as in trees: no probe decides one condition alone, but together they determine all."""
    conditions, shares = [KEY_AB, KEY_BC, RANGE_AC], [0.003, 0.001, 0.3]
    keys = [(0b001, 0b110), (0b011, 0b100), (0b101, 0b010)]
    found = solved(probed(keys, conditions, shares), conditions)
    assert found == [pytest.approx(share, rel=0.1) for share in shares]


def test_a_condition_over_three_sources_is_told_from_the_keys() -> None:
    conditions, shares = [KEY_AB, KEY_BC, OVER_ALL], [0.003, 0.001, 0.25]
    found = solved(probed([(1, 2), (2, 4), (0b011, 0b100)], conditions, shares), conditions)
    assert found == [pytest.approx(share, rel=0.05) for share in shares]


def test_of_two_conditions_that_are_only_seen_together_the_product_is_known() -> None:
    lower, upper = Condition(0b011, Access.RANGE, False), Condition(0b011, Access.RANGE, False)
    one, other = solved(probed([(1, 2), (2, 1)], [lower, upper], [0.5, 0.02]), [lower, upper])
    assert one * other == pytest.approx(0.01, rel=0.1)


def test_what_no_probe_tells_stays_at_the_guess() -> None:
    """The guess: a key has as many values as the larger side has rows."""
    assert solved(Observed(3), [KEY_AB, KEY_BC, RANGE_AC]) == [
        pytest.approx(1 / 2000),
        pytest.approx(1 / 8000),
        pytest.approx(1 / 8000),
    ]
    known, unknown = solved(probed([(1, 2)], [KEY_AB], [0.02]), [KEY_AB, KEY_BC])
    assert known == pytest.approx(0.02, rel=0.05) and unknown == pytest.approx(1 / 8000)


def test_few_tuples_are_not_believed() -> None:
    few, enough = (probed([(1, 2)], [KEY_AB], [0.02], tuples) for tuples in (int(TUNING.few) - 1, 40 * int(TUNING.few)))
    assert solved(few, [KEY_AB]) == [pytest.approx(1 / 2000)]
    assert solved(enough, [KEY_AB]) == [pytest.approx(0.02, rel=0.1)]


def test_a_selectivity_is_a_share_and_never_zero() -> None:
    observed = Observed(3)
    observed.add(1.0, [0, 0, 0], {(1, 2): (MANY, 0), (4, 2): (10, 100), (2, 4): (MANY, 10**12)}, 1.0)
    never, always = solved(observed, [KEY_AB, KEY_BC])
    assert 0.0 < never < 1e-6 and always == 1.0


def test_the_past_fades() -> None:
    observed, window = Observed(3), 2.0
    observed.add(10.0, [1000, 0, 0], {(1, 2): (1000, 4000)}, window)
    observed.add(TUNING.half_life * window, [0, 0, 0], {}, window)
    assert observed.rows[0] == pytest.approx(500.0)
    assert observed.seconds == pytest.approx(5.0 + TUNING.half_life * window)
    assert (observed.probes[1, 2].tuples, observed.probes[1, 2].made) == (pytest.approx(500.0), pytest.approx(2000.0))
    for _ in range(80):
        observed.add(0.5, [50, 0, 0], {(1, 2): (1000, 1000)}, window)
    assert observed.rate(0) == pytest.approx(100.0, rel=0.02)
    assert observed.probes[1, 2].made / observed.probes[1, 2].tuples == pytest.approx(1.0, rel=0.02)


def test_a_large_number_is_forgotten_at_once_when_it_is_clearly_another() -> None:
    """A fading mean would be ten times too high after four windows."""
    observed = Observed(3)
    for fan_out in (5.0, 0.1):
        for _ in range(20):
            observed.add(0.1, [0, 0, 0], {(1, 2): (1000, round(1000 * fan_out))}, 1.0)
            found = observed.probes[1, 2]
            assert found.made / found.tuples == pytest.approx(fan_out)


def test_a_number_that_only_varies_is_averaged() -> None:
    observed, means = Observed(3), []
    for number in range(60):
        observed.add(0.1, [0, 0, 0], {(1, 2): (1000, 80 + 40 * (number % 2)), (2, 4): (100, 5 * (number % 2))}, 1.0)
        means.append([p.made / p.tuples for p in observed.probes.values()])
    assert all(mean == [pytest.approx(0.1, rel=0.05), pytest.approx(0.025, rel=0.2)] for mean in means[20:])


def test_a_probe_that_is_not_taken_any_more_is_believed_less() -> None:
    """Both decide a.k = b.k; the first one is from another plan, before the data changed."""
    observed = probed([(1, 2)], [KEY_AB], [0.02])
    for _ in range(40):
        observed.add(0.1, [0, 0, 0], {(2, 1): (1000, round(1000 * 0.001 * HELD[0]))}, 1.0)
    assert solved(observed, [KEY_AB]) == [pytest.approx(0.001, rel=0.05)]


def test_a_few_tuples_that_are_often_asked_tell_little() -> None:
    """c finds five times too many matches in (a b), which has only twenty tuples."""
    conditions, shares = [KEY_AB, KEY_BC], [2e-5, 0.001]
    observed = probed([(1, 2), (2, 1), (0b011, 0b100)], conditions, shares, 1000)
    many = round(5 * 10_000 * HELD[0] * HELD[1] * shares[0] * shares[1])
    observed.add(0.0, [0, 0, 0], {(0b100, 0b011): (10_000, many)}, 1.0)
    assert 0 < sum(observed.probes[key].made for key in ((1, 2), (2, 1))) < TUNING.few + 30
    assert solved(observed, conditions)[1] < 2.0 * shares[1]


def test_without_windows_nothing_fades() -> None:
    observed = Observed(1)
    for _ in range(3):
        observed.add(100.0, [100], {}, 0.0)
    assert (observed.rows, observed.seconds) == ([300.0], 300.0)


def test_saved_and_restored() -> None:
    observed, again = probed([(1, 2), (2, 4)], [KEY_AB, KEY_BC], [0.02, 0.01]), Observed(3)
    observed.add(0.5, [1, 2, 3], {}, 1.0)
    again.restore(unpacked(packed(observed.saved()), ObservedSnapshot))
    assert again == observed


def test_selections_are_counted_and_fade() -> None:
    observed = Observed(3)
    observed.add(1.0, [0, 0, 0], {}, 1.0, {1: (1000, 250, 0.002)})
    seen = observed.selections[1]
    assert seen.share == pytest.approx(0.25, rel=0.01) and seen.seconds / seen.tuples == pytest.approx(2e-6)
    observed.add(TUNING.half_life, [0, 0, 0], {}, 1.0, {1: (500, 500, 0.0)})
    assert seen.tuples == pytest.approx(1000) and seen.share == pytest.approx(0.625, rel=0.01)
    again = Observed(3)
    again.restore(unpacked(packed(observed.saved()), ObservedSnapshot))
    assert again == observed
    nothing = Observed(1)
    nothing.add(1.0, [0], {}, 1.0, {0: (10**9, 0, 1.0)})
    assert 0.0 < nothing.selections[0].share < 1e-8


def test_what_an_intermediate_stem_has_passed_its_selections() -> None:
    """c probes (a b), of which a selection let a tenth through: that is not the selectivity of a condition."""
    conditions, shares = [KEY_AB, KEY_BC], [1e-3, 1e-2]
    probes = [(1, 2), (2, 1)]
    observed = probed(probes, conditions, shares)
    fan_out = 0.1 * live(0b111, conditions, shares) / live(0b100, conditions, shares)
    observed.add(0.0, [0, 0, 0], {(0b100, 0b011): (MANY, round(MANY * fan_out))}, 1.0)
    passed = Selection(0b010, 0.1, 1e-6)
    found = observed.selectivities(conditions, HELD, [passed])
    assert found == [pytest.approx(share, rel=0.05) for share in shares]
    assert observed.selectivities(conditions, HELD)[1] < 0.2 * shares[1], "without it"
    elsewhere = Selection(0b110, 0.1, 1e-6)
    assert observed.selectivities(conditions, HELD, [elsewhere]) == observed.selectivities(conditions, HELD)


def test_what_was_made_and_what_told_a_condition() -> None:
    observed = probed([(1, 2), (2, 1), (3, 4)], [KEY_AB, KEY_BC], [1e-3, 1e-2], tuples=1000)
    made = 1000 * (HELD[1] + HELD[0]) * 1e-3
    assert observed.made(0b011) == pytest.approx(made, rel=0.01) and observed.made(0b110) == 0.0
    assert [observed.told(c) for c in (KEY_AB, KEY_BC, KEY_ABC)] == [2000, 1000, 3000]
