"""Every experiment in a tiny version, and the parts they share. Nothing here is timed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eddyline.errors import InternalError, JobError, SettingError
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.experiments import EXPERIMENTS, Figure, chosen, overheads, rounds, teddies
from lab.experiments.chart import Chart, draw
from lab.experiments.rounds import Turns, ratio, take_turns
from lab.experiments.table import Table

PAGE = Path(__file__).parents[3] / "lab" / "reproduce.md"
SIGNATURE = b"\x89PNG"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(teddies, "_QUICK_STEPS", 200)
    monkeypatch.setattr(overheads, "_QUICK_ROWS", 20)
    yield


SLOW = {
    "balance-plans",
    "balance-plans-state",
    "balance-stages",
    "balance-ways",
    "balance-ways-late",
    "migration-1",
    "migration-3",
    "migration-4",
    "migration-7",
    "plans-1",
    "spill-6",
    "spill-7",
    "spill-alternating",
}
"""Experiments whose tiny versions still run for seconds."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name in SLOW else name for name in EXPERIMENTS]
)
def test_tiny_version(name: str, tiny: None, tmp_path: Path) -> None:
    said: list[str] = []
    figure: Figure = EXPERIMENTS[name].run(True, said.append)
    assert said
    assert figure.table.rows
    figure.table.write(tmp_path / "x.csv")
    header, *lines = (tmp_path / "x.csv").read_text().splitlines()
    assert f"`{name}.csv`: {', '.join(f'`{column}`' for column in header.split(','))}" in PAGE.read_text(
        encoding="utf-8"
    )
    assert len(lines) == len(figure.table.rows)
    assert all(points for points in figure.chart.series.values())
    drawn = {x for points in figure.chart.series.values() for x, _ in points}
    assert drawn <= {row[0] for row in figure.summary().rows}
    pytest.importorskip("matplotlib")
    draw(figure.chart, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(SIGNATURE)


def test_unknown_names() -> None:
    assert [e.name for e in chosen("all")] == list(EXPERIMENTS)
    with pytest.raises(SettingError, match="there is no experiment 'fig7'; there is teddies-6, "):
        chosen("fig7")


def test_sides_take_turns_by_micro_batch_and_must_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "LEAST", 0.0)
    order: list[str] = []
    engine = BatchDriver(teddies._job(1, 1).query, Settings())

    def side(name: str, rows: int) -> Callable[[], Turns]:
        def turns() -> Turns:
            for _ in range(2):
                order.append(name)
                yield
            return (rows, None), engine

        return turns

    seconds, engines = take_turns({"a": side("a", 1), "b": side("b", 1)}, quick=False)
    assert order == ["a", "b", "a", "b"] * rounds.ROUNDS
    assert {name: len(times) for name, times in seconds.items()} == {"a": rounds.ROUNDS, "b": rounds.ROUNDS}
    assert set(engines) == {"a", "b"}
    with pytest.raises(InternalError, match="disagree"):
        take_turns({"a": side("a", 1), "b": side("b", 2)}, quick=True)


def test_ratio_is_the_median_of_the_rounds() -> None:
    assert ratio([1.0, 30.0, 3.0], [1.0, 10.0, 2.0]) == 1.5


def test_a_burdened_router_counts_at_every_decision() -> None:
    job = teddies._job(1, 100)
    routers: list[teddies.Busy] = []

    def burden(engine: BatchDriver) -> None:
        teddies._burden(5, engine)
        routers.append(engine.slot.executor.eddy._router)

    settings = Settings(router="random", packet=1, input_batch=1, reroute_every=1)
    answer, engine = job.run(settings, burden)
    assert answer == job.run(settings)[0]
    assert routers[0].counter == 5 * teddies._steps(engine)


def test_selectivity_is_what_a_probe_finds() -> None:
    _, engine = teddies._job(4, 2000).run(Settings(router="random", packet=None, input_batch=1, reroute_every=1))
    assert teddies._found(engine) == pytest.approx(4, rel=0.15)


def test_every_row_passes_and_joins_once() -> None:
    batch = overheads.tenk(50, 1)
    assert sorted(batch.column("unique2").to_pylist()) == list(range(50))
    assert all(max(batch.column(name).to_pylist()) < limit for name, limit in overheads._LIMITS.items())
    data = {f"tenk{i}": overheads.tenk(50, i) for i in (1, 2, 3)}
    where = "tenk1.unique2 = tenk2.unique2 AND tenk1.unique2 = tenk3.unique2"
    text = f"SELECT COUNT(*) AS n FROM tenk1, tenk2, tenk3 WHERE {where}"
    for tables in ([], ["tenk2", "tenk3"]):
        assert overheads._job(data, text, tables).run(overheads._static(overheads.LARGE))[0] == (1, (50,))


def test_one_row_of_ten_asks_and_finds_one_row_in_each_table() -> None:
    data = {f"hundredk{i}": overheads.tenk(50, i) for i in (1, 2, 3)}
    answer, engine = overheads._asking(data, 10).run(overheads._static(overheads.LARGE))
    assert answer[0] == 5
    assert [stem.held for stem in engine.slot.executor.stems[1:]] == [5, 5]


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(JobError, match="matplotlib"):
        draw(Chart("t", "x", "y", {"a": [(1, 1.0)]}), tmp_path / "x.png")


def test_a_row_has_as_many_values_as_columns() -> None:
    with pytest.raises(ValueError, match="1 values for 2 columns"):
        Table(("a", "b")).add(1)
