"""`bench recording`, small: both sides do the same, and the recorder's time is a part of its side's."""

from __future__ import annotations

import pytest

from lab import bench
from lab.bench import recording


def test_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ROUNDS": 1, "SECONDS": 1.0, "RATE": 5000.0, "BATCHES": {"batches": 0.1}}.items():
        monkeypatch.setattr(recording, name, value)
    found = {(r.case, r.metric): r for r in bench.run("recording")}
    assert {case for case, _ in found} == {f"{join}, batches" for join in recording.JOINS}
    for (_, metric), result in found.items():
        assert result.value > 0 and result.ok is not None
        assert metric == "CPU / without a record" or result.value < 1
