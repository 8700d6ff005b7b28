"""Reports of slots travel as bytes and become columns by slot and by group."""

from __future__ import annotations

import pytest

from eddyline.balance.reports import Loads, SlotReport, group_loads, shared_cpu
from eddyline.codec import packed, unpacked


def test_reports_become_columns() -> None:
    reports = [
        SlotReport(2, memory=50, cpu=1.0, rows_out=4, groups=group_loads([3], [5], [50], [4.0], [1.0])),
        SlotReport(0, memory=30, spilling=True, groups=group_loads([0, 3], [1, 2], [10, 20], [0, 1.0], [0, 0.5])),
    ]
    reports = [unpacked(packed(report), SlotReport) for report in reports]
    loads = Loads.of(reports, slots=3, groups=4)
    assert loads.memory.tolist() == [30, 0, 50]
    assert loads.known.tolist() == [True, False, True]
    assert loads.spilling.tolist() == [True, False, False]
    assert loads.group_bytes.tolist() == [10, 0, 0, 70], "two slots have a group while it moves by parallel track"
    assert loads.group_cpu.tolist() == [0, 0, 0, 1.5]


def test_a_report_of_a_slot_or_group_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="slot 3"):
        Loads.of([SlotReport(3)], 3, 4)
    with pytest.raises(ValueError, match="group 4"):
        Loads.of([SlotReport(0, groups=group_loads([4], [1], [1], [1], [1]))], 3, 4)


def test_no_report_at_all() -> None:
    assert Loads.of([], 2, 3).memory.tolist() == [0, 0]


def test_cpu_of_an_idle_slot_is_nobodys() -> None:
    assert shared_cpu(3.0, [0, 0], [0, 0]).tolist() == [0, 0]
