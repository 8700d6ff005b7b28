from __future__ import annotations

from math import isfinite
from time import perf_counter

import pytest

from eddyline.optimizer.calibrate import LEAST, calibrate
from eddyline.optimizer.costs import DEFAULTS, Costs
from eddyline.testing.clock import ManualClock


def test_everything_is_measured() -> None:
    costs = calibrate(perf_counter)
    for name in Costs.names():
        assert getattr(costs, name) > 0 and isfinite(getattr(costs, name)), name
    assert costs.index_bytes == calibrate(ManualClock()).index_bytes
    assert 8 <= costs.index_bytes <= 64


def test_a_clock_that_shows_nothing() -> None:
    assert calibrate(ManualClock()).match == LEAST


def test_corrected_by_what_was_measured() -> None:
    corrected = DEFAULTS.scaled({"match": 3.0, "probe_hash": 0.5})
    assert (corrected.match, corrected.probe_hash) == (DEFAULTS.match * 3, DEFAULTS.probe_hash / 2)
    assert corrected.insert_row == DEFAULTS.insert_row
    with pytest.raises(AttributeError):
        DEFAULTS.scaled({"luck": 2.0})
