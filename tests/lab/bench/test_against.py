"""Two checkouts beside each other, with little data."""

from __future__ import annotations

from pathlib import Path

import pytest

from eddyline.errors import InternalError, SettingError
from lab.bench.against import CoreJoin, against

HERE = Path(__file__).parents[3]
JOIN = CoreJoin(
    "two-way",
    {"a": ["a"], "b": ["a"]},
    "SELECT a.v AS av, b.v AS bv FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.a = b.a",
    3000,
    100,
)


def test_a_checkout_beside_itself() -> None:
    results = against(str(HERE), [JOIN], 1000, pairs=1, runs=2)
    assert [result.case for result in results] == ["two-way"] * 2
    assert all(0.1 < result.value < 10 and result.ok == (result.value <= (result.bar or 0)) for result in results)


def test_a_checkout_with_other_results_is_noticed(tmp_path: Path) -> None:
    package, lab = tmp_path / "src/eddyline", tmp_path / "lab"
    for folder in (package, lab, lab / "bench"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").touch()
    (package / "settings.py").write_text("class Settings:\n    def __init__(self, memory): pass\n")
    streams = "def streams(*given, every): pass\ndef query_over(*given): pass\ndef run_engine(*given): return 1, None\n"
    (lab / "bench/streams.py").write_text(streams)
    with pytest.raises(InternalError, match="the sides disagree"):
        against(str(tmp_path), [JOIN], 1000, pairs=1, runs=1)


def test_what_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="there is no src/eddyline"):
        against(str(tmp_path), [JOIN], 1000)
    (tmp_path / "src/eddyline").mkdir(parents=True)
    (tmp_path / "src/eddyline/__init__.py").write_text("raise SystemExit")
    with pytest.raises(SettingError, match="cannot run the join"):
        against(str(tmp_path), [JOIN], 1000)
