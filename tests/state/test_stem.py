"""A SteM, compared with a list of Python rows, under any operations in any order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from eddyline.bound.expr import SourceColumn
from eddyline.state.arena import Arena
from eddyline.state.layout import Layout
from eddyline.state.probing import NO_BOUND, Limits
from eddyline.state.row_groups import RowGroups
from eddyline.state.rows import RETAINED
from eddyline.state.sorted_index import SortedIndex
from eddyline.state.stem import SteM
from eddyline.state.tuning import DEFAULT
from tests.support.properties import examples

BLOCK, TINY = DEFAULT.block, DEFAULT.unsorted_rows
K, S, D, X, L, W, N = (
    SourceColumn(0, "k", pa.int64()),
    SourceColumn(0, "s", pa.string()),
    SourceColumn(0, "d", pa.decimal128(38, 0)),
    SourceColumn(0, "x", pa.float64()),
    SourceColumn(0, "l", pa.list_(pa.string())),
    SourceColumn(0, "w", pa.dictionary(pa.int32(), pa.string())),
    SourceColumn(0, "n", pa.struct([("a", pa.int16()), ("b", pa.list_(pa.bool_()))])),
)
NAMES = {K: "k", S: "s", D: "d", X: "x", L: "l", W: "w", N: "n"}
LAYOUT = Layout(
    timed=True,
    ordinal=True,
    stored=(K, S, X, L, W, N),
    keys=(K, S, D),
    indexes=((K,), (S,), (D, S), (K, S, D)),
    order_keys=(X,),
)
STORED = RowGroups(0, 4, None)
"""Groups that come with the rows."""
ROW = st.fixed_dictionaries(
    {
        "time": st.integers(-30, 30),
        "k": st.integers(-2, 2) | st.sampled_from([2**63 - 1, -(2**63)]),
        "s": st.sampled_from(["", "a", "b", "ab"]),
        "d": st.sampled_from([0, 1, -1, 2**70]),
        "x": st.sampled_from([0.0, -0.0, 1.0, -1.5, float("inf"), float("nan")]),
        "l": st.sampled_from([None, [], ["a"], ["b", None]]),
        "w": st.sampled_from([None, "", "one", "two", "three"]),
        "n": st.sampled_from([None, {"a": 1, "b": None}, {"a": None, "b": [True, None]}]),
    }
)


def order(x: float) -> float:
    return float("inf") if x != x else x


def limits(before: int | np.ndarray, min_live: int, room: int, low=NO_BOUND, high=NO_BOUND) -> Limits:
    return Limits(low, high, np.atleast_1d(before), min_live, room, np.zeros(1, np.int64))


def store_and_build(stem: SteM, number: int, values: dict, times: np.ndarray, ordinals=None) -> tuple[int, int]:
    stem.rows.append(values, times, ordinals)
    return stem.build(number, times.size)


class Life(RuleBasedStateMachine):
    """Store, build, expire, commit, wind back, forget, go to another process, probe. `waiting` are the rows that are
    stored but not built."""

    @initialize()
    def begin(self) -> None:
        self.arena = Arena()
        self.stem = SteM(self.arena, LAYOUT, STORED)
        self.rows: list[dict] = []
        self.waiting: list[dict] = []
        self.min_live = self.number = 0
        self.numbers: list[tuple[int, int]] = []
        """(number, rows before it) of each build since the last commit."""
        self.mark = (0, 0, 0, 0)
        self.ordinal = 0

    @rule(rows=st.lists(ROW, min_size=1, max_size=12), times=st.sampled_from([1, 1, 8]))
    def store(self, rows: list[dict], times: int) -> None:
        rows = rows * times
        values = {e: pa.array([r[n] for r in rows], e.type) for e, n in NAMES.items()}
        ordinals = np.arange(self.ordinal, self.ordinal + len(rows))
        times = np.array([r["time"] for r in rows])
        self.stem.rows.append(values, times, ordinals, times % 3)
        self.waiting += [r | {"ordinal": o} for r, o in zip(rows, ordinals.tolist(), strict=True)]
        self.ordinal += len(rows)

    @rule(most=st.sampled_from([1, 7, 1000]), skip=st.integers(0, 3))
    def build(self, most: int, skip: int) -> None:
        built = self.waiting[:most]
        if not built:
            return
        self.number += skip
        assert self.stem.build(self.number, len(built)) == (len(self.rows), len(self.rows) + len(built))
        self.numbers.append((self.number, len(self.rows)))
        self.rows += built
        del self.waiting[:most]
        self.number += len(built)

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
        self.build(len(self.waiting), 0)
        self.stem.commit()
        self.mark = (len(self.rows), self.min_live, self.number, self.ordinal)
        self.numbers.clear()

    @rule()
    def wind_back(self) -> None:
        self.stem.wind_back()
        rows, self.min_live, self.number, self.ordinal = self.mark
        del self.rows[rows:]
        self.waiting.clear()
        self.numbers.clear()

    @rule(groups=st.sets(st.integers(0, 2)))
    def retain(self, groups: set[int]) -> None:
        """Rows of these groups are forgotten; the others get the next numbers."""
        self.commit()
        rows = np.arange(self.min_live, len(self.rows))
        kept = rows[~np.isin(self.stem.rows.groups(rows), list(groups))]
        renumbered = self.stem.retain(kept, {})
        self.min_live = len(self.rows)
        self.rows += [self.rows[r] for r in kept.tolist()]
        numbers = dict(zip(kept.tolist(), range(self.min_live, len(self.rows)), strict=True))
        assert renumbered.of(rows).tolist() == [numbers.get(r, -1) for r in rows.tolist()]
        self.mark = (len(self.rows), self.min_live, self.number, self.ordinal)

    @rule(skip=st.integers(0, 3))
    def go_elsewhere(self, skip: int) -> None:
        """All rows are built then. The regions have other numbers until they are restored."""
        self.build(len(self.waiting), 0)
        saved, there, freed = self.stem.saved(), self.arena.regions, list(self.arena.freed)
        self.arena.regions, self.arena.freed = skip, []
        self.stem = SteM(self.arena, LAYOUT, STORED)
        self.stem.restore(saved)
        self.arena.regions, self.arena.freed = there, freed
        self.numbers.clear()  # no packet is left
        self.mark = (*self.mark[:2], self.number, self.mark[3])

    def rows_before(self, number: int) -> int:
        """How many rows were built when the slot had built `number` tuples."""
        return next((rows for other, rows in self.numbers if other >= number), len(self.rows))

    def limits(self, tuples: int, low: int | None, room: int) -> tuple[Limits, list[int]]:
        """The limits of a probe by tuples of several builds, or of one; the first row that may match is computed as in
        the eddy."""
        asked = np.arange(self.number - tuples, self.number) if tuples % 2 else np.array([self.number - 3])
        asked = np.maximum(asked, self.mark[2])
        before = self.stem.prober.rows_before(asked)
        wanted = [self.rows_before(number) for number in asked.tolist()]
        assert before.tolist() == wanted
        each = wanted if len(wanted) == tuples else wanted * tuples
        if low is None:
            return limits(before, self.stem.rows.min_live, room), each
        first = self.stem.prober.first_at(low)
        return limits(before, first, room, np.full(tuples, low), np.full(tuples, low + 25)), each

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
        for tuples, matches in self.stem.prober.probe_key(on, self.stem.rows.key_values(on), rows, limits):
            assert tuples.size <= room
            same = np.ones(tuples.size, bool)
            for e in on:
                same &= self.stem.rows.same_key(e, matches, self.stem.rows, e, rows[tuples])
            found += zip(tuples[same].tolist(), matches[same].tolist(), strict=True)
        wanted = [
            (i, r)
            for i, a in enumerate(asked)
            for r in live
            if self.joins(r, before[i], low) and all(self.rows[a][NAMES[e]] == self.rows[r][NAMES[e]] for e in on)
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
            for tuples, rows in self.stem.prober.probe_range(X, least, most, limits)
            for t, r in zip(tuples, rows, strict=True)
        ]
        codes = in_order(pa.array([r["x"] for r in self.rows], pa.float64())) if self.rows else []
        wanted = [
            (i, r)
            for i in range(len(bounds))
            for r in range(self.min_live, len(self.rows))
            if self.joins(r, before[i], low) and least[i] <= codes[r] <= most[i]
        ]
        assert sorted(found) == wanted

    @rule(tuples=st.integers(0, 3), low=st.none() | st.integers(-31, 31), room=st.sampled_from([1, 7, 10_000]))
    def probe_all(self, tuples: int, low: int | None, room: int) -> None:
        limits, before = self.limits(tuples, low, room)
        found = [
            (int(t), int(r))
            for ts, rows in self.stem.prober.probe_all(tuples, limits)
            for t, r in zip(ts, rows, strict=True)
        ]
        wanted = [
            (i, r) for i in range(tuples) for r in range(self.min_live, len(self.rows)) if self.joins(r, before[i], low)
        ]
        assert found == wanted

    @invariant()
    def holds_the_live_rows(self) -> None:
        if not hasattr(self, "stem"):
            return
        assert (self.stem.built, self.stem.rows.min_live) == (len(self.rows), self.min_live)
        assert self.stem.rows.stored == len(self.rows) + len(self.waiting)
        live = np.arange(self.min_live, len(self.rows))
        for expr in LAYOUT.stored:
            wanted = [self.rows[r][NAMES[expr]] for r in live]
            assert repr(self.stem.rows.gather(expr, live).to_pylist()) == repr(wanted)
        assert self.stem.rows.times.values[live].tolist() == [self.rows[r]["time"] for r in live]
        assert self.stem.rows.ordinals(live).tolist() == [self.rows[r]["ordinal"] for r in live]
        assert self.stem.rows.groups(live).tolist() == [self.rows[r]["time"] % 3 for r in live]
        numbers = np.arange(self.mark[2], self.number + 1)
        assert self.stem.prober.rows_before(numbers).tolist() == [self.rows_before(n) for n in numbers.tolist()]


TestLife = Life.TestCase
TestLife.settings = examples(60, stateful_step_count=25, suppress_health_check=list(HealthCheck))


def small(times: list[int], keys: list[int]) -> SteM:
    stem = SteM(Arena(), Layout(True, False, (K,), (K,), ((K,),), ()))
    store_and_build(stem, 0, {K: pa.array(keys)}, np.array(times))
    return stem


def test_rows_before_a_number_in_this_batch() -> None:
    """Rows of the build with this number, and of later ones, do not count; neither do undone rows."""
    stem = small([1, 1], [7, 7])
    stem.commit()

    def builds(*numbers: int) -> None:
        for number in numbers:
            store_and_build(stem, number, {K: pa.array([7])}, np.array([1]))

    def before(*numbers: int) -> list[int]:
        return stem.prober.rows_before(np.array(numbers)).tolist()

    assert before(2, 99) == [2, 2]
    builds(10, 20, 21)
    assert before(2, 9, 10, 11, 20, 21, 22, 99, 10) == [2, 2, 2, 3, 3, 4, 5, 5, 2]
    stem.wind_back()
    assert before(2, 20, 99) == [2, 2, 2]
    builds(10, 15)
    assert before(10, 15, 16, 20, 21, 99) == [2, 3, 4, 4, 4, 4]
    stem.commit()
    builds(30)
    assert before(20, 30, 31) == [4, 4, 5]


def test_expiry_stops_at_the_first_row_that_may_still_join() -> None:
    stem = small([5, 1, 9, 2], [1, 2, 3, 4])
    stem.expire(5)
    assert stem.rows.min_live == 0
    stem.expire(6)
    assert stem.rows.min_live == 2
    stem.expire(1)
    assert stem.rows.min_live == 2
    stem.wind_back()
    assert (stem.built, stem.rows.min_live) == (0, 0)


def test_expiry_inside_an_undone_batch_is_undone() -> None:
    stem = small([1, 2, 3], [7, 7, 7])
    stem.commit()
    stem.expire(3)
    store_and_build(stem, 3, {K: pa.array([7])}, np.array([4]))
    stem.expire(100)
    stem.wind_back()
    [(_, rows)] = stem.prober.probe_key(
        (K,), stem.rows.key_values((K,)), np.array([0]), limits(3, stem.rows.min_live, 10)
    )
    assert rows.tolist() == [2, 1, 0]


def test_what_expired_in_an_undone_batch_is_still_found_after_indexes_were_rebuilt_in_it() -> None:
    """Rows expire, then a build is so large that tables are rebuilt and runs merged, then all is wound back."""
    stem = SteM(Arena(), Layout(True, False, (), (K,), ((K,),), (X,)))
    n = 1000

    def build(number: int, keys: np.ndarray, time: int) -> None:
        values = {K: pa.array(keys), X: pa.array(keys.astype(float))}
        store_and_build(stem, number, values, np.full(keys.size, time))

    build(0, np.arange(n), 1)
    stem.commit()
    stem.expire(2)
    assert stem.rows.min_live == n
    build(n, np.arange(n, 5 * n), 3)
    build(5 * n, np.arange(5 * n, 6 * n), 3)
    stem.wind_back()
    known = limits(n, 0, 10_000)
    rows = np.concatenate([r for _, r in stem.prober.probe_key((K,), stem.rows.key_values((K,)), np.arange(n), known)])
    assert sorted(rows.tolist()) == list(range(n))
    least, most = np.array([0.0]).view(np.int64), np.array([1e9]).view(np.int64)
    rows = np.concatenate([r for _, r in stem.prober.probe_range(X, least, most, known)])
    assert sorted(rows.tolist()) == list(range(n))


def test_a_sorted_index_made_inside_an_undone_batch() -> None:
    stem = SteM(Arena(), Layout(True, False, (), (), (), (X,)))
    first = TINY // 2
    store_and_build(stem, 0, {X: pa.array(np.arange(float(first)))}, np.zeros(first, np.int64))
    stem.commit()
    store_and_build(stem, first, {X: pa.array(np.arange(float(2 * TINY)))}, np.zeros(2 * TINY, np.int64))
    stem.wind_back()
    store_and_build(stem, first, {X: pa.array([3.0, 500.0])}, np.zeros(2, np.int64))
    least, most = np.array([3.0]).view(np.int64), np.array([4.0]).view(np.int64)
    rows = np.concatenate([r for _, r in stem.prober.probe_range(X, least, most, limits(stem.built, 0, 100))])
    assert sorted(rows.tolist()) == [3, 4, first]


@pytest.mark.parametrize("faulty", ["hash", "sorted", "store"])
def test_a_build_that_fails_half_way_can_be_wound_back(faulty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory runs out in the middle of a build: the part that was done is undone, and the SteM continues to work."""
    stem = SteM(Arena(), LAYOUT)
    values = {
        K: pa.array([1] * 100),
        S: pa.array(["a"] * 100),
        D: pa.array([1] * 100, D.type),
        X: pa.array([1.0] * 100),
        L: pa.array([["a"]] * 100),
        W: pa.array(["one"] * 100, W.type),
        N: pa.nulls(100, N.type),
    }
    times, ordinals = np.zeros(100, np.int64), np.arange(100)
    store_and_build(stem, 0, values, times, ordinals)
    stem.commit()
    part = {"hash": stem.indexes.hashed[K,], "sorted": stem.indexes.ordered[X], "store": stem.rows._stores[L]}[faulty]
    with monkeypatch.context() as patch:
        if faulty == "hash":  # the first two indexes were built
            patch.setattr(type(part), "build", failing_after(type(part), 2))
        else:
            patch.setattr(type(part), "append" if faulty == "store" else "build", no_memory)
        with pytest.raises(MemoryError):
            store_and_build(stem, 100, values, times, ordinals + 100)
    stem.wind_back()
    assert store_and_build(stem, 100, values, times, ordinals + 100) == (100, 200)
    known = limits(200, 0, 1000)
    for on in LAYOUT.indexes:
        rows = np.concatenate([r for _, r in stem.prober.probe_key(on, stem.rows.key_values(on), np.array([0]), known)])
        assert sorted(rows.tolist()) == list(range(200))
    one = np.array([1.0]).view(np.int64)
    rows = np.concatenate([r for _, r in stem.prober.probe_range(X, one, one, known)])
    assert sorted(rows.tolist()) == list(range(200))
    assert stem.rows.gather(L, np.arange(200)).to_pylist() == [["a"]] * 200


