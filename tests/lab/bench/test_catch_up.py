"""The benchmark runs, and a slot elsewhere really begins with nothing."""

from __future__ import annotations

from typing import Any

import pytest

from eddyline.protocol import restoring as module
from lab.bench import catch_up


def test_a_slot_elsewhere_is_made_from_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    restored: list[int] = []
    original = module.restore

    def restore(home: module.Home, slot: module.Slot, number: int, version: int, *moved: Any) -> bool:
        restored.append(version)
        return original(home, slot, number, version, *moved)

    monkeypatch.setattr(module, "restore", restore)
    monkeypatch.setattr(catch_up, "SIZES", (3000,))
    results = catch_up.run()
    assert restored == [0, *[catch_up.BATCHES] * catch_up.ROUNDS, 0, 0, *[catch_up.BATCHES] * catch_up.ROUNDS]
    assert len(results) == 4 * len(catch_up.SLOTS) and results[0].case == "3,000 rows in the log, 1 slot"
