"""Time bounds: every way to write them, their closure, and when a row can join nothing any more."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.evaluate import ErrorCount, mask
from eddyline.bound.expr import SourceColumn
from eddyline.bound.model import BoundQuery
from eddyline.plan.bounds import FOREVER, UNBOUND, Bounds, differences_in, time_bounds
from eddyline.plan.graph import join_graph
from tests.support.jobs import TIME, bound

WAYS = [
    "a.ts - b.ts <= INTERVAL '5' MICROSECOND",
    "a.ts - b.ts < INTERVAL '5' MICROSECOND",
    "INTERVAL '5' MICROSECOND >= a.ts - b.ts",
    "INTERVAL '5' MICROSECOND > a.ts - b.ts",
    "a.ts - b.ts >= INTERVAL '-5' MICROSECOND",
    "a.ts - b.ts > INTERVAL '-5' MICROSECOND",
    "a.ts - b.ts BETWEEN INTERVAL '-5' MICROSECOND AND INTERVAL '3' MICROSECOND",
    "ABS(a.ts - b.ts) <= INTERVAL '5' MICROSECOND",
    "ABS(a.ts - b.ts) < INTERVAL '5' MICROSECOND",
    "INTERVAL '5' MICROSECOND >= ABS(b.ts - a.ts)",
    "ABS(a.ts - b.ts + INTERVAL '2' MICROSECOND) <= INTERVAL '4' MICROSECOND",
    "a.ts <= b.ts",
    "a.ts < b.ts",
    "a.ts >= b.ts + INTERVAL '2' MICROSECOND",
    "a.ts + INTERVAL '1' MICROSECOND > b.ts - INTERVAL '3' MICROSECOND",
    "a.ts BETWEEN b.ts AND b.ts + INTERVAL '4' MICROSECOND",
    "a.ts BETWEEN b.ts - INTERVAL '4' MICROSECOND AND b.ts - INTERVAL '1' MICROSECOND",
    "a.ts - INTERVAL '7' MICROSECOND < b.ts",
    "INTERVAL '2' MICROSECOND + a.ts >= b.ts",
    "a.ts - b.ts - INTERVAL '1' MICROSECOND <= INTERVAL '3' MICROSECOND - INTERVAL '2' MICROSECOND",
    "-(a.ts - b.ts) <= INTERVAL '3' MICROSECOND",
]
OTHERS = [
    "a.ts = b.ts",
    "a.ts <> b.ts",
    "ABS(a.ts - b.ts) >= INTERVAL '5' MICROSECOND",
    "ABS(a.ts - b.ts) > INTERVAL '5' MICROSECOND",
    "a.other - b.ts <= INTERVAL '5' MICROSECOND",
    "a.ts <= b.ts OR a.k = b.k",
    "NOT a.ts <= b.ts",
    "a.ts - b.ts <= b.ts - a.ts + INTERVAL '2' MICROSECOND",
    "a.ts - b.ts <= CASE WHEN a.k > 0 THEN INTERVAL '1' MICROSECOND ELSE INTERVAL '2' MICROSECOND END",
    "date_trunc('second', a.ts) <= b.ts",
]
TIMES = np.arange(-12, 13)


def two(where: str) -> BoundQuery:
    return bound(f"SELECT a.k FROM a, b WHERE {where}", a="k other:time", b="k other:time")


def held(query: BoundQuery, times: list[np.ndarray]) -> np.ndarray:
    """Where the predicates of a query hold, evaluated."""
    env = {SourceColumn(i, "ts", TIME): pa.array(t, TIME) for i, t in enumerate(times)}
    result = np.ones(times[0].size, bool)
    for predicate in query.predicates:
        result &= mask(predicate, env, times[0].size, ErrorCount())
    return result


def within(bounds: Bounds, times: list[np.ndarray]) -> np.ndarray:
    result = np.ones(times[0].size, bool)
    for i, j in product(range(len(times)), repeat=2):
        if i != j:
            result &= times[i] - times[j] <= bounds.most[i][j]
    return result


@pytest.mark.parametrize("where", WAYS)
def test_a_bound_is_found_and_is_what_the_predicate_says(where: str) -> None:
    query = two(where)
    graph = join_graph(query)
    assert not graph.residuals and not graph.ranges and not graph.equalities
    assert graph.time_pairs == {frozenset((0, 1))}
    a, b = (side.ravel() for side in np.meshgrid(TIMES, TIMES))
    truth = held(query, [a, b])
    assert truth.any() and not truth.all()
    assert (within(graph.bounds, [a, b]) == truth).all()


@pytest.mark.parametrize("where", OTHERS)
def test_what_only_looks_like_a_bound_stays_a_predicate(where: str) -> None:
    query = two(where)
    assert [differences_in(p, query) for p in query.predicates] == [None] * len(query.predicates)
    graph = join_graph(query)
    assert not graph.time_pairs
    assert len(graph.residuals) + len(graph.ranges) + len(graph.equalities) == 1
    assert graph.bounds.most == ((0, UNBOUND), (UNBOUND, 0))


def test_half_a_bound_counts_and_the_other_half_is_checked() -> None:
    graph = join_graph(two("a.ts BETWEEN b.ts AND b.other"))
    assert graph.bounds.most == ((0, UNBOUND), (0, 0))
    assert len(graph.ranges) + len(graph.residuals) == 1


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_times_in_other_units_are_bounds_too(unit: str) -> None:
    schema = pa.schema([("ts", pa.timestamp(unit))])
    graph = join_graph(bound("SELECT a.ts FROM a, b WHERE a.ts - b.ts <= INTERVAL '5' SECOND", a=schema, b=schema))
    assert graph.bounds.most[0][1] == 5_000_000


def test_the_time_of_a_table_bounds_nothing() -> None:
    query = bound("SELECT a.k FROM a, t WHERE a.ts <= t.ts", tables=["t"], a="k", t="ts:time")
    graph = join_graph(query)
    assert not graph.time_pairs and len(graph.ranges) == 1
    assert graph.bounds.most == ((0, UNBOUND), (UNBOUND, 0))


def test_windows_are_bounds() -> None:
    query = bound(
        "SELECT a.k FROM a [RANGE 5 MICROSECONDS], b [RANGE 9 MICROSECONDS], c, t, d [ROWS 3]",
        tables=["t"], a="k", b="k", c="k", t="k", d="k",
    )  # fmt: skip
    u = UNBOUND
    assert join_graph(query).bounds.most == (
        (0, 9, u, u, u),
        (5, 0, u, u, u),
        (5, 9, 0, u, u),
        (u, u, u, 0, u),
        (5, 9, u, u, 0),
    )


def test_a_slide_makes_a_window_one_microsecond_shorter() -> None:
    """T - W < ts <= T: two components are less than W apart."""
    window = "[RANGE 10 SECONDS SLIDE 5 SECONDS]"
    graph = join_graph(bound(f"SELECT COUNT(*) AS n FROM a {window}, b {window}", a="k", b="k"))
    assert graph.bounds.most == ((0, 9_999_999), (9_999_999, 0))


def random_query(rng: np.random.Generator, n: int) -> tuple[BoundQuery, list[tuple[int, int, int]]]:
    names = "abcd"[:n]
    windows = [f" [RANGE {rng.integers(0, 6)} MICROSECONDS]" if rng.random() < 0.4 else "" for _ in names]
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    differences = [(*pairs[rng.integers(len(pairs))], int(rng.integers(-3, 6))) for _ in range(int(rng.integers(0, 4)))]
    sources = ", ".join(f"{name}{window}" for name, window in zip(names, windows, strict=True))
    return bound(f"SELECT a.k FROM {sources}", **dict.fromkeys(names, "k")), differences


@pytest.mark.parametrize("seed", range(40))
def test_the_closure_is_the_shortest_path(seed: int) -> None:
    """Every pair of times that the closure allows is part of a combination, and no other is."""
    rng = np.random.default_rng(seed)
    query, differences = random_query(rng, 3)
    bounds = time_bounds(query, differences)
    times = np.arange(-9, 10)
    grid = [g.ravel() for g in np.meshgrid(times, times, times)]
    fits = np.ones(grid[0].size, bool)
    for j, source in enumerate(query.sources):
        if source.window.kind.value == "RANGE":
            fits &= np.max(grid, axis=0) - grid[j] <= source.window.size
    for i, j, c in differences:
        fits &= grid[i] - grid[j] <= c
    assert (within(bounds, grid) == fits).all()
    for i, j in product(range(3), repeat=2):
        inner = np.abs(grid[i]) <= 1  # far from the ends of the grid, so that a third component fits into it
        if i != j and fits.any() and -8 <= bounds.most[i][j] <= 7:
            assert (grid[i] - grid[j])[fits & inner].max() == bounds.most[i][j]


@pytest.mark.parametrize("seed", range(40))
def test_a_row_is_dead_exactly_when_no_row_to_come_can_join_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    query, differences = random_query(rng, 3)
    bounds = time_bounds(query, differences)
    watermarks = [[int(rng.integers(-3, 4)), FOREVER, None][rng.choice(3, p=[0.7, 0.2, 0.1])] for _ in range(3)]
    times = np.arange(-30, 31)
    grid = [g.ravel() for g in np.meshgrid(times, times, times)]
    fits = within(bounds, grid)
    if not fits.any():
        return
    for source in range(3):
        horizon = bounds.horizon(source, watermarks)
        to_come = np.zeros(grid[0].size, bool)
        for other, watermark in enumerate(watermarks):
            if other != source and watermark != FOREVER:
                to_come |= grid[other] >= (-99 if watermark is None else watermark)
        joins = grid[source][fits & to_come]
        if not joins.size:
            assert horizon > 12
        elif joins.min() > -12:
            assert horizon == joins.min()
        else:
            assert horizon <= -12


def test_horizons_at_the_ends_of_time_stay_in_64_bits() -> None:
    query = bound("SELECT a.k FROM a [RANGE 3660000 DAYS], b [RANGE 3660000 DAYS]", a="k", b="k")
    bounds = time_bounds(query, [])
    for watermark in (2**60, -(2**60), -(2**60) - 10**18):
        assert -(2**63) < bounds.horizon(0, [watermark, watermark]) < 2**63
    for constant in (UNBOUND, -UNBOUND):
        pair = time_bounds(query, [(0, 1, constant)])
        assert -(2**63) < pair.horizon(1, [2**60, 0]) < 2**63
        assert all(-UNBOUND <= m <= UNBOUND for row in pair.most for m in row)


def test_contradictory_bounds_leave_nothing() -> None:
    bounds = time_bounds(two("a.k = b.k"), [(0, 1, -5), (1, 0, -5)])
    a, b = (side.ravel() for side in np.meshgrid(TIMES, TIMES))
    assert not within(bounds, [a, b]).any()
