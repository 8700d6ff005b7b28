"""Run a case on the engine, and compare it with the oracle.

The setting "durable" is the seed of a simulation: with it the case runs through the batch protocol (simulation.py). The
setting "migrate" is the seed of migrations: with it slots change their plans (random_plans.py). The setting "spill", of
a case with a simulation, is the seed of moves: with it groups leave memory and are swept (random_moves.py), or memory
is small. The setting "balance" is the seed of slot maps: with it groups move between slots (random_places.py) and, with
"spill", slots are forced to spill (random_force.py). The setting "access" is the seed of access methods, of the
answers of tables and of those that fail (random_access.py, simulated_lookups.py). Preferences change at random in most
cases (random_preferences.py).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any
from zlib import crc32

import pyarrow as pa

from eddyline.bound.bind import bind
from eddyline.bound.model import BoundQuery
from eddyline.cql.script import Script, parse
from eddyline.engine.lookups.answers import Failure
from eddyline.engine.lookups.look_up import Lookups
from eddyline.engine.plan_source import MakePlanSource
from eddyline.engine.tuning import Tuning
from eddyline.errors import InternalError
from eddyline.plan.partition import GROUPS, partition
from eddyline.plan.plan import plan_of
from eddyline.plan.sharing import owners
from eddyline.plan.spill_axis import spill_axis
from eddyline.protocol.adapted import Placer, stays
from eddyline.protocol.coordinator import Mover
from eddyline.protocol.spiller import Spiller
from eddyline.settings import Settings
from eddyline.state.key_values import values
from eddyline.testing import udfs
from eddyline.testing.case import Case
from eddyline.testing.compare import difference
from eddyline.testing.oracle import Expected, Oracle
from lab.batch_driver import BatchDriver
from lab.fuzz.eager import eager, sliced
from lab.fuzz.outcome import CaseOutcome as CaseOutcome
from lab.fuzz.outcome import counted, held_back, in_two, without_lookups
from lab.fuzz.partial_rows import wrong_rows
from lab.fuzz.random_access import competing, failing, failing_with, with_access, without_failing
from lab.fuzz.random_force import RandomForce, then_eagerly
from lab.fuzz.random_moves import little_memory, random_moves
from lab.fuzz.random_places import RandomPlaces
from lab.fuzz.random_plans import random_plans
from lab.fuzz.random_preferences import NextPreference, random_preferences
from lab.fuzz.simulated_lookups import simulated_lookups
from lab.fuzz.simulation import Simulation

IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""A folder in memory, if there is one, for the files of a case: nothing is synced, so they are quicker there and behave
the same."""

CRASHES = (0.0, 0.01, 0.03, 0.1)
"""The shares of fault points at which a task or the job dies; a simulation draws one of them."""
AGES = (1.5, 4.0)
"""Times after which a simulation forgets answers: two reads of its clock take a second."""
MERGES = (2, 3, 8)
"""The numbers of segments of the log that are merged into one; with the usual number, few cases are long enough."""


def bound(case: Case, script: Script | None = None) -> BoundQuery:
    """The query of a case; `script` is its script if that is already parsed."""
    udfs.register()
    return bind(script or parse(case.script), lambda declaration: case.schema(declaration.name))


def run(case: Case, query: BoundQuery | None = None) -> CaseOutcome:
    """Run a case on the engine: the tables, the batches, each after the rows that are wound back before it, and the
    end."""
    settings: dict[str, Any] = dict(case.settings)
    durable, query = settings.pop("durable", None), query or bound(case)
    plans = random_plans(settings.pop("migrate", None))
    access = settings.pop("access", None)
    if access is not None:
        query = with_access(query, access)
        access = access if query.asks else None
    tuning = eager(settings.pop("eager", None))
    spill, balance = settings.pop("spill", None), settings.pop("balance", None)
    settings |= {} if balance is None else {"balance": "parallel-track"}
    mover: Mover | None = None
    spiller: Spiller | None = None
    axis = spill_axis(plan_of(query), settings.get("groups", GROUPS))
    if spill is not None:
        tuning = sliced(tuning, spill)
        settings |= little_memory(spill) if spill % 4 == 0 else {"memory": 1 << 40}
        settings["spill_dir"] = IN_MEMORY
        spiller = Spiller(query, Settings(**settings))
        alone = spill % 4 == 0 or (balance is not None and spill % 4 == 1)  # then only forced spills leave memory
        mover = spiller if alone else random_moves(spill, 0 if axis is None else axis.count)
    placer: Placer = stays
    if balance is not None:
        placer = RandomPlaces(balance, tracks=balance % 3 > 0 and not query.counts_rows)
        if spiller is not None:
            placer = then_eagerly(balance, RandomForce(balance, placer), spiller.force)
    lookups = None
    prefer = random_preferences(query, crc32(case.select.text.encode()) if access is None else access)
    if access is not None:
        ages = () if durable is None else AGES
        failures = failing(query, access), failing_with(query, access)
        lookups = simulated_lookups(query, case.tables, access, ages, *failures)
        tuning = competing(tuning, access)
    settings |= {} if access is None else {"batch_seconds": 1e-6}
    if durable is None:
        ran = _run(case, query, Settings(**settings), plans, tuning, lookups, prefer)
        return _told(ran, query, access)
    tuning = replace(tuning, state=replace(tuning.state, merged_files=Random(f"merges {durable}").choice(MERGES)))
    with tempfile.TemporaryDirectory(prefix="eddyline-", dir=IN_MEMORY) as folder:
        crashes = Random(f"crashes {durable}").choice(CRASHES)
        job = case, query, Settings(**settings), folder
        simulation = Simulation(
            *job,
            durable,
            crashes,
            plans=plans,
            tuning=tuning,
            mover=mover,
            placer=placer,
            lookups=lookups,
            prefer=prefer,
        )
        return _told(simulation.run(), query, access)


