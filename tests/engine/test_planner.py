"""A slot chooses its plan: over data for which a tree is clearly better it changes once, and the results are the
same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.model import BoundQuery
from eddyline.bound.udf import udf
from eddyline.codec import packed, unpacked
from eddyline.engine.executor import Executor
from eddyline.engine.finished_batch import FinishedBatch
from eddyline.engine.gatherer import Gatherer
from eddyline.engine.plan_source import FixedPlan
from eddyline.engine.planner import Planner, held
from eddyline.engine.planner_snapshot import PlannerSnapshot
from eddyline.engine.slot import Slot
from eddyline.engine.tuning import Tuning
from eddyline.migration.migration import Migration
from eddyline.optimizer.costs import DEFAULTS
from eddyline.optimizer.optimizer import StemContents
from eddyline.optimizer.pressure import Pressure
from eddyline.optimizer.tuning import OptimizerTuning
from eddyline.plan.tree import parse_tree
from eddyline.protocol.attach import close, open_slot, save
from eddyline.settings import Settings
from eddyline.testing.clock import ManualClock
from lab.batch_driver import BatchDriver
from tests.support.jobs import TIME, Row, bound, tuples

SECOND, BATCH = 1_000_000, 100_000
SECONDS = 4
RATES = {"a": 1000, "b": 1000, "c": 10_000}
MATCH, KEYS = 100_000, 100
"""MATCH: values of x, so many that hardly any rows of a and b match. KEYS: values of k, so few that each row of c
matches ten rows of b."""
W = "[RANGE 1 SECONDS]"
SELECT = f"SELECT a.v AS p, b.v AS q, c.v AS r FROM a {W}, b {W}, c {W} WHERE a.x = b.x AND b.k = c.k"
COLUMNS = {"a": "x v", "b": "x k v", "c": "k v"}
TREE = "((a b) c)"


FIXED = Tuning(optimizer=OptimizerTuning(costs=DEFAULTS))


@cache
def streams(match: int = MATCH) -> dict[str, pa.RecordBatch]:
    rng, made = np.random.default_rng(5), {}
    domains = {"x": match, "k": KEYS, "v": 1_000_000}
    for name, columns in COLUMNS.items():
        rows = SECONDS * RATES[name]
        times = np.arange(rows) * (SECOND // RATES[name])
        made[name] = pa.record_batch(
            {"ts": pa.array(times, TIME)} | {c: rng.integers(0, domains[c], rows) for c in columns.split()}
        )
    return made


def batches() -> Iterator[list[tuple[str, pa.RecordBatch]]]:
    for at in range(SECONDS * SECOND // BATCH):
        size = {name: rate * BATCH // SECOND for name, rate in RATES.items()}
        yield [(name, rows.slice(at * size[name], size[name])) for name, rows in streams().items()]


@cache
def query() -> BoundQuery:
    return bound(SELECT, None, (), **COLUMNS)


def engine_of(select: BoundQuery | None = None, **settings: object) -> BatchDriver:
    """The clock counts its readings, so that nothing depends on the machine."""
    ticks = count()
    return BatchDriver(select or query(), Settings(**settings), lambda: next(ticks) * 1e-6, tuning=FIXED)


def shape(slot: Slot) -> str:
    return slot.executor.plan.text


def run(engine: BatchDriver) -> tuple[list[Row], list[str]]:
    """All rows, and the plan after each batch."""
    rows: list[Row] = []
    shapes = []
    for batch in batches():
        rows += tuples(engine.batch(batch).results)
        shapes.append(shape(engine.slot))
    rows += tuples(engine.end().results)
    return sorted(rows, key=repr), shapes


@cache
def expected() -> tuple[Row, ...]:
    rows, shapes = run(engine_of(plan="mjoin"))
    assert set(shapes) == {"(a b c)"} and len(rows) > 1000
    return tuple(rows)


@pytest.mark.parametrize("name", ["auto", "exhaustive", "bjtree-init"])
def test_the_plan_changes_once_and_the_rows_are_the_same(name: str) -> None:
    engine = engine_of(check=True, optimizer=name)
    rows, shapes = run(engine)
    assert rows == list(expected())
    changes = [n for n in range(1, len(shapes)) if shapes[n] != shapes[n - 1]]
    assert len(changes) == 1 and shapes[0] == "(a b c)" and shapes[-1] == TREE
    assert changes[0] * BATCH >= SECOND, "not before a window of event time"


def test_every_proposal_is_a_decision() -> None:
    engine = engine_of()
    run(engine)
    made = [d for d in engine.slot.executor.eddy.decisions.recent if d.kind == "plan"]
    assert engine.decisions["plan"] == len(made) >= 1
    first = made[0]
    assert first.what == f"(a b c) -> {TREE}" and first.why.startswith("enough rows have been seen; the first look ")
    assert "of a core" in first.why and first.measured["cpu"] < first.measured["cpu now"]
    assert first.measured["rate c"] == pytest.approx(RATES["c"], rel=0.01) and first.measured["plans"] >= 1
    assert all(d.what.startswith(f"{TREE} stays") for d in made[1:])


@pytest.mark.parametrize("backlog", [0, 10_000])
def test_a_slot_looks_for_a_plan_when_rows_wait_in_the_sources(backlog: int) -> None:
    """Every batch has as many rows as the others, so only the sources show that rows wait."""
    engine = engine_of(optimize_when="memory")
    for number, batch in enumerate(batches()):
        engine.batch(batch, pressure=Pressure(backlog * number))
    whys = [d.why for d in engine.slot.executor.eddy.decisions.recent if d.kind == "plan"]
    assert [why.startswith("input queues grow steadily; the first look") for why in whys[:1]] == [True] * bool(backlog)


@pytest.mark.parametrize("how", ["auto", "moving-state", "parallel-track"])
def test_what_a_migration_took_stands_beside_what_was_predicted(how: str) -> None:
    engine = engine_of(migration=how)
    rows, shapes = run(engine)
    assert rows == list(expected()) and shapes[-1] == TREE
    plan = next(d for d in engine.slot.executor.eddy.decisions.recent if d.kind == "plan")
    (done,) = [d for d in engine.slot.executor.eddy.decisions.recent if d.kind == "migration"]
    way = "parallel track" if how == "parallel-track" else "moving state"
    assert f"; by {way}, " in plan.why and done.what.endswith(f"by {way}")
    told = {name: (done.measured[name], done.measured[f"predicted {name}"]) for name in
            ("rows", "tuples", "duration", "seconds", "longest", "bytes")}  # fmt: skip
    assert all(plan.measured[f"move {name}"] == predicted for name, (_, predicted) in told.items())
    measured, predicted = told["rows"]
    assert measured == pytest.approx(predicted, rel=0.35), "the rows in windows, and those that arrived meanwhile"
    if how == "parallel-track":
        assert told["duration"][1] == 1.0 and told["duration"][0] == pytest.approx(1.0, rel=0.21), "batches of a tenth"


@pytest.mark.parametrize(
    ("part", "where", "times"),
    [(Executor, "store", 3), (Gatherer, "flush", 1), (Executor, "expire", 1), (Slot, "replan", 0)],
)
def test_what_a_batch_takes_is_all_that_the_slot_does_for_it(
    part: type, where: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call takes a second; batches are a tenth of a second of event time."""
    clock, slow = ManualClock(), getattr(part, where)
    monkeypatch.setattr(part, where, lambda *args: (clock.advance(1.0), slow(*args))[1])
    engine = BatchDriver(query(), Settings(optimizer="mjoin-init"), clock, tuning=FIXED)
    for _, batch in zip(range(15), batches(), strict=False):
        engine.batch(batch)
    assert isinstance(engine.slot.plans, Planner)
    assert engine.slot.plans.optimizer.timing.cpu == pytest.approx(10.0 * times, rel=0.05)


