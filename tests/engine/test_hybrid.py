"""Whether indexes are asked while a scan is under way: `Hybrid` with a clock that the test moves."""

from __future__ import annotations

from eddyline.engine.lookups.hybrid import Hybrid, HybridTurn
from eddyline.engine.tuning import ENGINE
from lab.experiments.timed_lookups import Clock


class _Table:
    """A scan that brings parts of 100 rows, and an index."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.hybrid = Hybrid(self.clock, ENGINE)
        self.hybrid.scanned(100, 64, 0)

    def window(self, seconds: float, wanted: int, keys: int) -> HybridTurn | None:
        """Parts come until scan and index are compared."""
        for _ in range(ENGINE.hybrid_parts):
            self.clock.now += seconds / ENGINE.hybrid_parts
            self.hybrid.scanned(100, 64, wanted)
        self.hybrid.answered(keys)
        return self.hybrid.look(owes=True)


def test_an_index_that_brings_more_is_asked() -> None:
    table = _Table()
    assert table.window(1.0, wanted=8, keys=100) is None and table.hybrid.sends, "50 of 400 rows are wanted"


def test_an_index_is_left_if_the_scan_is_faster_without_it() -> None:
    table = _Table()
    change = table.window(2.0, wanted=32, keys=100)
    assert change is not None and not table.hybrid.sends
    assert "50 by the indexes and 100 by the scan" in change.why
    assert table.window(1.0, wanted=32, keys=0) is None and not table.hybrid.sends, "200 in place of 150"


def test_an_index_that_does_not_disturb_the_scan_is_asked_again() -> None:
    table = _Table()
    assert table.window(2.0, wanted=32, keys=100) is not None
    assert table.window(2.0, wanted=32, keys=0) is not None and table.hybrid.sends
    for _ in range(ENGINE.hybrid_windows - 1):
        assert table.window(2.0, wanted=32, keys=100) is None
    assert table.window(2.0, wanted=32, keys=100) is None
    assert table.window(2.0, wanted=32, keys=100) is not None, "it is tried again"


def test_an_index_is_asked_again_if_the_scan_brings_what_nobody_wants() -> None:
    table = _Table()
    table.window(2.0, wanted=32, keys=100)
    assert table.window(1.0, wanted=4, keys=0) is not None and table.hybrid.sends


def test_a_scan_that_stalls_is_left() -> None:
    table = _Table()
    table.window(2.0, wanted=32, keys=100)
    assert table.hybrid.look(owes=True) is None
    table.clock.now += 10
    change = table.hybrid.look(owes=True)
    assert change is not None and table.hybrid.sends and change.why == "the scan has brought nothing for 10 s"


def test_an_index_that_owes_nothing_is_not_left() -> None:
    table = _Table()
    for _ in range(ENGINE.hybrid_parts):
        table.clock.now += 1
        table.hybrid.scanned(100, 64, 64)
    assert table.hybrid.look(owes=False) is None and table.hybrid.sends
