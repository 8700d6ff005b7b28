"""The accounts of groups of all slots, put together."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.spill.accounts import TABLE, Spillable
from eddyline.spill.group_table import GroupTable

Account = tuple[int, int, int, float, int]


def slot(*accounts: Account) -> Spillable:
    return Spillable(np.array([(*account, 0) for account in accounts], TABLE).tobytes())


def test_slots_are_added_up() -> None:
    groups = GroupTable((slot((3, 10, 100, 1.5, 4), (5, 1, 10, 0, 0)), slot((3, 20, 200, 2.25, 2))), frozenset([3, 9]))
    assert groups.as_dict() == {
        "count": 3,
        "on_disk": 2,
        "rows": 31,
        "bytes": 310,
        "list": {
            "group": [3, 5, 9],
            "rows": [30, 1, 0],
            "bytes": [300, 10, 0],
            "results": [3.8, 0.0, 0.0],
            "idle_batches": [2, 0, None],
            "on_disk": [True, False, True],
        },
    }


def test_nothing() -> None:
    assert GroupTable().as_dict()["count"] == 0 and GroupTable().as_dict()["list"]["group"] == []


@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_largest_groups_are_listed(most: int) -> None:
    told = GroupTable((slot((1, 1, 10, 0, 0), (2, 1, 30, 0, 0), (3, 1, 20, 0, 0)),)).as_dict(most)
    assert told["list"]["group"] == {1: [2], 2: [2, 3], 3: [1, 2, 3]}[most]
    assert (told["count"], told["bytes"]) == (3, 60), "the totals are of all groups"
