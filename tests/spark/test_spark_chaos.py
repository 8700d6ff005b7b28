"""A share of `./run chaos`: few kills, but real ones."""

from __future__ import annotations

import pytest

from lab.chaos.main import Chaos


def test_killed_on_spark_while_groups_move() -> None:
    chaos = Chaos("spark", seed=9, balance=True, files=12)  # the first kill is where groups move
    chaos.run(1)
    assert chaos.wrong == []
    assert chaos.kills == 1 and chaos.moving and chaos.moved


@pytest.mark.parametrize(("victim", "seed"), [("jvm", 62), ("driver", 20), ("worker", 3)])
def test_killed_on_spark(victim: str, seed: int) -> None:
    chaos = Chaos("spark", seed, files=8)
    chaos.run(1)
    assert chaos.wrong == []
    assert chaos.victims == {victim: 1}
