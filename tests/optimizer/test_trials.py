"""Plans on trial: a worse plan is left, and not taken again at once."""

from __future__ import annotations

import pytest

from eddyline.codec import packed, unpacked
from eddyline.optimizer.trials import Trials, TrialsSnapshot
from eddyline.optimizer.tuning import DEFAULT as TUNING
from eddyline.plan.tree import Tree, mjoin

WINDOW, LIMIT = 10.0, 1.5
LEFT, SAME = Tree((Tree((0, 1)), 2)), Tree((2, Tree((1, 0))))


def on_trial(trials: Trials, time: float = 100.0, changes: int = 1, cpu: float = 0.2) -> Trials:
    """Start a trial, and let a window and enough batches pass, so that it is over."""
    trials.begin(mjoin(3), LEFT, cpu, changes)
    trials.new_plan(SAME, time)
    for _ in range(TUNING.trial_batches):
        trials.batch()
    return trials


def test_a_trial_is_a_window_and_some_batches() -> None:
    trials = Trials(WINDOW)
    trials.begin(mjoin(3), LEFT, 0.2, 1)
    for _ in range(TUNING.trial_batches):
        trials.batch()
    assert not trials.due(1000.0), "the plan has not been changed"
    trials.new_plan(LEFT, 100.0)
    assert not trials.due(1000.0), "no batch"
    for _ in range(TUNING.trial_batches):
        trials.batch()
    assert not trials.due(109.9) and trials.due(110.0)
    assert not trials.verdict(LIMIT, 0.3, 110.0, 1) and not trials.due(200.0)


def test_another_plan_than_that_on_trial_ends_it() -> None:
    trials = on_trial(Trials(WINDOW))
    trials.new_plan(mjoin(3), 105.0)
    assert trials.now is None and not trials.due(1000.0)


def test_without_a_measurement_there_is_none() -> None:
    trials = on_trial(Trials(WINDOW), cpu=0.0)
    assert not trials.due(1000.0)


@pytest.mark.parametrize(("cpu", "worse"), [(0.29, False), (0.31, True)])
def test_worse_is_by_a_factor(cpu: float, worse: bool) -> None:
    trials = on_trial(Trials(WINDOW))
    assert trials.verdict(LIMIT, cpu, 110.0, 1) is worse
    assert trials.lost(SAME, 110.0, 1) is worse and not trials.lost(mjoin(3), 110.0, 1)


def test_what_lost_rests_until_statistics_change_and_some_time_has_passed() -> None:
    trials = on_trial(Trials(WINDOW))
    trials.verdict(LIMIT, 1.0, 110.0, 1)
    until = 110.0 + TUNING.rest * WINDOW
    assert trials.lost(LEFT, until - 0.1, 2) and trials.lost(LEFT, until + 1000.0, 1)
    assert not trials.lost(LEFT, until, 2)


def test_a_tree_that_loses_again_rests_twice_as_long() -> None:
    trials, time, rests = Trials(WINDOW), 0.0, []
    for changes in range(1, 6):
        on_trial(trials, time, changes)
        assert trials.verdict(LIMIT, 1.0, time, changes)
        rests.append(next(rest for rest in range(10_000) if not trials.lost(LEFT, time + rest, changes + 1)))
        time += rests[-1]
    assert rests == [TUNING.rest * WINDOW * 2**n for n in range(5)]
    on_trial(trials, time, 9)
    assert not trials.verdict(LIMIT, 0.1, time, 9), "the plan won its trial"
    on_trial(trials, time, 9)
    trials.verdict(LIMIT, 1.0, time, 9)
    assert not trials.lost(LEFT, time + TUNING.rest * WINDOW, 10), "its losses are forgotten"


def test_other_statistics_tell_nothing() -> None:
    trials = on_trial(Trials(WINDOW))
    assert not trials.verdict(LIMIT, 9.0, 110.0, 2) and not trials.lost(LEFT, 110.0, 2)


def test_saved_and_restored() -> None:
    trials = on_trial(Trials(WINDOW))
    trials.verdict(LIMIT, 9.0, 110.0, 1)
    on_trial(trials, 200.0, 2)
    again = Trials(WINDOW)
    again.restore(unpacked(packed(trials.saved()), TrialsSnapshot))
    assert again.saved() == trials.saved() and again.now == trials.now and again.due(210.0)
    assert again.lost(LEFT, 111.0, 2)