def _told(outcome: CaseOutcome, query: BoundQuery, access: int | None) -> CaseOutcome:
    """The outcome, with partial rows on their own; InternalError if it tells of failed lookups that do not fail."""
    fails = None if access is None else failing(query, access)
    other = [one for one in outcome.failed if fails is None or not fails(*one)]
    if other:
        raise InternalError(f"lookups that do not fail are told as failed: {other[:3]}")
    return in_two(outcome, query)


def _run(
    case: Case,
    query: BoundQuery,
    settings: Settings,
    plans: MakePlanSource,
    tuning: Tuning,
    lookups: Callable[[], Lookups] | None,
    prefer: NextPreference,
) -> CaseOutcome:
    clock = time.perf_counter if lookups is None else count(0.0, 0.001).__next__  # methods compete by time
    engine = BatchDriver(query, settings, clock, plans=plans, tuning=tuning, lookups=lookups)
    for name, table in case.tables.items() if lookups is None else ():
        engine.load_table(name, table)
    results: list[pa.RecordBatch] = []
    late = dead = 0
    failures: list[Failure] = []
    for batch in case.batches:
        engine.preferences.change(prefer(engine.preferences.text))
        if batch.undone is not None:
            engine.batch(batch.undone, commit=False)
            engine.wind_back()
        found = engine.batch(batch.rows, batch.ended)
        results += found.results
        late += sum(rows.num_rows for _, rows in found.late)
        dead += sum(rows.num_rows for _, rows, _ in found.dead)
        failures += found.failed
    last = engine.end()
    flushed = last.results
    results += flushed
    failed = tuple((one.table, key) for one in (*failures, *last.failed) for key in values(one.keys))
    table = pa.Table.from_batches(results, query.schema)
    held = held_back(query, flushed) if lookups is None else 0  # results that waited for an answer
    counts = without_lookups(counted(engine.counts), len(failed)) | {"late": late, "dead": dead, "held_back": held}
    return CaseOutcome(table, counts, failed=failed, last=pa.Table.from_batches(flushed, query.schema))


def shares_stems(case: Case, query: BoundQuery) -> bool:
    """Whether aliases of a stream share a SteM when a case runs."""
    given, plan = case.settings, plan_of(query)
    used: dict[str, Any] = {name: given[name] for name in ("slots", "groups") if name in given}
    used |= {"balance": "auto"} if "balance" in given else {}
    settings = Settings(**used, memory=1 << 40 if "spill" in given else None)
    return bool(owners(plan, partition(plan, settings.slots or 1, settings.groups), settings))


def expected_of(case: Case, oracle: Oracle, script: Script | None = None) -> Expected:
    """The oracle's result for a case."""
    script = script or parse(case.script)
    whole = oracle.expected(script, case.schema, case.batches, case.tables)
    left = answered(case)
    if left is case:
        return whole
    expected = oracle.expected(script, case.schema, case.batches, left.tables)
    return replace(expected, fails=difference(whole.table, expected.table, expected.scale) is not None)


def answered(case: Case) -> Case:
    """The case without the rows of tables whose lookups fail."""
    access = case.settings.get("access")
    if not isinstance(access, int):
        return case
    query = with_access(bound(case), access)
    tables = without_failing(query, case.tables, failing(query, access))
    return (
        case if all(tables[n].num_rows == t.num_rows for n, t in case.tables.items()) else replace(case, tables=tables)
    )


def wrong(outcome: CaseOutcome, expected: Expected) -> str | None:
    """None if an outcome is the expected one, else a text about the difference."""
    late = sum(s.late for s in expected.rows.values())
    dead = sum(s.dead for s in expected.rows.values())
    used = sum(s.used.num_rows for s in expected.rows.values())
    counts = {"rows_in": used + late + dead, "rows_used": used, "rows_late": late, "rows_dead": dead}
    counts |= {"rows_out": expected.table.num_rows, "late": late, "dead": dead, "held_back": 0}
    rows = difference(outcome.table, expected.table, expected.scale)
    if rows is None and counts != outcome.counts:
        return f"counts {outcome.counts} in place of {counts}"
    if rows is None and expected.fails and not outcome.failed:
        return "lookups fail that cost rows, and none is told"
    return rows


def check(case: Case, oracle: Oracle) -> str | None:
    """None if engine and oracle agree on a case, else the difference."""
    outcome = run(case)
    return wrong(outcome, expected_of(case, oracle)) or wrong_partial(case, outcome, oracle)


def wrong_partial(case: Case, outcome: CaseOutcome, oracle: Oracle) -> str | None:
    """None if the partial rows of an outcome are right, else a text about what is wrong."""
    access = case.settings.get("access")
    if outcome.partial is None or not isinstance(access, int):
        return None
    script = parse(case.script)
    query = with_access(bound(case, script), access)
    return wrong_rows(query, outcome.partial, lambda *of: oracle.combinations(script, case, query, *of))
