"""The state goes from process to process in the benchmark, and a state that is lost is no result."""

from __future__ import annotations

import pytest

from eddyline.errors import InternalError
from lab.bench import spark_attach


def test_each_turn_finds_the_state_that_the_other_process_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"STATE_ROWS": 2000, "WARM_UP": 1, "ROUNDS": 3}.items():
        monkeypatch.setattr(spark_attach, name, value)
    large, small, more = spark_attach.attach()
    assert large.case == "slot with 2,000 rows" and min(large.value, small.value) > 0
    assert more.bar == spark_attach.BAR_MS and more.ok == (more.value <= more.bar)


def test_a_lost_state_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_attach, "STATE_ROWS", 2001)  # an odd one cannot be shared by two streams
    with pytest.raises(InternalError, match="the large slot has 2020 rows in place of 2021"):
        spark_attach.attach()
