"""Counted work: the counts are those of the engine, the least work is that of trying every order."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.settings import Settings
from lab.bench.costly import Costly
from lab.bench.counted import Costs, ProbeCounts, counts_of, least_work, reached, work_of
from lab.bench.streams import START, query_over, run_engine

COSTS = Costs(probe=2.0, match=1.0, call=0.5, a_pass=0.25)


def _truth(rows: int, predicates: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.random((rows, predicates)) < random.random(predicates)


@pytest.mark.parametrize("predicates", [1, 2, 4, 5])
def test_least_work_is_that_of_the_best_of_all_orders(predicates: int) -> None:
    truth = _truth(500, predicates, seed=predicates)
    costs = [float(c) for c in np.random.default_rng(1).uniform(1, 10, predicates)]
    works = {order: work_of(truth, costs, order) for order in permutations(range(predicates))}
    least, order = least_work(truth, costs)
    assert least == pytest.approx(min(works.values()))
    assert works[order] == pytest.approx(least)


def test_reached_counts_the_rows_that_pass_a_set() -> None:
    truth = _truth(300, 4)
    for done, rows in enumerate(reached(truth)):
        assert rows == truth[:, [i for i in range(4) if done >> i & 1]].all(axis=1).sum()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_calls_of_a_fixed_order_are_the_rows_that_reach_each_predicate(order: tuple[int, ...]) -> None:
    truth = _truth(1000, 3, seed=5)
    times = pa.array(np.arange(1000) + START, pa.timestamp("us"))
    data = {"s": pa.record_batch({"ts": times, **{f"c{i}": truth[:, i].astype(np.int64) for i in range(3)}})}
    costly = Costly([1, 2, 3])
    query = query_over(data, f"SELECT s.ts AS ts FROM s [RANGE 1 SECOND] WHERE {costly.conjuncts('s', order)}")
    found, engine = run_engine(query, data, 100, Settings(router="fixed"))
    assert found == truth.all(axis=1).sum()
    expected = [int(truth[:, list(order[:at])].all(axis=1).sum()) for at in range(3)]
    assert counts_of(engine).calls == tuple(expected), "selection k is the k-th conjunct as written"


def test_probes_and_matches_of_a_join_are_counted() -> None:
    rows = 50
    times = pa.array(np.arange(rows) + START, pa.timestamp("us"))
    keys = np.arange(rows) % 5
    data = {name: pa.record_batch({"ts": times, "k": keys}) for name in "ab"}
    query = query_over(data, "SELECT a.k AS k FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k")
    found, engine = run_engine(query, data, 10, Settings(router="fixed"))
    assert found == 5 * 10 * 10
    assert counts_of(engine) == ProbeCounts(probes=2 * rows, matches=found, calls=())


def test_work_is_counts_times_costs() -> None:
    counts = ProbeCounts(10, 5, (4, 2)) - ProbeCounts(4, 1, (1, 2))
    assert counts == ProbeCounts(6, 4, (3, 0))
    assert counts.work(COSTS, [2, 100]) == 6 * 2.0 + 4 * 1.0 + 3 * (0.5 + 2 * 0.25)


def test_a_costly_function_answers_with_its_argument_whatever_it_costs() -> None:
    from eddyline.bound.udf import registered

    costly = Costly([3, 0])
    values = np.array([0, 1, 7, -1, 0])
    answers = []
    for passes in (0, 1, 50):
        costly.passes[0] = passes
        answers.append(registered()["costly_0"].function(values).tolist())
    assert answers == [[False, True, True, True, False]] * 3
    assert costly.conjuncts("s", (1, 0)) == "costly_1(s.c1) AND costly_0(s.c0)"
