from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from time import perf_counter

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.expr import Expr
from eddyline.optimizer import calibrate as calibration
from eddyline.optimizer.calibrate import LEAST, calibrate
from eddyline.optimizer.costs import DEFAULTS, StepCosts
from eddyline.testing.clock import ManualClock


def test_everything_is_measured() -> None:
    costs = calibrate(perf_counter)
    for name in StepCosts.names():
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


def test_the_condition_of_a_pair_is_part_of_its_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second for every row for which a condition is evaluated; nothing else takes time."""
    clock, evaluate = ManualClock(), calibration.mask

    def slow(expr: Expr, env: Mapping[Expr, pa.Array], rows: int, errors: ErrorCount) -> NDArray[np.bool_]:
        clock.advance(float(rows))
        return evaluate(expr, env, rows, errors)

    monkeypatch.setattr(calibration, "mask", slow)
    costs = calibrate(clock)
    assert costs.probe_list_row == 1.0 and costs.probe_hash == costs.match == LEAST
