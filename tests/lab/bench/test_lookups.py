"""`bench lookups`, small: all sides find the same rows, and the ratio has the bar."""

from __future__ import annotations

import pytest

from eddyline.errors import SettingError
from lab.bench import lookups
from lab.servers.postgres import NoPostgres, binaries

pytest.importorskip("psycopg")


def test_all_sides_find_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        binaries()
    except NoPostgres as reason:
        pytest.skip(f"PostgreSQL: {reason}")
    for name, value in {"ROWS": 1000, "KEYS": 800, "SINGLE_KEYS": 50, "ROUNDS": 1, "BATCH": 100}.items():
        monkeypatch.setattr(lookups, name, value)
    results = lookups.run("server")
    assert len({result.case for result in results}) == 6
    barred = [result for result in results if result.bar is not None]
    assert [r.case for r in barred] == ["access modules", "engine, every key once"]
    assert all(r.bar == lookups.BAR and r.value > 0 for r in barred)


def test_parts() -> None:
    with pytest.raises(SettingError, match="there is no part redis; there is server, cached"):
        lookups.run("redis")
