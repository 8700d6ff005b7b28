"""A SteM beside a list of Python rows, whatever is done to it in whatever order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from eddyline.query.expr import Column
from eddyline.state.arena import Arena
from eddyline.state.probing import NO_BOUND, Limits
from eddyline.state.sorted_index import SortedIndex
from eddyline.state.stem import TINY, Layout, SteM

K, S, D, X, L = (
    Column(0, "k", pa.int64()),
    Column(0, "s", pa.string()),
    Column(0, "d", pa.decimal128(38, 0)),
    Column(0, "x", pa.float64()),
    Column(0, "l", pa.list_(pa.string())),
)
NAMES = {K: "k", S: "s", D: "d", X: "x", L: "l"}
LAYOUT = Layout(
    timed=True,
    ordinal=True,
    stored=(K, S, X, L),
    keys=(K, S, D),
    indexes=((K,), (S,), (D, S), (K, S, D)),
    order_keys=(X,),
)
ROW = st.fixed_dictionaries(
    {
        "time": st.integers(-30, 30),
        "k": st.integers(-2, 2) | st.sampled_from([2**63 - 1, -(2**63)]),
        "s": st.sampled_from(["", "a", "b", "ab"]),
        "d": st.sampled_from([0, 1, -1, 2**70]),
        "x": st.sampled_from([0.0, -0.0, 1.0, -1.5, float("inf"), float("nan")]),
        "l": st.sampled_from([None, [], ["a"], ["b", None]]),
    }
)


def order(x: float) -> float:
    return float("inf") if x != x else x


class Life(RuleBasedStateMachine):
    """Build, expire, commit, wind back, probe."""

    @initialize()
    def begin(self) -> None:
        self.stem = SteM(Arena(), LAYOUT)
        self.rows: list[dict] = []
        self.min_live = self.number = 0
        self.numbers: list[tuple[int, int]] = []
        self.mark = (0, 0, 0, 0)
        self.ordinal = 0

    @rule(rows=st.lists(ROW, min_size=1, max_size=12), times=st.sampled_from([1, 1, 8]), skip=st.integers(0, 3))
    def build(self, rows: list[dict], times: int, skip: int) -> None:
        rows = rows * times
        self.number += skip
        values = {e: pa.array([r[n] for r in rows], e.type) for e, n in NAMES.items()}
        ordinals = np.arange(self.ordinal, self.ordinal + len(rows))
        found = self.stem.build(self.number, values, np.array([r["time"] for r in rows]), ordinals)
        assert found == (len(self.rows), len(self.rows) + len(rows))
        self.numbers.append((self.number, len(self.rows)))
        self.rows += [r | {"ordinal": o} for r, o in zip(rows, ordinals.tolist(), strict=True)]
        self.number += len(rows)
        self.ordinal += len(rows)

    @rule(horizon=st.integers(-31, 31))
    def expire(self, horizon: int) -> None:
        self.stem.expire(horizon)
        while self.min_live < len(self.rows) and self.rows[self.min_live]["time"] < horizon:
            self.min_live += 1

    @rule(back=st.integers(0, 80))
    def expire_ordinals(self, back: int) -> None:
        self.stem.expire_ordinals(self.ordinal - back)
        while self.min_live < len(self.rows) and self.rows[self.min_live]["ordinal"] < self.ordinal - back:
            self.min_live += 1

    @rule()
    def commit(self) -> None:
        self.stem.commit()
        self.mark = (len(self.rows), self.min_live, len(self.numbers), self.ordinal)

    @rule()
    def wind_back(self) -> None:
        self.stem.wind_back()
        rows, self.min_live, numbers, self.ordinal = self.mark
        del self.rows[rows:]
        del self.numbers[numbers:]
        self.number = 1 + (self.numbers[-1][0] + len(self.rows) - self.numbers[-1][1] if self.numbers else 0)

    def limits(self, tuples: int, low: int | None, room: int) -> tuple[Limits, int]:
        before = self.stem.rows_before(self.number - 3)
        if low is None:
            return Limits(NO_BOUND, NO_BOUND, before, self.stem.min_live, room), before
        return Limits(np.full(tuples, low), np.full(tuples, low + 25), before, self.stem.min_live, room), before

    def joins(self, row: int, before: int, low: int | None) -> bool:
        return self.min_live <= row < before and (low is None or low <= self.rows[row]["time"] <= low + 25)

    @rule(data=st.data(), low=st.none() | st.integers(-31, 31), room=st.sampled_from([1, 5, 10_000]))
    def probe_key(self, data: st.DataObject, low: int | None, room: int) -> None:
        live = list(range(self.min_live, len(self.rows)))
        if not live:
            return
        on = data.draw(st.sampled_from(LAYOUT.indexes))
        asked = data.draw(st.lists(st.sampled_from(live), min_size=1, max_size=6))
        limits, before = self.limits(len(asked), low, room)
        rows = np.array(asked)
        found = []
        for tuples, matches in self.stem.probe_key(on, self.stem.key_values(on), rows, limits):
            assert tuples.size <= room
            same = np.ones(tuples.size, bool)
            for e in on:
                same &= self.stem.same_key(e, matches, self.stem, e, rows[tuples])
            found += zip(tuples[same].tolist(), matches[same].tolist(), strict=True)
        wanted = [
            (i, r)
            for i, a in enumerate(asked)
            for r in live
            if self.joins(r, before, low) and all(self.rows[a][NAMES[e]] == self.rows[r][NAMES[e]] for e in on)
        ]
        assert sorted(found) == wanted

    @rule(
        bounds=st.lists(st.tuples(st.floats(), st.floats()), min_size=1, max_size=4),
        low=st.none() | st.integers(-31, 31),
        room=st.sampled_from([1, 5, 10_000]),
    )
    def probe_range(self, bounds: list[tuple[float, float]], low: int | None, room: int) -> None:
        from eddyline.state.keys import in_order

        least, most = (in_order(pa.array([b[i] for b in bounds], pa.float64())) for i in (0, 1))
        limits, before = self.limits(len(bounds), low, room)
        found = [
            (int(t), int(r))
            for tuples, rows in self.stem.probe_range(X, least, most, limits)
            for t, r in zip(tuples, rows, strict=True)
        ]
        codes = in_order(pa.array([r["x"] for r in self.rows], pa.float64())) if self.rows else []
        wanted = [
            (i, r)
            for i in range(len(bounds))
            for r in range(self.min_live, len(self.rows))
            if self.joins(r, before, low) and least[i] <= codes[r] <= most[i]
        ]
        assert sorted(found) == wanted

    @rule(tuples=st.integers(0, 3), low=st.none() | st.integers(-31, 31), room=st.sampled_from([1, 7, 10_000]))
    def probe_all(self, tuples: int, low: int | None, room: int) -> None:
        limits, before = self.limits(tuples, low, room)
        found = [
            (int(t), int(r)) for ts, rows in self.stem.probe_all(tuples, limits) for t, r in zip(ts, rows, strict=True)
        ]
        wanted = [
            (i, r) for i in range(tuples) for r in range(self.min_live, len(self.rows)) if self.joins(r, before, low)
        ]
        assert found == wanted

    @invariant()
    def holds_the_live_rows(self) -> None:
        if not hasattr(self, "stem"):
            return
        assert (self.stem.rows, self.stem.min_live) == (len(self.rows), self.min_live)
        live = np.arange(self.min_live, len(self.rows))
        for expr in LAYOUT.stored:
            wanted = [self.rows[r][NAMES[expr]] for r in live]
            assert repr(self.stem.gather(expr, live).to_pylist()) == repr(wanted)
        assert self.stem.times.values[live].tolist() == [self.rows[r]["time"] for r in live]
        for number, first in self.numbers:
            if first >= self.min_live:
                assert self.stem.rows_before(number) == first
        assert self.stem.rows_before(self.number) == len(self.rows)


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


def small(times: list[int], keys: list[int]) -> SteM:
    stem = SteM(Arena(), Layout(True, False, (K,), (K,), ((K,),), ()))
    stem.build(0, {K: pa.array(keys)}, np.array(times), None)
    return stem


def test_expiry_stops_at_the_first_row_that_may_still_join() -> None:
    stem = small([5, 1, 9, 2], [1, 2, 3, 4])
    stem.expire(5)
    assert stem.min_live == 0
    stem.expire(6)
    assert stem.min_live == 2
    stem.expire(1)
    assert stem.min_live == 2
    stem.wind_back()
    assert (stem.rows, stem.min_live) == (0, 0)


def test_expiry_inside_an_undone_batch_is_undone() -> None:
    stem = small([1, 2, 3], [7, 7, 7])
    stem.commit()
    stem.expire(3)
    stem.build(3, {K: pa.array([7])}, np.array([4]), None)
    stem.expire(100)
    stem.wind_back()
    limits = Limits(NO_BOUND, NO_BOUND, 3, stem.min_live, 10)
    [(_, rows)] = stem.probe_key((K,), stem.key_values((K,)), np.array([0]), limits)
    assert rows.tolist() == [2, 1, 0]


def test_what_expired_in_an_undone_batch_is_still_found_after_indexes_were_rebuilt_in_it() -> None:
    """Expiry, then a build so large that tables are rebuilt and runs merged, then wind-back to before the expiry."""
    stem = SteM(Arena(), Layout(True, False, (), (K,), ((K,),), (X,)))
    n = 1000

    def build(number: int, keys: np.ndarray, time: int) -> None:
        stem.build(number, {K: pa.array(keys), X: pa.array(keys.astype(float))}, np.full(keys.size, time), None)

    build(0, np.arange(n), 1)
    stem.commit()
    stem.expire(2)
    assert stem.min_live == n
    build(n, np.arange(n, 5 * n), 3)
    build(5 * n, np.arange(5 * n, 6 * n), 3)
    stem.wind_back()
    limits = Limits(NO_BOUND, NO_BOUND, n, 0, 10_000)
    rows = np.concatenate([r for _, r in stem.probe_key((K,), stem.key_values((K,)), np.arange(n), limits)])
    assert sorted(rows.tolist()) == list(range(n))
    least, most = np.array([0.0]).view(np.int64), np.array([1e9]).view(np.int64)
    rows = np.concatenate([r for _, r in stem.probe_range(X, least, most, limits)])
    assert sorted(rows.tolist()) == list(range(n))


def test_a_sorted_index_made_inside_an_undone_batch() -> None:
    stem = SteM(Arena(), Layout(True, False, (), (), (), (X,)))
    first = TINY // 2
    stem.build(0, {X: pa.array(np.arange(float(first)))}, np.zeros(first, np.int64), None)
    stem.commit()
    stem.build(first, {X: pa.array(np.arange(float(2 * TINY)))}, np.zeros(2 * TINY, np.int64), None)
    stem.wind_back()
    stem.build(first, {X: pa.array([3.0, 500.0])}, np.zeros(2, np.int64), None)
    least, most = np.array([3.0]).view(np.int64), np.array([4.0]).view(np.int64)
    limits = Limits(NO_BOUND, NO_BOUND, stem.rows, 0, 100)
    rows = np.concatenate([r for _, r in stem.probe_range(X, least, most, limits)])
    assert sorted(rows.tolist()) == [3, 4, first]


@pytest.mark.parametrize("faulty", ["hash", "sorted", "store"])
def test_a_build_that_fails_half_way_can_be_wound_back(faulty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of memory in the middle of a build: what was done of it is undone, and the SteM goes on."""
    stem = SteM(Arena(), LAYOUT)
    values = {
        K: pa.array([1] * 100),
        S: pa.array(["a"] * 100),
        D: pa.array([1] * 100, D.type),
        X: pa.array([1.0] * 100),
        L: pa.array([["a"]] * 100),
    }
    times, ordinals = np.zeros(100, np.int64), np.arange(100)
    stem.build(0, values, times, ordinals)
    stem.commit()
    part = {"hash": stem._hashed[K,], "sorted": stem._sorted[X], "store": stem._stores[L]}[faulty]
    with monkeypatch.context() as patch:
        if faulty == "hash":  # the first two indexes are built
            patch.setattr(type(part), "build", failing_after(type(part), 2))
        else:
            patch.setattr(type(part), "append" if faulty == "store" else "build", no_memory)
        with pytest.raises(MemoryError):
            stem.build(100, values, times, ordinals + 100)
    stem.wind_back()
    stem.build(100, values, times, ordinals + 100)
    limits = Limits(NO_BOUND, NO_BOUND, 200, 0, 1000)
    for on in LAYOUT.indexes:
        rows = np.concatenate([r for _, r in stem.probe_key(on, stem.key_values(on), np.array([0]), limits)])
        assert sorted(rows.tolist()) == list(range(200))
    one = np.array([1.0]).view(np.int64)
    rows = np.concatenate([r for _, r in stem.probe_range(X, one, one, limits)])
    assert sorted(rows.tolist()) == list(range(200))
    assert stem.gather(L, np.arange(200)).to_pylist() == [["a"]] * 200


