"""Random cases have borrowed windows in all spellings, and the fuzzer finds a wrong boundary."""

import re

import pytest

from eddyline.bound.slide import Slide
from eddyline.cql.script import parse
from lab.fuzz.generate import CaseKind, generate
from lab.fuzz.main import Fuzzer, case_seed

WINDOWS = CaseKind(windows=True)
SPELLINGS = [
    r"\[TUMBLE ", r"\[HOP .* OFFSET", r"\[CUMULATE ", r"FROM TUMBLE\(", r" HOP\(s", r"TABLE\(CUMULATE\(",
    r"GROUP BY .*(TUMBLE|HOP)\(", r"GROUP BY .*window\(", r"INTERVAL '-", r"window_time", r"window\.start",
    r"\[ROWS \d+\]",
]  # fmt: skip


def test_every_spelling_is_drawn() -> None:
    texts = [generate(case_seed(5, index), WINDOWS).script for index in range(200)]
    assert [spelling for spelling in SPELLINGS if not any(re.search(spelling, text) for text in texts)] == []
    for text in texts:
        parse(text)


def test_the_fuzzer_finds_nothing() -> None:
    report = Fuzzer(11, shrink_seconds=0, kind=WINDOWS).run(range(12))
    assert not report.failures and report.features["borrowed windows"] > 6


def test_the_fuzzer_notices_boundaries_that_are_a_microsecond_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eddyline.bound.bind.borrowed", lambda size, step, offset: Slide(step, offset % step, 1))
    assert Fuzzer(11, shrink_seconds=0, kind=WINDOWS).run(range(30)).failures
