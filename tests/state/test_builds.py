"""Builds: how many rows existed when a packet was built, compared with a list of all builds."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.state.builds import Builds, Unordered


@pytest.mark.parametrize("first", [0, 7])
def test_many_builds_beside_a_list(first: int) -> None:
    rng, builds, twin, number, rows = np.random.default_rng(first), Builds(first), list[tuple[int, int]](), 0, first
    for _ in range(500):
        number, size = number + int(rng.integers(0, 5)), int(rng.integers(1, 9))
        assert builds.add(number, size) == (rows, rows + size)
        twin.append((number, rows))
        number, rows = number + size, rows + size
    asked = np.arange(number + 2)
    wanted = [next((before for other, before in twin if other >= at), rows) for at in asked.tolist()]
    assert builds.before(asked).tolist() == wanted and builds.rows == rows


def test_builds_are_forgotten_at_a_commit_and_undone_by_winding_back() -> None:
    builds = Builds()
    builds.add(0, 5)
    builds.commit()
    assert builds.before(np.array([0, 9])).tolist() == [5, 5]
    builds.add(9, 2)
    assert builds.before(np.array([9, 10])).tolist() == [5, 7]
    builds.wind_back()
    assert builds.rows == 5 and builds.before(np.array([10])).tolist() == [5]


def test_rows_that_are_passed_over_count_as_built_before_the_last_commit() -> None:
    builds = Builds(2)
    builds.skip(6)
    builds.skip(3)
    builds.add(0, 1)
    builds.wind_back()
    assert builds.rows == builds.mark == 6


def test_a_snapshot_has_the_counts_alone() -> None:
    builds, again = Builds(), Builds()
    builds.add(0, 5)
    builds.commit()
    builds.add(5, 3)
    again.add(0, 1)
    again.restore(builds.saved())
    assert again.before(np.array([0, 5, 99])).tolist() == [8, 8, 8]
    again.wind_back()
    assert again.rows == 5


def test_without_an_order_all_rows_were_there() -> None:
    builds = Builds()
    shown = Unordered(builds)
    builds.add(50, 4)
    assert shown.rows == 4 and shown.before(np.array([0, 99])).tolist() == [4, 4]
