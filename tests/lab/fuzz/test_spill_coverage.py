"""What the fuzzer reports about groups on disk."""

from __future__ import annotations

from collections import Counter
from math import ceil

import pytest

from lab.fuzz.generate import CaseKind
from lab.fuzz.main import Fuzzer
from lab.fuzz.spill_coverage import ENOUGH, LEAST, MISSED, too_low


@pytest.mark.long
def test_a_run_counts_what_its_cases_went_through() -> None:
    report = Fuzzer(3, kind=CaseKind(spill=True)).run(range(12))
    assert not report.failures and report.cases == 12
    assert 3 <= report.seen[MISSED] <= report.seen["groups on disk"] <= 12
    assert report.seen["crashed"] and any(what.startswith(f"{MISSED}, window") for what in report.seen)
    assert f"groups on disk {report.seen['groups on disk']}" in report.summary()


def test_a_run_without_spilling_reports_nothing_about_groups() -> None:
    report = Fuzzer(3).run(range(3))
    assert not report.seen and "groups:" not in report.summary()


def test_what_happens_too_seldom_is_named_in_a_long_run() -> None:
    usual = Counter({what: ceil(share * ENOUGH) for what, share in LEAST.items()})
    assert not too_low(usual, ENOUGH, LEAST)
    (said,) = too_low(usual - Counter({"warm again": 1}), ENOUGH, LEAST)
    assert said == "warm again: 84 of 500 cases, expected at least 85"
    assert not too_low(Counter(), ENOUGH - 1, LEAST)
    assert len(too_low(Counter(), ENOUGH, LEAST)) == len(LEAST)
