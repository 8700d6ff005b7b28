"""Figure 12 of paper 001, small: index and scan together."""

from __future__ import annotations

from lab.experiments.hybrid import INDEX, SCAN, behind, run
from lab.experiments.timed_run import Course


def test_both_together_are_never_behind() -> None:
    index, scan, both = (run(True, methods).results for methods in (INDEX, SCAN, f"{SCAN} {INDEX}"))
    assert index.total == scan.total == both.total == 100
    assert index.at(2.0) > scan.at(2.0) and index.end > scan.end, "the index is ahead first, the scan in the end"
    assert behind(both, (index, scan), 0.0) >= 0.9


def test_behind_is_that_at_the_worst_moment() -> None:
    hybrid, other = Course([1.0, 4.0], [5, 10]), Course([1.0, 3.0], [1, 10])
    assert behind(hybrid, (other,), 0.0) == 0.5
