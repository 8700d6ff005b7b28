"""The cheapest order beside all orders, what traffic says beside the sample, and the gain beside NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from eddyline.kernels import orders


@dataclass
class Problem:
    """The remaining modules of a tuple: each with a column of the sample (or -1), a level, costs, and when it may be
    taken."""

    counts: np.ndarray
    weights: np.ndarray
    column: np.ndarray
    level: np.ndarray
    cost: np.ndarray
    each: np.ndarray
    first: int
    any_of: np.ndarray
    all_of: np.ndarray

    def allowed(self, module: int, taken: int) -> bool:
        all_of = int(self.all_of[module])
        return bool(self.first >> module & 1 or self.any_of[module] & taken or (all_of and all_of & taken == all_of))

    def orders(self, taken: int = 0) -> Iterator[list[int]]:
        """All orders that end when no further module may be taken."""
        next_ones = [m for m in range(self.cost.size) if not taken >> m & 1 and self.allowed(m, taken)]
        for m in next_ones:
            for rest in self.orders(taken | 1 << m):
                yield [m, *rest]
        if not next_ones:
            yield []

    def price(self, order: list[int]) -> float:
        """The average cost of a tuple, by the definition."""
        alive, value = np.ones(self.weights.size), 0.0
        mean = np.average if self.weights.sum() > 0 else lambda a, weights: 0.0
        for m in order:
            value += float(mean(alive, weights=self.weights)) * self.cost[m]
            alive = alive * (self.counts[:, self.column[m]] if self.column[m] >= 0 else self.level[m])
            value += float(mean(alive, weights=self.weights)) * self.each[m]
        return value

    def cheapest(self) -> tuple[list[int], np.ndarray]:
        values, order = np.full(self.cost.size, -1.0), np.full(self.cost.size, -1)
        n = orders.cheapest(
            self.counts, self.weights, self.column, self.level, self.cost, self.each, self.first, self.any_of,
            self.all_of, values, order,
        )  # fmt: skip
        return order[:n].tolist(), values


def problem(rng: np.random.Generator, modules: int, probes: bool, free: bool = False) -> Problem:
    n, sampled = int(rng.integers(1, 30)), int(rng.integers(1, modules + 1))
    counts = (rng.random((n, sampled)) < rng.random(sampled)).astype(float)
    if probes:
        counts[:, 0] = rng.poisson(2, n)
    column = np.full(modules, -1)
    column[rng.permutation(modules)[:sampled]] = np.arange(sampled)
    masks = np.zeros((2, modules), np.int64)
    first = int(rng.integers(1, 1 << modules)) if not free else (1 << modules) - 1
    for m in range(modules):
        if not first >> m & 1:
            masks[int(rng.integers(2)), m] = rng.integers(1, 1 << modules) & ~(1 << m)
    return Problem(
        counts, rng.random(n) + 0.01, column, rng.choice([0.1, 0.5, 1.0, 3.0], modules), rng.random(modules) + 0.01,
        rng.random(modules) * probes, first, masks[0], masks[1],
    )  # fmt: skip


@pytest.mark.parametrize("modules", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("probes", [False, True])
def test_no_order_is_cheaper(modules: int, probes: bool) -> None:
    rng = np.random.default_rng([modules, probes])
    for _ in range(40 if modules < 6 else 12):
        p = problem(rng, modules, probes)
        order, values = p.cheapest()
        every = list(p.orders())
        assert order in every
        prices = {tuple(o): p.price(o) for o in every}
        assert prices[tuple(order)] == pytest.approx(min(prices.values()))
        for m in range(modules):
            through = [price for o, price in prices.items() if o[:1] == (m,)]
            assert values[m] == pytest.approx(min(through)) if through else values[m] == np.inf


def test_without_a_sample_the_levels_decide() -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        p = problem(rng, 4, False, free=True)
        p.counts, p.weights, p.column = np.empty((0, 1)), np.empty(0), np.full(4, -1)
        p.level = rng.random(4)
        order, _ = p.cheapest()
        assert order == sorted(range(4), key=lambda m: (p.level[m] - 1) / p.cost[m])


def test_many_modules_are_ordered_by_rank() -> None:
    """For independent selections the order by rank is the best one."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        modules = orders.EXACT + int(rng.integers(1, 5))
        p = problem(rng, modules, False, free=True)
        p.column, p.level = np.full(modules, -1), rng.random(modules)
        order, values = p.cheapest()
        assert order == sorted(range(modules), key=lambda m: (p.level[m] - 1) / p.cost[m])
        assert values[order[0]] == pytest.approx(p.price(order)) == values.min()


def test_many_modules_with_a_sample_and_conditions_are_an_order_at_its_price() -> None:
    rng = np.random.default_rng(9)
    for _ in range(60):
        p = problem(rng, orders.EXACT + 1, True)
        order, values = p.cheapest()
        taken = 0
        for m in order:
            assert not taken >> m & 1 and p.allowed(m, taken)
            taken |= 1 << m
        assert not any(p.allowed(m, taken) for m in range(p.cost.size) if not taken >> m & 1)
        assert values[order[0]] == pytest.approx(p.price(order)) == values.min()
        assert all(np.isinf(values[m]) != bool(p.first >> m & 1) for m in range(p.cost.size))


