"""Which groups leave memory, by policy."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.settings import TABLE as SETTINGS
from eddyline.spill.accounts import TABLE, Table
from eddyline.spill.policy import INACTIVE, POLICIES, leaving


def table(*rows: tuple[int, int, float, int]) -> Table:
    """Accounts of (group, bytes, results, idle)."""
    return np.array([(group, size // 10, size, results, idle, 0) for group, size, results, idle in rows], TABLE)


SOME = table(
    (0, 100, 50.0, 0),
    (1, 400, 100.0, 0),
    (2, 300, 300.0, 3),
    (3, 200, 900.0, INACTIVE + 5),
    (4, 200, 10.0, INACTIVE + 1),
    (5, 0, 10.0, 0),
)


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("productivity", [3, 4, 1, 0, 2]),
        ("largest", [1, 2, 3, 4, 0]),
        ("inactive", [3, 4, 2, 1, 0]),
        ("most-productive", [3, 2, 0, 1, 4]),
    ],
)
def test_the_order_of_a_policy(policy: str, order: list[int]) -> None:
    assert leaving(policy, SOME, 10**9, 1000)["group"].tolist() == order


def test_as_many_leave_as_needed() -> None:
    assert [len(leaving("largest", SOME, least, 1000)) for least in (0, 1, 400, 401, 700, 1199, 1200)] == [
        0, 1, 1, 2, 2, 5, 5,
    ]  # fmt: skip


def test_random_is_a_function_of_the_seed() -> None:
    some = table(*((group, 100, 0.0, 0) for group in range(100)))
    one, again, other = (leaving("random", some, 1000, 1000, seed)["group"].tolist() for seed in (1, 1, 2))
    assert one == again != other and len(set(one)) == 10


def test_without_groups_none_leaves() -> None:
    assert all(leaving(policy, table(), 100, 1000).size == 0 for policy in POLICIES)


def test_every_policy_is_a_setting() -> None:
    (policy,) = (setting for setting in SETTINGS if setting.key == "spill_policy")
    assert set(POLICIES) == set(policy.kind.values.split(", "))
