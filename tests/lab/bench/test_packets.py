"""The windows of `bench packets` are full, and a probe finds as many rows as the selectivity says."""

from __future__ import annotations

import pytest

from lab.batch_driver import BatchDriver
from lab.bench import packets
from lab.bench.counted import counts_of
from lab.bench.packets import CELLS, Cell
from lab.bench.streams import query_over


@pytest.mark.parametrize("quiet", [False, True])
def test_a_probe_of_a_filled_window_finds_what_it_should(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "FILL_MATCHES", 0 if quiet else 10**9)
    cell = Cell(4000, 4)
    assert cell.quiet == quiet
    side = packets._FilledEngine(query_over(cell.rows(0, 1), cell.select()), cell, None)
    if quiet:
        assert counts_of(side.engine).matches == 0, "the filled rows never meet"
    assert [stem.held for stem in side.engine.slot.executor.stems] == pytest.approx([4000] * 3, abs=2)
    filled = _first_steps(side.engine)
    _, found = side.take(cell.rows(4000, 400))
    for before, after in zip(filled, _first_steps(side.engine), strict=True):
        tuples, matches = after[0] - before[0], after[1] - before[1]
        assert tuples == 400
        assert matches / tuples == pytest.approx(4, rel=0.2)
    streams = 2 if quiet else 3
    assert found / (streams * 400) == pytest.approx(4 * 4, rel=0.2)


def _first_steps(engine: BatchDriver) -> list[tuple[int, int]]:
    """For each source the tuples and the matches of its rows' first probe."""
    entries = engine.slot.executor.eddy.routes.entries
    steps = [entries[(1 << source, 0)].steps for source in range(3)]
    return [(sum(t.tuples for t in s), sum(t.produced for t in s)) for s in steps]


def test_cells_cover_what_is_asked() -> None:
    assert len(CELLS) == 19
    assert {c.window for c in CELLS} == {10**2, 10**3, 10**4, 10**5, 10**6}
    assert all(c.domain >= 2 for c in CELLS)
