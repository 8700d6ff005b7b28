"""A share of `./run chaos`: few kills, but real ones."""

from __future__ import annotations

import pytest

from eddyline.testing.chaos import Chaos


@pytest.mark.long
def test_killed_on_spark_while_groups_move() -> None:
    chaos = Chaos("spark", seed=9, balance=True)  # the first kill is where groups move
    chaos.run(1)
    assert chaos.wrong == []
    assert chaos.kills == 1 and chaos.moving and chaos.moved


@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.long)])
def test_killed_on_spark(kills: int) -> None:
    chaos = Chaos("spark", seed=62)  # a driver, then a worker, then the JVM
    chaos.run(kills)
    assert chaos.wrong == []
    assert chaos.kills == kills
