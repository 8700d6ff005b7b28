"""How quickly `auto` notices drift: its counted work over that of the best current order, stretch by stretch.

The best current order is the one with the least work over the rows of the stretch. For selections it is exact, because
we know which predicate is true for which row; for joins it is the best of all fixed orders, run over the same data with
otherwise the same settings.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench import Result
from lab.bench.costly import Costly
from lab.bench.counted import Costs, ProbeCounts, counts_of, least_work
from lab.bench.drift import (
    STRETCH,
    Drifting,
    DriftScript,
    named_scripts,
    random_script,
    steady,
    steps,
    to_and_fro,
)
from lab.bench.joins import Join, star
from lab.bench.streams import START, query_over, run_engine

NEAR, INSIDE = 1.10, 50_000
"""The bar after a swap: at most NEAR times the work of the best order within INSIDE tuples, and from then on."""
BEHIND, WARM_UP = 1.15, 20_000
"""The bar with slow drift: never more than BEHIND times the work of the best order after WARM_UP tuples."""
STAR = star((4.0, 4.0, 4.0), window=2_500)
"""The fan-out of an edge is the fan-out of a hit times the share of hub rows that hit."""

_log = logging.getLogger(__name__)


def quick(costs: Costs, seeds: Sequence[int]) -> list[Result]:
    """Measure all scripts, and one random script for each seed."""
    results = []
    for script in [*named_scripts(), *map(random_script, seeds)]:
        results += _judge(script, selections_behind(script, costs), 1)
    for script in join_scripts():
        results += _judge(script, joins_behind(STAR, script, costs), STAR.sources)
    return results


def ideas(costs: Costs) -> list[Result]:
    """Compare the two ideas for `auto`: pricing whole orders on a profile, and rank by conditional selectivities. The
    value is the mean over all stretches after the warm-up."""
    results = []
    for router in ("auto", "rank"):
        settings = Settings(router=router, plan="mjoin")
        for script in named_scripts():
            mean = float(np.mean(selections_behind(script, costs, settings=settings)[WARM_UP // STRETCH :]))
            results.append(Result(script.name, f"{router} / best order of the moment, work", mean, ""))
        for script in join_scripts():
            mean = float(np.mean(joins_behind(STAR, script, costs, settings)[WARM_UP // STRETCH :]))
            results.append(Result(script.name, f"{router} / best order of the moment, work", mean, ""))
    return results


def join_scripts() -> list[DriftScript]:
    """Scripts of the hits of hub rows: one with swaps, and one with slow drift and two correlated edges."""
    rows = 300_000 // STAR.sources
    each = rows // 3
    nothing = steady(0)
    swap = [Drifting(nothing, steps(hits, each)) for hits in ((0.05, 0.9, 0.05), (0.4, 0.4, 0.4), (0.9, 0.05, 0.9))]
    starts = ((0.1, True), (0.5, False), (0.9, False))
    slow = [
        Drifting(nothing, to_and_fro(0.05, 0.95, start, rising, rows, 1000 / STAR.sources)) for start, rising in starts
    ]
    tied = tuple(replace(p, latent=0, mirrored=bool(i)) if i < 2 else p for i, p in enumerate(slow))
    return [
        DriftScript("join fan-outs swap", rows, tuple(swap), (each, 2 * each)),
        DriftScript("join fan-outs drift slowly", rows, tuple(slow)),
        DriftScript("join fan-outs drift slowly, correlated", rows, tied),
    ]


def selections_behind(
    script: DriftScript, costs: Costs, seed: int = 1, settings: Settings | None = None
) -> list[float]:
    """The work of `auto` over the least work of any order, for each stretch."""
    truth = script.truth(np.random.default_rng(seed))
    times = pa.array(np.arange(script.rows) * 100 + START, pa.timestamp("us"))
    columns = {f"c{i}": truth[:, i].astype(np.int64) for i in range(truth.shape[1])}
    data = {"s": pa.record_batch({"ts": times, **columns})}
    costly = Costly(script.passes(0))
    query = query_over(data, f"SELECT s.ts AS ts FROM s [RANGE 1 SECOND] WHERE {costly.conjuncts('s')}")
    behind, before = [], ProbeCounts(0, 0, (0,) * truth.shape[1])

    def count(engine: BatchDriver, rows: int) -> None:
        nonlocal before
        now = counts_of(engine)
        a_row = [costs.predicate(passes) for passes in costly.passes]
        least, _ = least_work(truth[rows - STRETCH : rows], a_row)
        behind.append((now - before).work(costs, costly.passes) / least)
        costly.passes[:] = script.passes(rows)
        before = now

    run_engine(query, data, STRETCH, settings, after_batch=count)
    return behind


def joins_behind(join: Join, script: DriftScript, costs: Costs, settings: Settings | None = None) -> list[float]:
    """The work of `auto` over that of the best fixed order, for each stretch."""
    settings = settings or Settings(plan="mjoin")
    hits = script.truth(np.random.default_rng(1))
    fixed = replace(settings, router="fixed")
    orders = join.orders()
    least = np.min([_join_work(join, hits, order, fixed, costs) for order in orders], axis=0)
    return [float(r) for r in _join_work(join, hits, orders[0], settings, costs) / least]


def _join_work(
    join: Join, hits: NDArray[np.bool_], order: Sequence[int], settings: Settings, costs: Costs
) -> NDArray[np.float64]:
    """The work of each stretch."""
    data = join.data(len(hits), seed=1, hits=hits)
    work, before = [], ProbeCounts(0, 0, ())

    def count(engine: BatchDriver, rows: int) -> None:
        nonlocal before
        now = counts_of(engine)
        work.append((now - before).work(costs))
        before = now

    run_engine(query_over(data, join.select(order)), data, STRETCH // join.sources, settings, after_batch=count)
    return np.array(work)


def _judge(script: DriftScript, behind: Sequence[float], streams: int) -> list[Result]:
    worst = max(behind[WARM_UP // STRETCH :])
    _log.info("%s: percent behind in each stretch: %s", script.name, " ".join(f"{100 * (b - 1):.0f}" for b in behind))
    if not script.swaps:
        return [Result(script.name, "worst stretch / best order, work", worst, "", BEHIND, worst <= BEHIND)]
    took = tuples_to_recover(behind, [row * streams // STRETCH for row in script.swaps])
    return [
        Result(script.name, "to within 10 % of the best order", took, "tuples", INSIDE, took <= INSIDE),
        Result(script.name, "worst stretch / best order, work", worst, ""),
    ]


def tuples_to_recover(behind: Sequence[float], swaps: Sequence[int]) -> int:
    """The number of tuples from a swap to the end of the last stretch before the next swap in which `auto` is not near
    the best order; the most over all swaps.

    >>> tuples_to_recover([1.0, 1.5, 1.2, 1.0, 1.3, 1.0], [1, 4]) // STRETCH
    2
    """
    took = [0]
    for begin, end in zip(swaps, [*swaps[1:], len(behind)], strict=True):
        took += [i + 1 - begin for i in range(begin, end) if behind[i] > NEAR]
    return max(took) * STRETCH
