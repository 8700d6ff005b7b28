"""Figure 13 of paper 001, small: preferred rows first."""

from __future__ import annotations

from lab.experiments.hybrid import INDEX, SCAN, run
from lab.experiments.preferring import EARLY_RATE, PREFERRED, divided


def test_preferred_rows_come_in_a_quarter_of_the_time_and_no_row_is_lost() -> None:
    without, with_, later = (
        run(True, f"{SCAN} {INDEX}", rate=EARLY_RATE, prefer=prefer)
        for prefer in (None, {0.0: PREFERRED}, {2.0: PREFERRED})
    )
    for one in (without, with_, later):
        assert [course.total for course in divided(one)] == [5, 95]
    assert divided(with_)[0].end <= divided(without)[0].end / 4
    assert divided(with_)[0].end < divided(later)[0].end < divided(without)[0].end
    assert with_.probes("W").total == without.probes("W").total