@pytest.mark.parametrize("how", ["moving-state", "parallel-track"])
def test_a_migration_is_not_what_the_plan_takes(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()

    def look() -> float:
        clock.advance(1e-6)
        return clock()

    for name in ("step", "flush"):
        slow = getattr(Migration, name)

        def slower(self: Migration, *args: object, slow: Callable[..., object] = slow, **named: object) -> object:
            clock.advance(1.0)
            return slow(self, *args, **named)

        monkeypatch.setattr(Migration, name, slower)
    engine = BatchDriver(query(), Settings(migration=how), look, tuning=FIXED)
    rows, shapes = run(engine)
    assert rows == list(expected()) and shapes[-1] == TREE and clock() > 1.0
    assert not [d for d in engine.slot.executor.eddy.decisions.recent if d.why.startswith("undone")]
    assert isinstance(engine.slot.plans, Planner) and engine.slot.plans.optimizer.timing.cpu < 0.1


def test_with_migration_off_the_plan_stays() -> None:
    engine = engine_of(migration="off")
    rows, shapes = run(engine)
    assert rows == list(expected()) and set(shapes) == {"(a b c)"}
    made = [d for d in engine.slot.executor.eddy.decisions.recent if d.kind == "plan"]
    assert made[0].what == f"(a b c) stays, not {TREE}" and "; not taken: migration=off; " in made[0].why


def test_a_plan_that_turns_out_worse_is_left_again() -> None:
    """While the slot has the tree, a reading of the clock takes ten times as long."""
    clock = ManualClock()

    def look() -> float:
        clock.advance(1e-5 if engines and shape(engines[0].slot) == TREE else 1e-6)
        return clock()

    engines: list[BatchDriver] = []
    engines.append(BatchDriver(query(), Settings(), look, tuning=FIXED))
    rows, shapes = run(engines[0])
    assert rows == list(expected())
    assert [s for n, s in enumerate(shapes) if s != shapes[n - 1]] == [TREE, "(a b c)"] and shapes[0] == shapes[-1]
    recent = engines[0].slot.executor.eddy.decisions.recent
    undone = [d for d in recent if d.kind == "plan" and d.why.startswith("undone: ")]
    assert len(undone) == 1 and undone[0].what == f"{TREE} -> (a b c)"


@pytest.mark.parametrize("settings", [{"plan": "mjoin"}, {"optimizer": "off"}, {"plan": "((a b) c)"}])
def test_a_plan_that_was_said_stays(settings: dict[str, str]) -> None:
    engine = engine_of(**settings)
    assert isinstance(engine.slot.plans, FixedPlan)
    rows, shapes = run(engine)
    assert rows == list(expected()) and len(set(shapes)) == 1
    assert "plan" not in engine.decisions and "estimated" not in engine.explain()


def test_two_sources_have_one_plan() -> None:
    two = bound(f"SELECT a.v AS p FROM a {W}, b {W} WHERE a.x = b.x", None, (), a=COLUMNS["a"], b=COLUMNS["b"])
    assert isinstance(engine_of(two).slot.plans, FixedPlan)


def test_selectivities_and_rates_are_those_of_the_data() -> None:
    """They are right before and after the change of the plan, whichever plan probes; loading intermediate results is no
    evidence."""
    for settings in ({"optimizer": "mjoin-init"}, {}):
        engine = engine_of(**settings)
        run(engine)
        assert isinstance(engine.slot.plans, Planner)
        found = engine.slot.plans.optimizer
        stems = engine.slot.executor.stems[:3]
        held = [StemContents(s.held, s.rows.row_bytes) for s in stems]
        ab, bc = [share for _, share in found.selectivities(held)]
        assert ab == pytest.approx(1 / MATCH, rel=0.35) and bc == pytest.approx(1 / KEYS, rel=0.35)
        assert [found.observed.rate(i) for i in range(3)] == [pytest.approx(r, rel=0.01) for r in RATES.values()]


def test_rows_that_are_loaded_and_another_plan_teach_nothing() -> None:
    engine = engine_of(plan="auto", optimizer="mjoin-init")
    for number, batch in enumerate(batches()):
        engine.batch(batch)
        if number == 15:
            break
    slot, planner = engine.slot, engine.slot.plans
    assert isinstance(planner, Planner)
    before = planner.optimizer.saved()
    assert planner.optimizer.timing.cpu > 0.0
    slot.set_plan(parse_tree(TREE, ["a", "b", "c"]))
    assert planner.optimizer.timing.cpu == 0.0, "the CPU of the previous plan is forgotten"
    watermarks = dict.fromkeys(RATES, 16 * BATCH - 1000)
    planner.watch(slot.executor, FinishedBatch(watermarks, 0, 0.0))
    seen = planner.optimizer.saved().observed
    assert msgspec.structs.replace(seen, seconds=before.observed.seconds) == before.observed, "no rows, no probes"


def test_tables_have_no_rate_and_what_they_met_when_loaded_is_no_evidence() -> None:
    select = f"SELECT a.v AS p, t.v AS q FROM a {W}, b {W}, t WHERE a.x = b.x AND b.k = t.k"
    engine = engine_of(bound(select, None, ["t"], a=COLUMNS["a"], b=COLUMNS["b"], t="k v"))
    engine.load_table("t", pa.record_batch({"k": np.arange(5000) % KEYS, "v": np.arange(5000)}))
    for batch in batches():
        engine.batch([(name, rows) for name, rows in batch if name != "c"])
    assert isinstance(engine.slot.plans, Planner)
    found = engine.slot.plans.optimizer
    assert found.observed.rate(2) == 0.0 and not [span for span, _ in found.observed.probes if span == 0b100]
    held = [StemContents(s.held, s.rows.row_bytes) for s in engine.slot.executor.stems[:3]]
    by_span = {condition.span: share for condition, share in found.selectivities(held)}
    assert by_span[0b110] == pytest.approx(1 / KEYS, rel=0.2)


def test_a_batch_that_was_wound_back_changes_no_rate() -> None:
    engine = engine_of()
    rows: list[Row] = []
    for number, batch in enumerate(batches()):
        if number % 3 == 1:
            engine.batch(batch, commit=False)
            engine.wind_back()
        rows += tuples(engine.batch(batch).results)
    assert sorted(rows + tuples(engine.end().results), key=repr) == list(expected())
    assert shape(engine.slot) == TREE and isinstance(engine.slot.plans, Planner)
    found = engine.slot.plans.optimizer.observed
    assert [found.rate(i) for i in range(3)] == [pytest.approx(r, rel=0.01) for r in RATES.values()]


# From process to process


def run_batch(slot: Slot, number: int, batch: Sequence[tuple[str, pa.RecordBatch]]) -> list[Row]:
    """Run one batch of a slot: plan, process and commit it."""
    slot.replan()
    for name, some in batch:
        slot.feed(name, some)
    watermark = (number + 1) * BATCH - SECOND // min(RATES.values())
    slot.advance(dict.fromkeys(RATES, watermark), watermark)
    rows = tuples(slot.drain())
    slot.commit(number + 1)
    return rows


def visited(folder: Path, every: int) -> tuple[list[Row], list[str]]:
    """Run the same batches in a slot that is saved and opened again after every `every` batches."""
    rows: list[Row] = []
    shapes = []
    settings = Settings(pause_ms=None)  # plans change at once, so the changes do not depend on the time
    slot, planned = open_slot(query(), settings, str(folder), tuning=FIXED), None
    for number, batch in enumerate(batches()):
        if number and number % every == 0:
            assert isinstance(slot.plans, Planner)
            planned = unpacked(packed(slot.plans.saved()), PlannerSnapshot)
            assert save(slot)
            close(slot)
            slot = open_slot(query(), settings, str(folder), tuning=FIXED)
            assert slot.version == number and isinstance(slot.plans, Planner)
            assert slot.plans.saved() == planned and shape(slot) == shapes[-1]
        rows += run_batch(slot, number, batch)
        shapes.append(shape(slot))
    close(slot)
    return sorted(rows, key=repr), shapes


def test_statistics_go_from_process_to_process(tmp_path: Path) -> None:
    rows, shapes = visited(tmp_path / "moved", 7)
    assert rows == list(expected())
    stayed = visited(tmp_path / "stayed", 1000)
    assert (rows, shapes) == stayed and shapes[-1] == TREE


# Explain


def test_nothing_is_explained_before_the_first_look() -> None:
    engine = engine_of()
    for _, batch in zip(range(3), batches(), strict=False):
        engine.batch(batch)
    assert isinstance(engine.slot.plans, Planner)
    assert engine.slot.plans.estimate(engine.slot.executor) is None
    assert "estimated" not in engine.explain()


def test_explain_says_what_the_optimizer_believes() -> None:
    engine = engine_of()
    run(engine)
    text = engine.explain()
    estimated = text[text.index("estimated, for ((a b) c):") :].splitlines()
    assert [line.split(":")[0].strip() for line in estimated[1:5]] == ["a", "b", "(a b)", "c"]
    assert estimated[1].startswith("  a: 1,000 a second, 1,000 held in ")
    assert estimated[5].startswith("  selectivity of a.x = b.x: ") and estimated[6].startswith(
        "  selectivity of b.k = c.k"
    )
    assert estimated[7].startswith("  predicted: ") and "; measured: " in estimated[7]
    assert estimated[8].startswith("  last proposal, ") and f": {TREE}, predicted " in estimated[8]
    assert estimated[9].startswith("    instead of ")


def figures(line: str) -> list[float]:
    """The numbers of a line, sizes in bytes."""
    units = {"bytes": 1, "KB": 1e3, "MB": 1e6}
    found = re.findall(r"([0-9][0-9.,]*(?:e-[0-9]+)?)(?: (bytes|KB|MB))?", line.split(": ", 1)[1])
    return [float(value.rstrip(",").replace(",", "")) * units.get(unit, 1) for value, unit in found]


def test_what_is_estimated_is_near_what_is_measured() -> None:
    """Compares held rows and the rate of (a b); CPU and bytes are those of the slot."""
    engine = engine_of()
    run(engine)
    lines = {
        line.split(":")[0].strip(): figures(line) for line in engine.explain().splitlines() if "; measured" in line
    }
    for source in "abc":
        rate, held, _, measured, _ = lines[source]
        assert rate == held == RATES[source] and measured == pytest.approx(held, rel=0.11)
    rate, held, size, measured_rate, measured, measured_size = lines["(a b)"]
    assert measured_rate == pytest.approx(rate, rel=0.5) and measured == pytest.approx(held, rel=0.6)
    slot = engine.slot
    assert measured_size == pytest.approx(slot.executor.stems[3].nbytes, rel=0.01) and size > 0
    cpu, memory, measured_cpu, measured_memory = lines["predicted"]
    assert isinstance(slot.plans, Planner) and measured_cpu == pytest.approx(slot.plans.optimizer.timing.cpu, rel=0.01)
    assert measured_memory == pytest.approx(sum(stem.nbytes for stem in slot.executor.stems), rel=0.01)
    assert 0.2 < measured_cpu / cpu < 5.0 and 0.2 < measured_memory / memory < 5.0


# Selections


def test_selections_are_measured_and_explained() -> None:
    """A quarter of a passes. The fixed router evaluates it for every row; auto would evaluate it for the few that
    join."""

    @udf(returns=pa.bool_(), name="planner_quarter")
    def quarter(v: np.ndarray) -> np.ndarray:
        return v % 4 == 0

    select = f"{SELECT} AND planner_quarter(a.v)"
    engine = engine_of(bound(select, None, (), **COLUMNS), router="fixed")
    rows, shapes = run(engine)
    assert rows == [row for row in expected() if row[0] % 4 == 0] and shapes[-1] == TREE
    assert isinstance(engine.slot.plans, Planner)
    (found,) = engine.slot.plans.optimizer.selections()
    assert found.span == 0b001 and found.selectivity == pytest.approx(0.25, rel=0.2) and found.seconds > 0
    assert "  selection planner_quarter(a.v): 0.2" in engine.explain()
    _, (_, by_key) = engine.slot.plans.optimizer.selectivities(held(engine.slot.executor.stems[:3]))
    assert 0.5 / KEYS < by_key < 2.0 / KEYS, "the selection of (a b) is no selectivity of b.k = c.k"


def test_the_measured_cost_of_a_call_goes_to_the_eddy() -> None:
    """Before the first look it is the cost of the tuning."""
    tuning = Tuning(optimizer=OptimizerTuning(costs=replace(DEFAULTS, call=7e-5)))
    engine, costs = BatchDriver(query(), Settings(), ManualClock(), tuning=tuning), []
    for batch in batches():
        engine.batch(batch)
        costs.append(engine.slot.executor.eddy.work.call)
    assert costs[0] == tuning.routing.call and costs[-1] == 7e-5
