"""A slot chooses plans with marks: it groups early (`+`) and holds selections back (`!`) where that pays, and only
there; the results are the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.expr import SourceColumn
from eddyline.bound.udf import udf
from eddyline.engine.planner import Planner, held
from eddyline.engine.sampled import distinct
from eddyline.engine.slot import Slot
from eddyline.engine.tuning import Tuning
from eddyline.optimizer.costs import DEFAULTS
from eddyline.optimizer.tuning import OptimizerTuning
from eddyline.plan.tree import parse_tree
from eddyline.settings import Settings
from eddyline.testing.clock import ManualClock
from lab.batch_driver import BatchDriver
from tests.support.jobs import TIME, Row, bound, tuples

SECOND = 1_000_000
CLOCK = ManualClock()
"""Only user functions take time, so costs are known beforehand."""


FIXED = Tuning(optimizer=OptimizerTuning(costs=DEFAULTS))


def register() -> None:
    @udf(returns=pa.bool_(), name="marked_dear")
    def dear(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        CLOCK.advance(len(x) * 6e-6)
        return (x + y) % 15 == 0

    @udf(returns=pa.bool_(), name="marked_cheap")
    def cheap(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        CLOCK.advance(len(x) * 1e-9)
        return (x + y) % 15 == 0


register()


@dataclass(frozen=True)
class World:
    """A query, the rows per second of each stream, the number of values of each column, the seconds of a batch and of
    the run."""

    select: str
    rates: Mapping[str, int]
    values: Mapping[str, Mapping[str, int]]
    batch: float = 0.1
    seconds: float = 7.0

    def engine(self, **settings: object) -> BatchDriver:
        columns = {name: " ".join(values) for name, values in self.values.items()}
        return BatchDriver(bound(self.select, None, (), **columns), Settings(**settings), CLOCK, tuning=FIXED)

    def batches(self) -> Iterator[list[tuple[str, pa.RecordBatch]]]:
        rng = np.random.default_rng(3)
        for at in range(round(self.seconds / self.batch)):
            made = []
            for name, rate in self.rates.items():
                rows = round(rate * self.batch)
                times = round(at * self.batch * SECOND) + np.arange(rows) * (SECOND // rate)
                drawn = {column: rng.integers(0, count, rows) for column, count in self.values[name].items()}
                made.append((name, pa.record_batch({"ts": pa.array(times, TIME), **drawn})))
            yield made

    def run(self, **settings: object) -> tuple[list[Row], list[str], Slot]:
        """The rows, the plan after each batch, and the slot."""
        engine, rows, shapes = self.engine(**settings), list[Row](), list[str]()
        for batch in self.batches():
            rows += tuples(engine.batch(batch).results)
            shapes.append(engine.slot.executor.plan.text)
        return sorted(rows + tuples(engine.end().results), key=repr), shapes, engine.slot


S = "[RANGE 1 SECONDS SLIDE 500 MILLISECONDS]"
GROUPED = (
    f"SELECT c.g, COUNT(*) AS n, SUM(a.v) AS s, window_end() AS e FROM a {S}, b {S}, c {S} "
    "WHERE a.x = b.x AND b.k = c.k GROUP BY c.g"
)


def grouped(x: int, k: int) -> World:
    rates = {"a": 2000, "b": 2000, "c": 500}
    return World(GROUPED, rates, {"a": {"x": x, "v": 1000}, "b": {"x": x, "k": k}, "c": {"k": k, "g": 10}})


@pytest.mark.long
def test_where_few_groups_come_of_many_tuples_they_are_put_together_before_the_join() -> None:
    world = grouped(x=100, k=20)
    expected, shapes, _ = world.run(plan="mjoin")
    assert set(shapes) == {"(a b c)"} and len(expected) > 50
    rows, shapes, slot = world.run(check=True)
    assert rows == expected
    assert shapes[0] == "(a b c)" and shapes[-1] == "((a b)+ c)" and len(set(shapes)) == 2, "it changes once"
    made = [d for d in slot.executor.eddy.decisions.recent if d.kind == "plan"]
    assert made[0].what == "(a b c) -> ((a b)+ c)" and all("((a b)+ c) stays" in d.what for d in made[1:])


def test_where_nothing_comes_together_no_operator_groups() -> None:
    world = grouped(x=2000, k=2000)
    rows, shapes, _ = world.run(check=True)
    assert rows == world.run(plan="mjoin")[0] and not any("+" in shape for shape in shapes)


@pytest.mark.parametrize(("values", "wanted"), [(50, True), (50_000, False)])
def test_a_source_of_two_is_grouped_alone(values: int, wanted: bool) -> None:
    select = (
        f"SELECT b.g, COUNT(*) AS n, SUM(a.v) AS s, window_end() AS e FROM a {S}, b {S} WHERE a.x = b.x GROUP BY b.g"
    )
    world = World(select, {"a": 4000, "b": 4000}, {"a": {"x": values, "v": 100}, "b": {"x": values, "g": 10}})
    expected, _, _ = world.run(plan="mjoin")
    rows, shapes, _ = world.run(check=True)
    assert rows == expected and ("+" in shapes[-1]) == wanted


@pytest.mark.long
def test_what_is_observed_is_of_combinations() -> None:
    """Selectivities are the same whether a tuple stands for one combination or for many."""
    found = []
    for settings in ({}, {"optimizer": "mjoin-init", "migration": "off"}):
        _, shapes, slot = grouped(x=100, k=20).run(**settings)
        assert isinstance(slot.plans, Planner)
        shares = [share for _, share in slot.plans.optimizer.selectivities(held(slot.executor.source_stems))]
        assert shares == [pytest.approx(1 / 100, rel=0.2), pytest.approx(1 / 20, rel=0.2)]
        found.append(shapes[-1])
    assert found == ["((a b)+ c)", "(a b c)"]


def test_a_plan_that_groups_is_explained() -> None:
    _, shapes, slot = grouped(x=100, k=20).run()
    assert shapes[-1] == "((a b)+ c)" and isinstance(slot.plans, Planner)
    estimate = slot.plans.estimate(slot.executor)
    assert estimate is not None and [child.span for child in estimate.children] == [1, 2, 3, 4]
    child = estimate.children[2]
    assert child.rate == pytest.approx(child.measured_rate, rel=0.5) and child.rate < 2000, "80,000 pairs a second"
    assert child.held == pytest.approx(child.measured_held, rel=0.6)


SELECTED = (
    "SELECT a.v AS p, b.v AS q, c.v AS r FROM a [RANGE 150 MILLISECONDS], b [RANGE 6 SECONDS], "
    "c [RANGE 100 MILLISECONDS] WHERE a.x = b.x AND b.k = c.k AND {}(a.v, b.v)"
)


@pytest.mark.parametrize(("function", "wanted"), [("marked_dear", True), ("marked_cheap", False)])
def test_an_expensive_selection_is_held_back_where_the_next_join_keeps_few_tuples(function: str, wanted: bool) -> None:
    """A row of a matches one row of b, and few of these pairs match a row of c; one in fifteen passes the selection."""
    values = {"a": {"x": 20_000, "v": 1000}, "b": {"x": 20_000, "k": 6000, "v": 1000}, "c": {"k": 6000, "v": 1000}}
    world = World(SELECTED.format(function), {"a": 400, "b": 3000, "c": 3000}, values, seconds=8.0)
    expected, _, _ = world.run(plan="mjoin")
    rows, shapes, _ = world.run(check=True)
    assert rows == expected and len(rows) >= 10
    assert any("!" in shape for shape in shapes) == wanted
    if wanted:
        assert shapes[-1] == "((a b)! c)"


def test_a_plan_with_marks_is_left_when_the_query_starts_with_it_and_it_does_not_pay() -> None:
    world = grouped(x=2000, k=2000)
    engine = world.engine()
    engine.slot.set_plan(parse_tree("((a)+ (b c)+)", "abc"))
    shapes = []
    for batch in world.batches():
        engine.batch(batch)
        shapes.append(engine.slot.executor.plan.text)
    assert shapes[0] == "((a)+ (b c)+)" and "+" not in shapes[-1]


@pytest.mark.long
def test_distinct_values_are_estimated_of_a_sample() -> None:
    _, _, slot = World(GROUPED, {"a": 9000, "b": 100, "c": 100}, grouped(9, 9).values).run(plan="mjoin")
    x, v = SourceColumn(0, "x", pa.int64()), SourceColumn(0, "v", pa.int64())
    stem = slot.executor.stems[0]
    assert stem.held > 8000
    assert distinct(stem, []) == 1.0 and distinct(stem, [x]) == 9.0
    assert distinct(stem, [v]) == pytest.approx(1000, rel=0.1)
    assert distinct(stem, [x, v]) == pytest.approx(9000 * (1 - np.exp(-1)), rel=0.25)