def test_a_sorted_index_whose_making_fails_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stem = SteM(Arena(), Layout(True, False, (), (), (), (X,)))
    ones, times = {X: pa.array([1.0] * TINY)}, np.zeros(TINY, np.int64)
    store_and_build(stem, 0, ones, times)
    stem.commit()
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(SortedIndex, "build", no_memory)
        store_and_build(stem, TINY, ones, times)
    stem.wind_back()
    store_and_build(stem, TINY, ones, times)
    one = np.array([1.0]).view(np.int64)
    rows = np.concatenate([r for _, r in stem.prober.probe_range(X, one, one, limits(2 * TINY, 0, 1000))])
    assert sorted(rows.tolist()) == list(range(2 * TINY))


def test_sorted_indexes_of_which_only_some_could_be_made_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stem = SteM(Arena(), Layout(True, False, (), (), (), (X, K)))
    ones, times = {X: pa.array([1.0] * TINY), K: pa.array([1] * TINY)}, np.zeros(TINY, np.int64)
    store_and_build(stem, 0, ones, times)
    stem.commit()
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(SortedIndex, "build", failing_after(SortedIndex, 1))
        store_and_build(stem, TINY, ones, times)
    stem.wind_back()
    store_and_build(stem, TINY, ones, times)
    for on, one in ((X, np.array([1.0]).view(np.int64)), (K, np.array([1]))):
        rows = np.concatenate([r for _, r in stem.prober.probe_range(on, one, one, limits(2 * TINY, 0, 1000))])
        assert sorted(rows.tolist()) == list(range(2 * TINY))


