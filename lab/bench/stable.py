"""The price of adapting: `auto` beside the best fixed order, on data that does not change.

The candidates for the best fixed order are all ways of routing if they are few, otherwise the best by expected work
(from the fan-outs, selectivities and costs of the generated data) and some others. A round on less data finds the
finalists, which then take turns with `auto`. The quickest finalist counts as the best, so noise among the finalists
counts against `auto`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

import numpy as np
import pyarrow as pa

from eddyline.settings import Settings
from lab.bench import Result
from lab.bench.costly import Costly
from lab.bench.counted import Costs, work_of
from lab.bench.drift import Drifting, DriftScript, steady
from lab.bench.joins import Join, Order, chain, star
from lab.bench.rounds import quickest, race, ratio
from lab.bench.streams import START, Streams, query_over, run_engine

BAR = 1.07
BATCH = 16384
WINDOW = 20_000
TUPLES = 4_000_000
"""The rows of all streams together in a run of a join."""
SELECTION_ROWS = 2_400_000
FEW = 24
"""At most this many orders are all tried."""
ROUNDS, FINALISTS = 4, 2
JOINS = (
    chain((0.3, 2.0), WINDOW),
    star((2.0, 0.2, 1.0), WINDOW),
    chain((0.5, 2.0, 0.3, 1.5), WINDOW),
    star((2.0, 0.1, 1.0, 0.5, 3.0), WINDOW),
    chain((1.5, 0.4, 2.0, 0.3, 1.2, 0.8), WINDOW),
    star((2.0, 0.2, 1.0, 0.5, 2.5, 0.8, 1.5), WINDOW),
)
PREDICATES = ((400, 0.9), (100, 0.6), (250, 0.3), (150, 0.8), (600, 0.1))
"""Passes and selectivity of the five selections."""

_log = logging.getLogger(__name__)


def stable(costs: Costs) -> list[Result]:
    """Measure all joins, and the selections."""
    results = [result for join in JOINS for result in _join(join, costs)]
    return [*results, *_selections(costs)]


def _join(join: Join, costs: Costs) -> list[Result]:
    data = join.data(TUPLES // join.sources, seed=42)
    orders = _candidates(join.orders(), lambda order: join.expected(order, costs))
    selects = {_text(order): join.select(order) for order in orders}
    return _compare(join.name, data, selects, join.select(range(join.sources)))


def _candidates(orders: Sequence[Order], work: Callable[[Order], float]) -> list[Order]:
    """All orders, or the best by expected work and some spread over the better half."""
    ranked = sorted(orders, key=work)
    if len(ranked) <= FEW:
        return ranked
    return [*ranked[:6], *ranked[6 : len(ranked) // 2 : max(1, len(ranked) // 10)]]


def _selections(costs: Costs) -> list[Result]:
    predicates = tuple(Drifting(steady(passes), steady(s)) for passes, s in PREDICATES)
    truth = DriftScript("", SELECTION_ROWS, predicates).truth(np.random.default_rng(42))
    times = pa.array(np.arange(SELECTION_ROWS) * 100 + START, pa.timestamp("us"))
    columns = {f"c{i}": truth[:, i].astype(np.int64) for i in range(len(PREDICATES))}
    data = {"s": pa.record_batch({"ts": times, **columns})}
    costly = Costly([passes for passes, _ in PREDICATES])
    a_row = [costs.predicate(passes) for passes, _ in PREDICATES]
    orders = _candidates(list(permutations(range(len(PREDICATES)))), lambda order: work_of(truth[:5000], a_row, order))
    select = "SELECT s.ts AS ts FROM s [RANGE 1 SECOND] WHERE "
    selects = {_text(order): select + costly.conjuncts("s", order) for order in orders}
    return _compare("five selections", data, selects, select + costly.conjuncts("s"))


def _compare(case: str, data: Streams, selects: Mapping[str, str], written: str) -> list[Result]:
    """`auto` on the query as written, beside the fixed orders."""
    rows = next(iter(data.values())).num_rows
    small = {name: batch.slice(0, rows // 4) for name, batch in data.items()}
    heats = race({name: _run(small, select, "fixed") for name, select in selects.items()}, 1, "")
    finalists = quickest(heats, selects)[: FINALISTS + 1]
    sides = {"auto": _run(data, written, "auto")} | {name: _run(data, selects[name], "fixed") for name in finalists}
    times = race(sides, 1, "auto", FINALISTS, ROUNDS - 1)
    best = quickest(times, finalists)[0]
    slower = ratio(times, "auto", best)
    _log.info("%s: %d orders, best %s, auto takes %.3f of it", case, len(selects), best, slower)
    return [Result(case, f"auto / best fixed order ({best}), time", slower, "", BAR, slower <= BAR)]


def _run(data: Streams, select: str, router: str) -> Callable[[], int]:
    query = query_over(data, select)
    return lambda: run_engine(query, data, BATCH, Settings(router=router, plan="mjoin"))[0]


def _text(order: Order) -> str:
    return " ".join(map(str, order))
