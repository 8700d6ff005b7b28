from __future__ import annotations

from time import perf_counter

from eddyline.optimizer.calibrate_groups import calibrate_groups
from eddyline.optimizer.costs import StepCosts


def test_what_groups_cost_is_measured() -> None:
    found = calibrate_groups(perf_counter)
    assert found.keys() <= set(StepCosts.names())
    assert 0.0 < found["group_tuple"] < 1e-4 and 0.0 < found["group_packet"] < 1.0