# Rows before a time


class Times:
    """A SteM with nothing but times, and the right answers of `first_at` from a list of times."""

    def __init__(self) -> None:
        self.stem = SteM(Arena(), Layout(True, True, (), (), (), ()))
        self.times: list[int] = []
        self.min_live = 0
        self.mark = (0, 0)

    def store(self, times: list[int]) -> None:
        ordinals = np.arange(len(self.times), len(self.times) + len(times))
        self.stem.rows.append({}, np.array(times, np.int64), ordinals)
        self.times += times

    def build(self) -> None:
        if self.stem.waiting:
            self.stem.build(self.stem.built, self.stem.waiting)

    def expire(self, ordinal: int) -> None:
        """Expire rows by ordinals, so that expired rows need not be old."""
        self.stem.expire_ordinals(ordinal)
        self.min_live = self.stem.rows.min_live

    def commit(self) -> None:
        self.build()
        self.stem.commit()
        self.mark = (len(self.times), self.min_live)

    def wind_back(self) -> None:
        self.stem.wind_back()
        rows, self.min_live = self.mark
        del self.times[rows:]

    def check(self, time: int) -> None:
        """All live rows before the found one are older than `time`; and blocks are skipped as long as all rows up to
        their end are older."""
        found = self.stem.prober.first_at(time)
        assert found == self.min_live or (found > self.min_live and found % BLOCK == 0)
        assert all(t < time for t in self.times[self.min_live : found])
        whole = self.min_live // BLOCK
        while BLOCK * (whole + 1) <= len(self.times) and max(self.times[: BLOCK * (whole + 1)]) < time:
            whole += 1
        assert found >= BLOCK * whole


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("base", [0, -(10**6), 10**15])
def test_first_at_leaves_out_only_rows_that_are_older_or_expired(seed: int, base: int) -> None:
    rng = np.random.default_rng([seed, abs(base)])
    known, now, skipped = Times(), base, 0
    for _ in range(150):
        doing = rng.choice(["store", "store", "build", "expire", "commit", "wind back"])
        if doing == "store":
            n = int(rng.choice([1, 5, BLOCK - 1, BLOCK, 3 * BLOCK + 7]))
            known.store((now + np.sort(rng.integers(0, 50, n)) - rng.integers(0, 20, n)).tolist())
            now += int(rng.integers(0, 60))
        elif doing == "build":
            known.build()
        elif doing == "expire":
            known.expire(int(rng.integers(known.min_live, known.stem.built + 1)))
        elif doing == "commit":
            known.commit()
        else:
            known.wind_back()
            now = max(known.times, default=base)
        for time in [now - int(rng.integers(0, 300)), now + 100, base - 1]:
            known.check(time)
            skipped += known.stem.prober.first_at(time) > known.min_live
    assert skipped > 50


