"""CI's share of `./run chaos`: few kills, but real ones."""

from __future__ import annotations

from eddyline.testing.chaos import Chaos


def test_killed_on_spark() -> None:
    chaos = Chaos("spark", seed=62)  # a driver, a worker, and the JVM twice
    chaos.run(4)
    assert chaos.wrong == []
    assert chaos.kills == 4
