"""The join with 99 % cached keys, small: both sides find the same rows, and the ratio has the bar."""

from __future__ import annotations

import pytest

from lab.bench import lookup_joins


def test_both_sides_find_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ROWS": 1000, "KNOWN": 50, "BATCH": 300, "ROUNDS": 1}.items():
        monkeypatch.setattr(lookup_joins, name, value)
    *throughputs, share = lookup_joins.cached()
    assert [result.unit for result in throughputs] == ["1/s", "1/s"]
    assert share.bar == lookup_joins.BAR and share.value > 0
