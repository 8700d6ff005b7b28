"""Join graphs: the routes that are expected of an order are those the engine takes, with about the work expected."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.plan.steps import Probe
from eddyline.settings import Settings
from lab.bench.counted import Costs, counts_of
from lab.bench.joins import Join, chain, star
from lab.bench.stable import JOINS
from lab.bench.streams import query_over, run_engine

COSTS = Costs(probe=1.0, match=1.0, call=0.0, a_pass=0.0)


@pytest.mark.parametrize("order", [(3, 1, 0, 2), (0, 1, 2, 3)])
@pytest.mark.parametrize("join", [chain((2.0, 0.5, 1.0), 200), star((2.0, 0.5, 1.0), 200)], ids=lambda j: j.name)
def test_the_engine_takes_the_routes_of_the_order(join: Join, order: tuple[int, ...]) -> None:
    data = join.data(4000, seed=1)
    query = query_over(data, join.select(order))
    _, engine = run_engine(query, data, 100, Settings(router="fixed"))
    taken = []
    for start in range(join.sources):
        span, route = 1 << order.index(start), []
        while len(route) < join.sources - 1:
            entry = engine.slot.executor.eddy.routes.entries[(span, 0)]
            (used,) = [traffic.step for traffic in entry.steps if traffic.tuples]
            assert isinstance(used, Probe)
            route.append(order[used.target])
            span |= 1 << used.target
        taken.append(tuple(route))
    assert tuple(taken) == join.routes(order)
    work = counts_of(engine).work(COSTS) / 4000
    assert work == pytest.approx(join.expected(order, COSTS), rel=0.15)


@pytest.mark.parametrize("join", JOINS, ids=lambda j: j.name)
def test_orders_are_all_ways_of_routing_and_differ_in_work(join: Join) -> None:
    orders = join.orders()
    assert len({join.routes(order) for order in orders}) == len(orders) > 1
    works = [join.expected(order, COSTS) for order in orders]
    assert max(works) > 1.05 * min(works)


def test_rows_that_do_not_hit_have_no_partner() -> None:
    join = star((4.0, 4.0), 100)
    hits = np.zeros((500, 2), np.bool_)
    hits[:, 1] = True
    data = join.data(500, seed=1, hits=hits)
    assert not set(data["s0"]["e0"].to_pylist()) & set(data["s1"]["e0"].to_pylist())
    assert set(data["s0"]["e1"].to_pylist()) & set(data["s2"]["e1"].to_pylist())
