"""`bench migration`, small: both sides give the same results, and what is counted is after a change."""

from __future__ import annotations

import numpy as np
import pytest

from lab import bench
from lab.bench import migration
from lab.bench.migration import SideMeasurements


def test_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "RATE", 300.0)
    sides = migration.courses(migration.ONCE, 1.0)
    assert list(sides) == ["unchanged", "auto"] and sides["unchanged"].changes == ()
    assert all(len(course.cpu) == len(course.memory) == 8 for course in sides.values())
    assert sides["auto"].rows.sum() == 3 * 300 * 2


def test_what_is_counted_is_where_the_unchanged_plan_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    phase, lag = round(migration.SECONDS / migration.BATCH), round(migration.LAG * migration.WINDOW / migration.BATCH)

    def made(fan_outs: object, seconds: float) -> dict[str, SideMeasurements]:
        stays, auto = np.ones(2 * phase), np.ones(2 * phase)
        stays[phase + lag :], auto[phase : phase + lag] = 3.0, 100.0
        memory = np.full(2 * phase, 10.0)
        return {
            "unchanged": SideMeasurements(stays, memory, stays, ()),
            "auto": SideMeasurements(auto, memory / 4, stays, ((1.0, "(a b c)"),)),
        }

    monkeypatch.setattr(migration, "courses", made)
    monkeypatch.setattr(migration, "MANY", migration.ONCE)
    found = {r.metric: r for r in bench.run("migration")}
    assert found["throughput / unchanged plan, after the change"].value == 3.0
    assert found["memory / unchanged plan, after the change"].value == 0.25
    assert found["throughput / unchanged plan, from the first change to the end"].value < 1.0
    assert all(r.ok for r in found.values() if r.bar is not None)
