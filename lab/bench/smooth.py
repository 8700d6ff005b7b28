"""`bench smooth`: results keep coming during a migration.

Three streams come in small batches; the plan is changed to one with a million tuples in its intermediate state. The
gaps between results are measured before and during the migration, for moving state with the default pause, for moving
all state in one pause, and for parallel track. Bars are on CPU time, because nothing here waits: on a machine with a
free core it equals wall time. The wall time is reported too.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time

from eddyline.errors import InternalError
from eddyline.plan.tree import parse_tree
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench import Result
from lab.bench.timed_joins import TimedJoin, timed_join

RATE, WINDOW, BATCH = 50_000.0, 5.0, 0.02
FAN_OUTS = 0.1, 4.0
AT, SECONDS = 5.5, 11.5
OLD, NEW = "((s0 s1) s2)", "(s0 (s1 s2))"
MOVING, PAUSING, PARALLEL = "moving state", "moving state, pausing", "parallel track"
LONGEST, PAUSE, TUPLES = 0.1, 50.0, 1_000_000


@dataclass(frozen=True)
class Gap:
    """The time from results to the next results, in seconds."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Gaps:
    """The gaps of a run in the window before the migration and during it, and the migration's own measurements."""

    before: list[Gap]
    during: list[Gap]
    measured: Mapping[str, float]
    results: int


def run() -> list[Result]:
    """Measure all three."""
    join = timed_join((RATE,) * 3, ((0, 1), (1, 2)), FAN_OUTS, SECONDS, WINDOW, seed=3)
    runs = {how: gaps(join, how) for how in (MOVING, PAUSING, PARALLEL)}
    if len({found.results for found in runs.values()}) != 1:
        raise InternalError("the runs disagree")
    return [result for how, found in runs.items() for result in _results(how, found)]


def _results(how: str, found: Gaps) -> list[Result]:
    longest, usual = max(gap.cpu for gap in found.during), median(gap.cpu for gap in found.before)
    before = max(gap.cpu for gap in found.before)
    bar = None if how == PAUSING else 1000 * LONGEST
    ok = None if how == PAUSING else longest <= LONGEST
    results = [
        Result(how, "longest without results, CPU", 1000 * longest, "ms", bar, ok),
        Result(how, "longest without results, as it passed", 1000 * max(gap.wall for gap in found.during), "ms"),
        Result(how, "longest without results before", 1000 * before, "ms"),
        Result(how, "longest over the usual before", longest / usual, ""),
        Result(how, "its longest step", 1000 * found.measured["longest"], "ms"),
        Result(how, "CPU", found.measured["seconds"], "s"),
    ]
    if how != PARALLEL:  # its states are filled by the rows that come
        tuples = found.measured["tuples"]
        results.append(Result(how, "tuples recomputed", tuples, "", TUPLES, tuples >= 0.95 * TUPLES))
    return results


def gaps(join: TimedJoin, how: str) -> Gaps:
    """Run a join, and change its plan when windows are full."""
    aliases = [s.alias for s in join.query.sources]
    settings = Settings(optimizer="off", pause_ms=None if how == PAUSING else PAUSE)
    engine, found = BatchDriver(join.query, settings, process_time), 0
    slot = engine.slot
    slot.set_plan(parse_tree(OLD, aliases))
    before, during = list[Gap](), list[Gap]()
    gc.collect()
    cpu, wall = process_time(), perf_counter()
    for number, rows in enumerate(join.batches(BATCH)):
        if number == round(AT / BATCH):
            if how == PAUSING:
                slot.set_plan(parse_tree(NEW, aliases))
            else:
                slot.executor.migrate(parse_tree(NEW, aliases), parallel=how == PARALLEL)
        going = slot.executor.migration is not None or number == round(AT / BATCH)
        results = sum(part.num_rows for part in engine.batch(rows).results)
        if not results:
            continue
        found += results
        gap = Gap(process_time() - cpu, perf_counter() - wall)
        cpu, wall = process_time(), perf_counter()
        if going:
            during.append(gap)
        elif AT - WINDOW < number * BATCH < AT:
            before.append(gap)
    changes = [d for d in slot.executor.eddy.decisions.recent if d.kind == "migration"]
    if slot.executor.plan.text != NEW or not changes:
        raise InternalError(f"the plan is still {slot.executor.plan.text} after {join.seconds:g} s")
    return Gaps(before, during, changes[-1].measured, found)