def test_prices_of_single_samples_average_to_the_price() -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        p = problem(rng, 4, True, free=True)
        order, prices = rng.permutation(4), np.empty(p.weights.size)
        orders.price(p.counts, p.column, p.level, p.cost, p.each, order, prices)
        assert np.average(prices, weights=p.weights) == pytest.approx(p.price(order.tolist()))


def replay(counts: np.ndarray, weights: np.ndarray, route: np.ndarray) -> list[float]:
    """The selectivity of each step of a route among the tuples that passed the steps before it."""
    alive, found = weights.copy(), []
    for column in route:
        passed = alive * counts[:, column]
        found.append(passed.sum() / alive.sum())
        alive = passed
    return found


def test_a_sample_is_made_to_say_what_the_traffic_says() -> None:
    """The selectivities agree exactly, except for a selection after a probe: it changes the weights of tuples with many
    matches."""
    rng, is_selection = np.random.default_rng(4), np.array([True, True, False, True])
    for _ in range(80):
        counts = (rng.random((40, 4)) < 0.6).astype(float)
        counts[:, 2] = rng.poisson(2, 40)
        counts[0], counts[1:4] = 1.0, [[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1, 0]]
        weights, route = rng.random(40) + 0.1, rng.permutation(4)[: int(rng.integers(1, 5))]
        said = np.where(is_selection[route], rng.uniform(0.1, 0.9, route.size), rng.uniform(1, 4, route.size))
        said[rng.random(route.size) < 0.2] = -1.0
        selections, seen, heavy = np.flatnonzero(is_selection), counts.copy(), weights.sum()
        orders.believe(counts, weights, route, said, is_selection)
        probe_is_last = 2 not in route[:-1]
        for found, wanted in zip(replay(counts, weights, route), said, strict=True):
            assert wanted < 0 or found == pytest.approx(wanted, rel=1e-6 if probe_is_last else 0.5)
        assert (counts[:, selections] == seen[:, selections]).all()
        assert not probe_is_last or weights.sum() == pytest.approx(heavy)


def test_a_sample_that_saw_nothing_pass_stays_as_it_is() -> None:
    counts, weights = np.zeros((5, 1)), np.ones(5)
    orders.believe(counts, weights, np.array([0]), np.array([0.5]), np.array([True]))
    assert weights.tolist() == [1] * 5 and not counts.any()
    counts = np.ones((5, 1))
    orders.believe(counts, weights, np.array([0]), np.array([0.5]), np.array([True]))
    assert weights.tolist() == [1] * 5


def test_the_gain_over_the_current_order_and_how_sure_it_is() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        p = problem(rng, 4, True, free=True)
        n = p.weights.size
        ages, half = rng.integers(0, 5000, n), float(rng.choice([500, 5000]))
        current = rng.permutation(4)
        none, found = np.empty(0, np.int64), np.empty(4, np.int64)
        is_selection = np.ones(p.counts.shape[1], bool)
        done = np.array([0]) if rng.random() < 0.5 and p.counts[:, 0].any() else none
        before, route = p.counts.copy(), rng.permutation(p.counts.shape[1])[: int(rng.integers(0, 3))]
        is_selection[0], said = False, rng.uniform(0.2, 0.8, route.size)
        length, best, gain, error = orders.judge(
            p.counts, ages, half, route, said, is_selection, done, p.column, p.level, p.cost, p.each, p.first,
            p.any_of, p.all_of, current, found,
        )  # fmt: skip
        assert (p.counts == before).all()
        p.weights = 0.5 ** (ages / half) * (p.counts[:, 0] if done.size else 1.0)
        orders.believe(p.counts, p.weights, route, said, is_selection)
        order = found[:length].tolist()
        assert best == pytest.approx(p.price(order)) == pytest.approx(min(map(p.price, p.orders())))
        assert gain == pytest.approx(p.price(current.tolist()) - best, abs=1e-9) and gain >= -1e-9
        one, other = np.empty(n), np.empty(n)
        orders.price(p.counts, p.column, p.level, p.cost, p.each, current, one)
        orders.price(p.counts, p.column, p.level, p.cost, p.each, found[:length], other)
        share = p.weights / p.weights.sum()
        assert error == pytest.approx(np.sqrt((share**2 * (one - other - gain) ** 2).sum()), abs=1e-9)


def test_judging_without_a_sample() -> None:
    level, cost = np.array([0.9, 0.1]), np.array([1.0, 1.0])
    none, found, zero = np.empty(0, np.int64), np.empty(2, np.int64), np.zeros(2, np.int64)
    length, best, gain, _ = orders.judge(
        np.empty((0, 2)), none, 1000.0, none, np.empty(0), np.ones(2, bool), none, np.array([-1, -1]), level, cost,
        np.zeros(2), 0b11, zero, zero, np.array([0, 1]), found,
    )  # fmt: skip
    assert (length, found.tolist()) == (2, [1, 0])
    assert (best, gain) == (pytest.approx(1.1), pytest.approx(0.8))