def test_a_sorted_index_whose_making_fails_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stem = SteM(Arena(), Layout(True, False, (), (), (), (X,)))
    ones, times = {X: pa.array([1.0] * TINY)}, np.zeros(TINY, np.int64)
    stem.build(0, ones, times, None)
    stem.commit()
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(SortedIndex, "build", no_memory)
        stem.build(TINY, ones, times, None)
    stem.wind_back()
    stem.build(TINY, ones, times, None)
    one, limits = np.array([1.0]).view(np.int64), Limits(NO_BOUND, NO_BOUND, 2 * TINY, 0, 1000)
    rows = np.concatenate([r for _, r in stem.probe_range(X, one, one, limits)])
    assert sorted(rows.tolist()) == list(range(2 * TINY))


def no_memory(*_: object) -> None:
    raise MemoryError


def failing_after(kind: type, calls: int):
    build, left = kind.build, [calls]

    def failing(self, *args):
        left[0] -= 1
        if left[0] < 0:
            raise MemoryError
        return build(self, *args)

    return failing


def test_a_long_life_is_flat() -> None:
    """Bytes accounted for and bytes on the host stay where they were, whatever has expired."""
    import os

    arena = Arena()
    stem = SteM(arena, LAYOUT)
    rng = np.random.default_rng(1)
    counted, on_host, runs = [], [], []
    for first in range(0, 200_000, 500):
        values = {
            K: pa.array(np.arange(first, first + 500)),
            S: pa.array([f"key {i}" for i in range(first, first + 500)]),
            D: pa.array(np.arange(first, first + 500)).cast(pa.decimal128(38, 0)),
            X: pa.array(rng.random(500)),
            L: pa.array([["a", None], []] * 250, L.type),
        }
        stem.build(first, values, np.arange(first, first + 500), np.arange(first, first + 500))
        stem.expire(first - 1500)
        stem.commit()
        counted.append(stem.nbytes)
        on_host.append(os.fstat(arena._fd).st_blocks * 512)
        runs.append(len(stem._runs))
    assert max(runs) <= 6
    assert max(counted[200:]) <= 1.2 * max(counted[20:200])
    assert max(on_host[200:]) <= 1.2 * max(on_host[20:200])
    assert max(on_host[20:]) <= 2.5 * max(counted)
