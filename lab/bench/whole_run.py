"""The wall time of `auto` over a whole drifting run, beside fixed orders and every other policy.

The best order changes from phase to phase. For selections, the fixed orders include the best of each phase and the best
of the whole run (by counted work, which is exact); for the join they are all orders.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from eddyline.settings import Settings
from lab.bench import Result
from lab.bench.costly import Costly
from lab.bench.counted import Costs, least_work, work_of
from lab.bench.drift import Drifting, DriftScript, steady, steps
from lab.bench.joins import star
from lab.bench.rounds import quickest, race, ratio
from lab.bench.streams import START, Streams, query_over, run_engine

BATCH = 16384
ROUNDS, FINALISTS, FINAL_ROUNDS = 2, 3, 3
POLICIES = ("random", "lottery", "rank", "benefit")
PHASE, JOIN_PHASE = 100_000, 100_000
"""Rows of each stream from one change to the next."""
TIMES_OVER = 2
"""How often the phases come round."""
SELECTIVITIES = (
    (0.1, 0.9, 0.5, 0.9),
    (0.9, 0.1, 0.9, 0.5),
    (0.5, 0.9, 0.1, 0.9),
    (0.9, 0.5, 0.9, 0.1),
    (0.6, 0.6, 0.6, 0.6),
)
"""The selectivity of each predicate, phase by phase."""
PASSES = (300, 375, 450, 525, 600)
HITS = ((0.05, 0.9, 0.5, 0.9), (0.5, 0.05, 0.9, 0.5), (0.9, 0.5, 0.05, 0.9))
"""The share of hits of each edge of the star, phase by phase."""
STAR = star((2.0, 2.0, 2.0), window=2_500)
JOIN_PASSES = (200, 300)
JOIN_SELECTIVITIES = ((0.1, 0.9, 0.5, 0.9), (0.9, 0.5, 0.1, 0.5))
"""The selectivities of the two functions of the hub, phase by phase."""

_log = logging.getLogger(__name__)


def whole_run(costs: Costs) -> list[Result]:
    """Measure selections, and a join with selections."""
    return [*_selections(costs), *_join()]


def _selections(costs: Costs) -> list[Result]:
    predicates = tuple(
        Drifting(steady(k), steps(s * TIMES_OVER, PHASE)) for k, s in zip(PASSES, SELECTIVITIES, strict=True)
    )
    rows = PHASE * len(SELECTIVITIES[0]) * TIMES_OVER
    truth = DriftScript("", rows, predicates).truth(np.random.default_rng(3))
    a_row = [costs.predicate(k) for k in PASSES]
    phases = [truth[at : at + PHASE] for at in range(0, rows, PHASE)]
    orders = {least_work(part, a_row)[1] for part in [*phases, truth]}
    random = np.random.default_rng(4)
    while len(orders) < 12:
        orders.add(tuple(int(i) for i in random.permutation(len(PASSES))))
    ranked = sorted(orders, key=lambda order: work_of(truth, a_row, order))
    times = pa.array(np.arange(rows) * 100 + START, pa.timestamp("us"))
    columns = {f"c{i}": truth[:, i].astype(np.int64) for i in range(len(PASSES))}
    data = {"s": pa.record_batch({"ts": times, **columns})}
    costly = Costly(PASSES)
    select = "SELECT s.ts AS ts FROM s [RANGE 1 SECOND] WHERE "
    fixed = {" ".join(map(str, order)): select + costly.conjuncts("s", order) for order in ranked}
    return _compare("drifting selections", data, fixed, select + costly.conjuncts("s"))


def _join() -> list[Result]:
    courses = [*((0, hits) for hits in HITS), *zip(JOIN_PASSES, JOIN_SELECTIVITIES, strict=True)]
    drifting = tuple(Drifting(steady(passes), steps(course, JOIN_PHASE)) for passes, course in courses)
    truth = DriftScript("", JOIN_PHASE * len(HITS[0]), drifting).truth(np.random.default_rng(3))
    data = dict(STAR.data(len(truth), seed=3, hits=truth[:, : len(HITS)]))
    for number in range(len(JOIN_PASSES)):
        data["s0"] = data["s0"].append_column(f"c{number}", pa.array(truth[:, len(HITS) + number].astype(np.int64)))
    costly = Costly(JOIN_PASSES)
    fixed = {
        f"{order} {first}": f"{STAR.select(order)} AND {costly.conjuncts('s0', first)}"
        for order in STAR.orders()
        for first in ((0, 1), (1, 0))
    }
    return _compare("drifting join with functions", data, fixed, next(iter(fixed.values())))


def _compare(case: str, data: Streams, fixed: Mapping[str, str], written: str) -> list[Result]:
    sides = {"auto": _run(data, written, "auto")}
    sides |= {f"fixed {name}": _run(data, select, "fixed") for name, select in fixed.items()}
    sides |= {policy: _run(data, written, policy) for policy in POLICIES}
    times = race(sides, ROUNDS, "auto", FINALISTS, FINAL_ROUNDS)
    others = quickest(times, [name for name in sides if name != "auto"])
    gain = ratio(times, others[0], "auto")
    _log.info("%s: next best %s, %.3f of auto", case, others[0], gain)
    slower = {name: ratio(times, name, "auto") for name in others}
    best_fixed = next(name for name in others if name.startswith("fixed"))
    return [
        Result(case, f"next best ({others[0]}) / auto, time", gain, "", 1.0, gain > 1.0),
        Result(case, f"best fixed order ({best_fixed.removeprefix('fixed ')}) / auto, time", slower[best_fixed], ""),
        *(Result(case, f"{policy} / auto, time", slower[policy], "") for policy in POLICIES),
    ]


def _run(data: Streams, select: str, router: str) -> Callable[[], int]:
    query = query_over(data, select)
    return lambda: run_engine(query, data, BATCH, Settings(router=router, plan="mjoin"))[0]
