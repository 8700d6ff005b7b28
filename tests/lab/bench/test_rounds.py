"""Taking turns, and what may be chosen in a benchmark."""

from __future__ import annotations

import pytest

from eddyline.errors import InternalError, SettingError
from lab import bench
from lab.bench.rounds import quickest, race, ratio


def test_sides_take_turns_and_only_the_best_go_on() -> None:
    calls: list[str] = []

    def side(name: str, spins: int) -> int:
        calls.append(name)
        sum(range(spins))
        return 7

    sides = {
        "me": lambda: side("me", 1000),
        "slow": lambda: side("slow", 3_000_000),
        "quick": lambda: side("quick", 0),
    }
    times = race(sides, 2, "me", finalists=1, final_rounds=2)
    assert calls[:6] == ["me", "slow", "quick", "quick", "slow", "me"]
    assert sorted(calls[6:]) == ["me", "me", "quick", "quick"]
    assert quickest(times, ["slow", "quick"]) == ["quick", "slow"]
    assert ratio({"a": [2.0, 9.0, 4.0], "b": [1.0, 3.0, 4.0]}, "a", "b") == 2.0
    with pytest.raises(InternalError, match="disagree"):
        race({"a": lambda: 1, "b": lambda: 2}, 1, "a")


@pytest.mark.parametrize(
    ("name", "chosen", "said"),
    [
        ("memory", {"part": "x"}, "--part: the benchmark memory has nothing to choose there"),
        ("start", {"part": "x"}, "--part x: the parts of this benchmark are local, spark, first"),
        ("packets", {"seed": 1}, "--seed: the benchmark packets has nothing to choose there"),
        ("router", {"part": "x"}, "--part x: the parts of this benchmark are stable, quick, drifting"),
        ("spark", {"part": "x"}, "--part x: the parts of this benchmark are throughput, small, jvm, attach, placement"),
        ("packets", {"part": "7"}, "--part 7: the parts of this benchmark are 100, 1000, 10000, 100000, 1000000, per-"),
    ],
)
def test_what_cannot_be_chosen_is_refused(name: str, chosen: dict[str, object], said: str) -> None:
    with pytest.raises(SettingError) as refused:
        bench.run(name, **chosen)
    assert str(refused.value).startswith(said)
