"""`bench watching`, small: both sides do the same, and the planner is timed while it looks for plans."""

from __future__ import annotations

import pytest

from eddyline.errors import InternalError
from lab import bench
from lab.bench import watching


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ROUNDS": 1, "SECONDS": 3.0, "RATE": 5000.0}.items():
        monkeypatch.setattr(watching, name, value)


def test_all_of_it() -> None:
    found = {(r.case, r.metric): r for r in bench.run("watching")}
    assert {case for case, _ in found} == set(watching.JOINS)
    assert all((r.ok is None) == (r.bar is None) for r in found.values())
    for case in watching.JOINS:
        parts = [found[case, f"share of {part}"].value for part in ("watching", "looking for plans")]
        assert all(0 < part < 1 for part in parts)
        assert found[case, "share of watching and looking for plans"].value == pytest.approx(sum(parts))
        assert found[case, "CPU / without the optimizer"].value > 0


def test_a_plan_that_changes_is_no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "JOINS", {"multiplies": (((0, 1), (0, 2), (1, 3)), (0.1, 8.0, 8.0))})
    with pytest.raises(InternalError, match="was taken"):
        bench.run("watching")