def test_first_at_after_everything_expired_and_a_large_batch_was_undone() -> None:
    """Expired blocks are released, and the mapping moves on: nothing before them may be read again."""
    for blocks in (512, 1024, 1536):
        known = Times()
        known.store(list(range(-BLOCK * blocks, 0)))
        known.build()
        known.expire(BLOCK * blocks)
        known.commit()
        for _ in range(2):
            known.store([7] * 3000 * BLOCK)
            known.wind_back()
        known.store([5] * BLOCK + [6] * BLOCK)
        assert known.stem.prober.first_at(6) == BLOCK * (blocks + 1)
        assert known.stem.prober.first_at(5) == BLOCK * blocks
        known.check(6)


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
    """The counted bytes and the bytes on the host do not grow, however many rows have expired."""

    arena = Arena()
    stem = SteM(arena, LAYOUT)
    rng = np.random.default_rng(1)
    counted, on_host, remembered = [], [], []
    for first in range(0, 200_000, 500):
        values = {
            K: pa.array(np.arange(first, first + 500)),
            S: pa.array([f"key {i}" for i in range(first, first + 500)]),
            D: pa.array(np.arange(first, first + 500)).cast(pa.decimal128(38, 0)),
            X: pa.array(rng.random(500)),
            L: pa.array([["a", None], []] * 250, L.type),
            W: pa.array(["one", None] * 250, W.type),
            N: pa.array([{"a": 1, "b": [True]}, None] * 250, N.type),
        }
        store_and_build(stem, first, values, np.arange(first, first + 500), np.arange(first, first + 500))
        stem.expire(first - 1500)
        stem.commit()
        counted.append(stem.nbytes)
        on_host.append(arena.bytes)
        remembered.append((stem.builds._count, stem.rows.newest._column.nbytes // 8))
    assert {builds for builds, _ in remembered} == {0}
    assert max(blocks for _, blocks in remembered) <= 2500 // BLOCK + 1
    assert max(counted[200:]) <= 1.2 * max(counted[20:200])
    assert max(on_host[200:]) <= 1.2 * max(on_host[20:200])
    assert max(on_host[20:]) <= 2.5 * max(counted)


def test_many_rows_are_forgotten_in_pieces_and_give_their_memory_back() -> None:
    arena = Arena()
    stem = SteM(arena, Layout(True, False, (S, L), (K,), ((K,),), (X,)), STORED)
    n = 4 * RETAINED + 7
    at = np.arange(n)
    values = {
        K: pa.array(at),
        S: pa.array([f"text {i}" for i in at.tolist()]),
        L: pa.array([[str(i)] for i in at.tolist()]),
        X: pa.array(at.astype(float)),
    }
    stem.rows.append(values, at, None, at % 4)
    stem.build(0, n)
    stem.commit()
    counted, on_host = stem.nbytes, arena.bytes
    kept = at[at % 4 != 0]
    numbers = stem.retain(kept, {}).of(kept)
    assert numbers.tolist() == list(range(n, n + kept.size)) and stem.held == kept.size > 2 * RETAINED
    assert stem.rows.gather(S, numbers).equals(values[S].take(pa.array(kept)))
    assert stem.rows.gather(L, numbers).equals(values[L].take(pa.array(kept)))
    found = list(stem.prober.probe_key((K,), at, at, limits(stem.built, stem.rows.min_live, n)))
    assert np.concatenate([tuples for tuples, _ in found]).tolist() == kept.tolist()
    assert np.concatenate([rows for _, rows in found]).tolist() == numbers.tolist()
    least, most = np.array([8.0]).view(np.int64), np.array([13.0]).view(np.int64)
    [(_, rows)] = stem.prober.probe_range(X, least, most, limits(stem.built, stem.rows.min_live, n))
    assert stem.rows.gather(S, np.sort(rows)).to_pylist() == ["text 9", "text 10", "text 11", "text 13"]
    assert stem.nbytes < 0.8 * counted and arena.bytes < 0.9 * on_host
    stem.retain(np.empty(0, np.int64), {})
    assert stem.held == 0 and stem.rows.nbytes < 100 and arena.bytes < 0.1 * on_host


def test_rows_that_are_forgotten_again_and_again_leave_nothing_behind() -> None:
    """Every batch adds rows of four groups, and one group is forgotten after it."""
    arena = Arena()
    stem = SteM(arena, Layout(True, False, (S,), (K,), ((K,),), (X,)), STORED)
    counted, on_host = [], []
    for number in range(300):
        at = np.arange(400) + 400 * number
        values = {K: pa.array(at), S: pa.array([f"text {i}" for i in at.tolist()]), X: pa.array(at.astype(float))}
        stem.rows.append(values, at, None, at % 4)
        stem.build(number, 400)
        stem.commit()
        live = np.arange(stem.rows.min_live, stem.built)
        stem.retain(live[stem.rows.groups(live) != number % 4], {})
        counted.append(stem.nbytes)
        on_host.append(arena.bytes)
    assert stem.held == 100 * (0 + 1 + 2 + 3)
    assert max(counted[100:]) <= 1.1 * max(counted[4:100]) and max(on_host[100:]) <= 1.2 * max(on_host[4:100])


def test_rows_that_share_keys_are_forgotten_and_take_no_room_for_more_keys() -> None:
    stem = SteM(Arena(), Layout(True, False, (), (K,), ((K,),), ()), STORED)
    n, keys = 50_000, 100
    for number, at in enumerate(np.split(np.arange(n), 100)):
        stem.rows.append({K: pa.array(at % keys)}, at, None, at % 4)
        stem.build(number, at.size)
        stem.commit()
    before, at = stem.nbytes, np.arange(n)
    stem.retain(at[at % 4 != 0], {})
    assert stem.nbytes < 0.8 * before
    found = list(stem.prober.probe_key((K,), at[:keys], at[:keys], limits(stem.built, stem.rows.min_live, keys)))
    counts = np.bincount(np.concatenate([tuples for tuples, _ in found]), minlength=keys)
    assert counts.tolist() == [0 if key % 4 == 0 else n // keys for key in range(keys)]
