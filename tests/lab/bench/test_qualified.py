"""`bench qualified`, small: all plans give the same results, and the limits are between what was measured."""

from __future__ import annotations

import pytest

from lab import bench
from lab.bench import qualified


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ROUNDS": 1, "SECONDS": 3.0, "RATES": (570, 440, 510, 760)}.items():
        monkeypatch.setattr(qualified, name, value)


def test_all_of_it() -> None:
    found = {(r.case, r.metric): r for r in bench.run("qualified")}
    assert found["multi-way join", "CPU / limit"].value == pytest.approx(1 / 0.85)
    assert found[f"binary tree {qualified.BINARY}", "memory / limit"].value == pytest.approx(1 / 0.85, rel=0.01)
    assert [r.metric for r in found.values() if r.bar is not None] == [
        "CPU / limit",
        "memory / limit",
        "throughput / multi-way join",
    ]
