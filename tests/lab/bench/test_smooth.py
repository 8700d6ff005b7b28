"""`bench smooth`, small: batches before a change and while it goes on, and bars where they belong."""

from __future__ import annotations

import pytest

from eddyline.errors import InternalError
from lab import bench
from lab.bench import smooth
from lab.bench.timed_joins import timed_join


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RATE": 500.0, "WINDOW": 1.0, "AT": 1.5, "SECONDS": 3.0, "BATCH": 0.05}.items():
        monkeypatch.setattr(smooth, name, value)


def test_all_of_it() -> None:
    found = {(r.case, r.metric): r for r in bench.run("smooth")}
    for how in (smooth.MOVING, smooth.PARALLEL):
        assert found[how, "longest without results, CPU"].bar == 100
    assert found[smooth.PAUSING, "longest without results, CPU"].bar is None
    recomputed = found[smooth.MOVING, "tuples recomputed"]
    assert recomputed.value == pytest.approx(500 * 4, rel=0.15) and recomputed.ok is False


def test_gaps_are_those_before_and_those_while_it_goes_on() -> None:
    join = timed_join((500.0,) * 3, ((0, 1), (1, 2)), (4.0, 4.0), 3.0, 1.0, seed=3)
    parallel, pausing = smooth.gaps(join, smooth.PARALLEL), smooth.gaps(join, smooth.PAUSING)
    assert len(parallel.before) == len(pausing.before) == pytest.approx(1.0 / 0.05, abs=1)
    assert len(pausing.during) == 1 and len(parallel.during) == pytest.approx(1.0 / 0.05, abs=2)
    assert parallel.results == pausing.results


def test_a_change_that_does_not_end_is_said() -> None:
    join = timed_join((500.0,) * 3, ((0, 1), (1, 2)), (4.0, 4.0), 2.0, 1.0, seed=3)
    with pytest.raises(InternalError, match="still"):
        smooth.gaps(join, smooth.PARALLEL)
