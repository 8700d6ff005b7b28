"""Quick versions of the experiments with groups that move: what the figures say holds there too, but times."""

from __future__ import annotations

from functools import cache

from lab.experiments import Figure, moving_groups
from lab.experiments.moving_groups import OFF


@cache
def figure(name: str) -> Figure:
    made: Figure = getattr(moving_groups, name)(True, lambda line: None)
    return made


def last(name: str) -> dict[str, float]:
    """The last point of each line."""
    return {side: points[-1][1] for side, points in figure(name).chart.series.items()}


def moves(name: str) -> dict[str, int]:
    return {str(row["side"]): int(row["moves"]) for row in figure(name).table.where(slot=0)}


def test_the_nearer_slots_must_be_the_more_often_groups_move() -> None:
    found = moves("figure_14")
    assert found[OFF] == 0 < found["50 %, 45 s"] < found["80 %, 45 s"]
    assert moves("figure_15")["90 %, 45 s"] <= found["90 %, 45 s"]


def test_slots_that_are_busy_in_turns_hold_as_much() -> None:
    apart = {}
    lines = {side: [value for _, value in points] for side, points in figure("figure_16").chart.series.items()}
    for name in (OFF, "90 %, 15 s"):
        pairs = zip(lines[f"M1, {name}"], lines[f"M2, {name}"], strict=True)
        apart[name] = min(min(pair) / max(pair) for pair in pairs)
    assert apart[OFF] < 0.3 and apart["90 %, 15 s"] > 0.7


def test_where_memory_is_enough_groups_that_move_stay_in_memory() -> None:
    found = last("figure_17")
    assert found["relocation"] > 1.2 * found[OFF]


def test_lazy_disk_makes_more_results_at_run_time() -> None:
    found = last("figure_20")
    assert found["lazy-disk"] > 1.1 * found[OFF]


def test_slots_are_forced_to_spill() -> None:
    assert list(last("figure_21")) == ["lazy-disk", "active-disk", "auto"]
    assert moves("figure_21")["active-disk"] > moves("figure_21")["lazy-disk"]
