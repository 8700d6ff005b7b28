"""`bench adapt`: plans, orders and migrations together, over a run whose rates and selectivities change five times.

`plan=auto router=auto migration=auto` is compared with every tree without products, both as a static plan
(`router=fixed`, sources in either order of the chain where that matters) and as a fixed plan with an eddy in it
(`router=auto`). All sides take turns batch by batch, and a batch counts with its least CPU time over some rounds. The
clairvoyant has in every phase the time of the best side with one plan: it changes plans at once and at no cost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import process_time

import numpy as np
from numpy.typing import NDArray

from eddyline.bound.model import BoundQuery
from eddyline.errors import InternalError
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench import Result
from lab.bench.migration_phases import Phase, phased_join
from lab.bench.streams import query_over
from lab.bench.timed_joins import TimedJoin

SECONDS, WINDOW, BATCH = 10.0, 0.5, 0.2
ROUNDS = 2
RATE = 20_000.0
EDGES = ((0, 1), (1, 2), (2, 3))
PHASES = (
    ((1.0, 1.0, 1.0, 1.0), (0.1, 5.0, 5.0)),
    ((1.0, 1.0, 1.0, 1.0), (5.0, 5.0, 0.1)),
    ((1.0, 1.0, 1.0, 1.0), (5.0, 0.1, 5.0)),
    ((0.25, 1.0, 1.0, 1.0), (8.0, 0.1, 0.5)),
    ((1.0, 1.0, 1.0, 1.0), (0.1, 5.0, 5.0)),
    ((1.0, 1.0, 0.25, 2.0), (5.0, 5.0, 0.05)),
)
"""Rates, as shares of RATE, and fan-outs, phase by phase."""
WIDE = (
    "(s0 s1 s2 s3)",
    "((s0 s1) s2 s3)",
    "(s0 (s1 s2) s3)",
    "(s0 s1 (s2 s3))",
    "((s0 s1 s2) s3)",
    "(s0 (s1 s2 s3))",
)
BINARY = (
    "((s0 s1) (s2 s3))",
    "(((s0 s1) s2) s3)",
    "((s0 (s1 s2)) s3)",
    "(s0 ((s1 s2) s3))",
    "(s0 (s1 (s2 s3)))",
)
"""All trees of connected spans: those in WIDE have an operator with more than two children, those in BINARY have
none."""
AUTO, CLOSE = "auto", 1.15

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Side:
    """One side: whether its sources are written from the last to the first, and its settings."""

    reverse: bool
    settings: Settings


def run() -> list[Result]:
    """Measure all sides."""
    phases = [Phase(SECONDS, tuple(RATE * rate for rate in rates), fans) for rates, fans in PHASES]
    join = phased_join(phases, EDGES, WINDOW, seed=1)
    return compare(join, dict(sides()), len(phases), ROUNDS)


def sides() -> Iterator[tuple[str, Side]]:
    """The sides by name."""
    yield AUTO, Side(False, Settings())
    for tree in (*WIDE, *BINARY):
        yield f"eddy {tree}", Side(False, Settings(plan=tree))
        yield f"static {tree}", Side(False, Settings(plan=tree, router="fixed"))
        if tree in WIDE:
            yield f"static {tree}, reversed", Side(True, Settings(plan=tree, router="fixed"))


def compare(join: TimedJoin, chosen: Mapping[str, Side], phases: int, rounds: int) -> list[Result]:
    """Compare the sides over the whole run and phase by phase."""
    times = np.array([_round(join, chosen, number) for number in range(rounds)]).min(axis=0)
    by_phase = times.reshape(len(chosen), phases, -1).sum(axis=2)
    totals = dict(zip(chosen, by_phase.sum(axis=1), strict=True))
    for name, of_side in zip(chosen, by_phase, strict=True):
        _log.info("%s: %.2f s; %s", name, totals[name], " ".join(f"{seconds:.2f}" for seconds in of_side))
    others = [number for number, name in enumerate(chosen) if name != AUTO]
    clairvoyant = by_phase[others].min(axis=0).sum()
    over = float(totals[AUTO] / clairvoyant)
    results = []
    for kind in ("static", "eddy"):
        best = min((name for name in chosen if name.startswith(kind)), key=lambda name: totals[name])
        gain = float(totals[best] / totals[AUTO])
        results.append(Result(f"best {best}", "time / auto", gain, "", 1.0, gain > 1.0))
    return [*results, Result("auto", "time / clairvoyant", over, "", CLOSE, over <= CLOSE)]


def _round(join: TimedJoin, chosen: Mapping[str, Side], number: int) -> NDArray[np.float64]:
    """CPU seconds by side and batch."""
    queries = {reverse: _query(join, reverse) for reverse in (False, True)}
    engines = [BatchDriver(queries[side.reverse], side.settings, process_time) for side in chosen.values()]
    found, times = [0] * len(engines), np.zeros((len(engines), round(join.seconds / BATCH)))
    for step, rows in enumerate(join.batches(BATCH)):
        for at in range(len(engines)) if step % 2 else range(len(engines) - 1, -1, -1):
            begin = process_time()
            found[at] += sum(part.num_rows for part in engines[at].batch(rows).results)
            times[at, step] = process_time() - begin
    if len(set(found)) != 1:
        raise InternalError(f"the sides disagree: {dict(zip(chosen, found, strict=True))}")
    for decision in engines[list(chosen).index(AUTO)].slot.executor.eddy.decisions.recent if AUTO in chosen else ():
        if decision.kind in ("plan", "migration"):
            _log.info("round %d, row %d: %s; %s", number + 1, decision.at, decision.what, decision.why)
    return times


def _query(join: TimedJoin, reverse: bool) -> BoundQuery:
    """The join with its sources from the first to the last, or the other way round."""
    names = sorted(join.data, reverse=reverse)
    windows = ", ".join(f"{name} [RANGE {int(WINDOW * 1e6)} MICROSECONDS]" for name in names)
    where = " AND ".join(f"s{a}.e{n} = s{b}.e{n}" for n, (a, b) in enumerate(join.edges))
    return query_over(join.data, f"SELECT s0.v AS v FROM {windows} WHERE {where}")
