"""Groups move by moving state, unless a parallel track costs less and its end may wait."""

from __future__ import annotations

import pytest

from eddyline.balance.way import chosen_way


@pytest.mark.parametrize(
    ("changed", "way"),
    [
        ({}, "moving-state"),
        ({"arriving": 100.0}, "parallel-track"),
        ({"arriving": 100.0, "measure": "memory"}, "moving-state"),
        ({"arriving": 100.0, "window": None}, "moving-state"),
        ({"arriving": 4000.0}, "parallel-track"),
        ({"arriving": 6000.0}, "moving-state"),
        ({"mode": "parallel-track"}, "parallel-track"),
        ({"mode": "parallel-track", "measure": "memory"}, "moving-state"),
        ({"mode": "parallel-track", "window": None}, "moving-state"),
        ({"mode": "moving-state", "arriving": 100.0}, "moving-state"),
    ],
)
def test_the_way(changed: dict, way: str) -> None:
    case = {"mode": "auto", "measure": "cpu", "rows": 1e6, "arriving": 1e4, "window": 60.0}
    found = chosen_way(**{**case, **changed}, open_cost=0.3)
    assert found.way == way
    assert found.why


def test_nothing_moves_with_off() -> None:
    with pytest.raises(ValueError, match="balance=off"):
        chosen_way("off", "cpu", 1, 1, 1, 1)
