"""An intermediate SteM, compared with a list of Python tuples, under any operations on it and on the SteMs of its
components."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from eddyline.bound.expr import Expr, SourceColumn
from eddyline.state.arena import Arena
from eddyline.state.column import Column
from eddyline.state.layout import Layout
from eddyline.state.prober import Prober
from eddyline.state.probing import NO_BOUND, Limits
from eddyline.state.stem import SteM
from eddyline.state.view import View
from tests.support.properties import examples
from tests.support.regions import check_regions, taken

K0, S0, X0 = SourceColumn(0, "k", pa.int64()), SourceColumn(0, "s", pa.string()), SourceColumn(0, "x", pa.int64())
K1, X1 = SourceColumn(1, "k", pa.int64()), SourceColumn(1, "x", pa.int64())
K2 = SourceColumn(2, "k", pa.int64())
BASES = (
    Layout(True, False, (X0,), (K0, S0), ((K0,),), (X0,), edges=((K0,), (K0, S0))),
    Layout(True, False, (), (K1,), ((K1,),), (X1,)),
    Layout(False, False, (), (K2,), ((K2,),), ()),  # a table
)
BETWEEN = Layout(True, False, (), (), ((K0, S0), (K1,), (K2,)), (X0, X1), components=(0, 1, 2))


def some_rows(seed: int, size: int, start: int) -> list[dict]:
    """Rows with times near `start`: rows that expire first come roughly first."""
    rng = np.random.default_rng(seed)
    columns = {"time": start + rng.integers(-4, 5, size), "k": rng.integers(0, 3, size), "x": rng.integers(-3, 4, size)}
    texts = rng.choice(["a", "b"], size).tolist()
    return [{n: int(c[i]) for n, c in columns.items()} | {"s": texts[i]} for i in range(size)]


def limits(before: int, min_live: int, room: int = 10_000, low: int | None = None, tuples: int = 1) -> Limits:
    bounds = (NO_BOUND, NO_BOUND) if low is None else (np.full(tuples, low), np.full(tuples, low + 25))
    return Limits(*bounds, np.atleast_1d(before), min_live, room, np.zeros(1, np.int64))


def store_rows(stem: SteM, number: int, source: int, rows: list[dict]) -> None:
    values = {e: pa.array([r[e.name] for r in rows], e.type) for e in BASES[source].needed}
    stem.rows.append(values, np.array([r["time"] for r in rows]), None)
    stem.build(number, len(rows))


LOW = st.integers(-30, 30)


class Life(RuleBasedStateMachine):
    """Rows of three sources arrive and expire; any of their combinations are built as tuples. Now and then everything
    is restored into another SteM over the same files."""

    @initialize(seed=st.integers(0, 10**6))
    def begin(self, seed: int) -> None:
        self.arena = Arena()
        self.make()
        self.rows: list[list[dict]] = [[], [], []]
        self.tuples: list[tuple[int, int, int]] = []
        self.firsts, self.first, self.number = [0, 0, 0], 0, 0
        self.numbers: list[tuple[int, int]] = []
        self.commit()
        self.now = 0
        self.come(seed, 6)

    def make(self) -> None:
        self.bases = [SteM(self.arena, layout) for layout in BASES]
        self.stem = SteM(self.arena, BETWEEN)

    @rule(seed=st.integers(0, 10**6), size=st.integers(1, 6))
    def come(self, seed: int, size: int) -> None:
        """Adds rows to each source, so that tuples can soon be made."""
        for source in range(3):
            mine = some_rows(seed + source, size, self.now)
            store_rows(self.bases[source], self.number, source, mine)
            self.rows[source] += mine
            self.number += size
        self.now += 2

    @rule(seed=st.integers(0, 10**6), size=st.sampled_from([3, 9, 90]))
    def store_tuples(self, seed: int, size: int) -> None:
        """Combines any live rows, in any order, as the eddy finds them."""
        if any(first == len(rows) for first, rows in zip(self.firsts, self.rows, strict=True)):
            return
        rng = np.random.default_rng(seed)
        ends = [len(rows) for rows in self.rows]
        rows = {s: rng.integers(self.firsts[s], ends[s], size) for s in range(3)}
        self.stem.rows.append_tuples(rows, [base.rows for base in self.bases])
        assert self.stem.build(self.number, size) == (len(self.tuples), len(self.tuples) + size)
        self.numbers.append((self.number, len(self.tuples)))
        self.tuples += zip(*(rows[s].tolist() for s in range(3)), strict=True)
        self.number += size

    @rule(source=st.integers(0, 1), back=st.integers(-2, 12))
    def expire(self, source: int, back: int) -> None:
        horizon = self.now - back
        self.bases[source].expire(horizon)
        rows = self.rows[source]
        while self.firsts[source] < len(rows) and rows[self.firsts[source]]["time"] < horizon:
            self.firsts[source] += 1
        self.stem.expire_tuples(self.bases)
        while self.first < len(self.tuples) and not self.lives(self.first):
            self.first += 1

    def lives(self, row: int) -> bool:
        return all(r >= first for r, first in zip(self.tuples[row], self.firsts, strict=True))

    def part(self, row: int, source: int, name: str) -> object:
        return self.rows[source][self.tuples[row][source]][name]

    @rule()
    def commit(self) -> None:
        for stem in (*self.bases, self.stem):
            stem.commit()
        self.mark = [len(rows) for rows in self.rows], len(self.tuples), list(self.firsts), self.first, self.number
        self.numbers.clear()

    @rule()
    def wind_back(self) -> None:
        for stem in (*self.bases, self.stem):
            stem.wind_back()
        ends, tuples, firsts, self.first, self.number = self.mark
        for rows, end in zip(self.rows, ends, strict=True):
            del rows[end:]
        del self.tuples[tuples:]
        self.firsts = list(firsts)
        self.numbers.clear()

    @rule(skip=st.integers(0, 3))
    def go_elsewhere(self, skip: int) -> None:
        """The regions have other numbers until they are restored."""
        saved = [stem.saved() for stem in (*self.bases, self.stem)]
        there, freed = self.arena.regions, list(self.arena.freed)
        self.arena.regions, self.arena.freed = 0, []
        for _ in range(skip):
            self.arena.region()
        self.make()
        for stem, of_stem in zip((*self.bases, self.stem), saved, strict=True):
            stem.restore(of_stem)
        self.arena.regions, self.arena.freed = there, freed
        self.numbers.clear()

    @rule()
    def make_again(self) -> None:
        """Free the SteM and make it again from its live tuples, in the same order."""
        self.commit()
        live = [t for row, t in enumerate(self.tuples) if row >= self.first and self.lives(row)]
        self.stem.free()
        self.stem = SteM(self.arena, BETWEEN)
        self.tuples, self.first = live, 0
        if live:
            self.stem.rows.append_tuples(
                {s: np.array([t[s] for t in live]) for s in range(3)}, [base.rows for base in self.bases]
            )
            self.stem.build(self.number, len(live))
            self.number += len(live)
        self.commit()

    @rule(seed=st.integers(0, 10**6), share=st.sampled_from([0.0, 0.5, 0.9, 1.0]))
    def forget(self, seed: int, share: float) -> None:
        """Rows of the two streams are forgotten, and all tuples that have one of them."""
        self.commit()
        rng, renumbered, numbers = np.random.default_rng(seed), {}, []
        live = [t for row, t in enumerate(self.tuples) if row >= self.first and self.lives(row)]
        at = [row for row in range(self.first, len(self.tuples)) if self.lives(row)]
        for source in range(2):
            first, end = self.firsts[source], len(self.rows[source])
            kept = np.flatnonzero(rng.random(end - first) < share) + first
            renumbered[source] = self.bases[source].retain(kept, {})
            numbers.append(dict(zip(kept.tolist(), range(end, end + kept.size), strict=True)))
            self.rows[source] += [self.rows[source][row] for row in kept.tolist()]
            self.firsts[source] = end
        stay = [(row, (numbers[0][t[0]], numbers[1][t[1]], t[2])) for row, t in zip(at, live, strict=True)
                if t[0] in numbers[0] and t[1] in numbers[1]]  # fmt: skip
        self.stem.retain(np.array([row for row, _ in stay], np.int64), renumbered)
        self.first = len(self.tuples)
        self.tuples += [t for _, t in stay]
        self.commit()

    def found(self, matches, before: int, low: int | None) -> list[tuple[int, int]]:
        """The matches of a probe without dead tuples, as in the eddy."""
        found = []
        for asked, rows in matches:
            assert (rows >= self.first).all() and (rows < before).all()
            live = self.stem.prober.live(rows, [s.prober for s in self.bases])
            found += zip(asked[live].tolist(), rows[live].tolist(), strict=True)
        return sorted(found)

    def may_match(self, before: int, low: int | None) -> list[int]:
        """The live tuples that existed then and whose newest component is within the time."""
        rows = [row for row in range(self.first, before) if self.lives(row)]
        newest = {row: max(self.part(row, 0, "time"), self.part(row, 1, "time")) for row in rows}
        return [row for row in rows if low is None or low <= newest[row] <= low + 25]

    def asked(self, back: int, low: int | None) -> tuple[int, int]:
        """(the number of tuples that existed some builds ago, the first tuple to look at)."""
        number = max(self.number - back, self.mark[4])
        before = next((rows for other, rows in self.numbers if other >= number), len(self.tuples))
        assert self.stem.prober.rows_before(np.array([number])).tolist() == [before]
        return before, self.stem.rows.min_live if low is None else self.stem.prober.first_at(low)

    @rule(low=st.none() | LOW, room=st.sampled_from([1, 5, 999]), back=st.sampled_from([0, 1, 99]))
    def probe_keys(self, low: int | None, room: int, back: int) -> None:
        before, first = self.asked(back, low)
        if before <= first:
            return
        for on, source in (((K1,), 1), ((K2,), 2)):
            keys = np.array([0, 1, 2, 1])
            some = self.stem.prober.probe_key(on, keys, np.arange(4), limits(before, first, room, low, 4))
            twin = [
                (i, row)
                for i in range(4)
                for row in self.may_match(before, low)
                if self.part(row, source, "k") == keys[i]
            ]
            assert self.found(some, before, low) == sorted(twin)

    @rule(low=st.none() | LOW, back=st.sampled_from([0, 1, 99]))
    def probe_a_key_of_two_columns(self, low: int | None, back: int) -> None:
        """Probes with the codes of the source's own SteM."""
        before, first = self.asked(back, low)
        mine = range(self.firsts[0], len(self.rows[0]))
        if before <= first or not mine:
            return
        codes = self.bases[0].rows.key_values((K0, S0))
        some = self.stem.prober.probe_key((K0, S0), codes, np.array(mine), limits(before, first, 7, low, len(mine)))
        twin = [
            (i, row)
            for i, r in enumerate(mine)
            for row in self.may_match(before, low)
            if all(self.part(row, 0, name) == self.rows[0][r][name] for name in "ks")
        ]
        assert self.found(some, before, low) == sorted(twin)

    @rule(least=st.integers(-4, 4), wide=st.integers(-1, 5), low=st.none() | LOW)
    def probe_ranges(self, least: int, wide: int, low: int | None) -> None:
        before, first = self.asked(0, low)
        if before <= first:
            return
        for on, source in ((X0, 0), (X1, 1)):
            bounds = limits(before, first, 7, low)
            some = self.stem.prober.probe_range(on, np.array([least]), np.array([least + wide]), bounds)
            rows = [r for r in self.may_match(before, low) if least <= self.part(r, source, "x") <= least + wide]
            assert self.found(some, before, low) == [(0, row) for row in rows]

    @rule(low=st.none() | LOW)
    def probe_all(self, low: int | None) -> None:
        before, first = self.asked(0, low)
        if before > first:
            some = self.stem.prober.probe_all(1, limits(before, first, 3, low))
            assert self.found(some, before, low) == [(0, row) for row in self.may_match(before, low)]

    @invariant()
    def counts(self) -> None:
        if hasattr(self, "mark"):
            assert (self.stem.built, self.stem.rows.stored, self.stem.rows.min_live) == (len(self.tuples),) * 2 + (
                self.first,
            )
            for source, column in self.stem.rows.components.items():
                live = slice(self.first, len(self.tuples))
                assert column.values[live].tolist() == [t[source] for t in self.tuples[live]]

    def teardown(self) -> None:
        if hasattr(self, "arena"):
            check_regions([*self.bases, self.stem], self.arena)


LIFE = examples(60, stateful_step_count=40, suppress_health_check=list(HealthCheck))
TestLife = Life.TestCase
TestLife.settings = LIFE


def some_state() -> tuple[Arena, list[SteM], SteM]:
    """Tuples of which some in the middle are dead: row 0 of source 0, a component of tuples 1 and 3, has expired."""
    arena = Arena()
    bases, stem = [SteM(arena, layout) for layout in BASES], SteM(arena, BETWEEN)
    for source, base in enumerate(bases):
        store_rows(base, 0, source, [{"time": t, "k": 1, "s": "a", "x": t} for t in (1, 5, 9)])
    rows = {0: np.array([1, 0, 2, 0]), 1: np.array([0, 1, 2, 0]), 2: np.array([0, 0, 0, 0])}
    stem.rows.append_tuples(rows, [base.rows for base in bases])
    stem.build(9, 4)
    bases[0].expire(5)
    stem.expire_tuples(bases)
    return arena, bases, stem


def check_the_dead_in_the_middle(bases: list[SteM], stem: SteM) -> None:
    [(_asked, rows)] = stem.prober.probe_key((K1,), np.array([1]), np.array([0]), limits(4, stem.rows.min_live))
    live = stem.prober.live(rows, [s.prober for s in bases])
    assert sorted(rows[live].tolist()) == [0, 2]


def test_the_dead_in_the_middle_are_found_and_filtered() -> None:
    _, bases, stem = some_state()
    assert stem.rows.min_live == 0 and stem.built == 4, "the oldest tuple is live"
    check_the_dead_in_the_middle(bases, stem)
    bases[1].expire(9)  # expires row 0 of source 1 and with it tuple 0; tuple 1 is dead already
    stem.expire_tuples(bases)
    assert stem.rows.min_live == 2
    stem.wind_back()
    assert stem.rows.min_live == stem.built == 0


@pytest.mark.long
def test_planted_a_prober_that_does_not_check_that_tuples_are_live_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prober, "live", lambda self, rows, probers: np.ones(rows.size, np.bool_))
    _, bases, stem = some_state()
    with pytest.raises(AssertionError):
        check_the_dead_in_the_middle(bases, stem)
    # About 100 examples are needed, seldom 400. Hypothesis draws others when a constant changes in any loaded module.
    more = {"max_examples": 50 * LIFE.max_examples, "phases": [Phase.generate], "report_multiple_bugs": False}
    found = settings(LIFE, database=None, derandomize=True, **more)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Life, settings=found)


def test_times_are_those_of_the_newest_component() -> None:
    _, _, stem = some_state()
    assert stem.rows.times.values[:4].tolist() == [5, 5, 9, 1], "a table has no time"


def test_of_tables_alone_tuples_have_no_time() -> None:
    arena = Arena()
    bases = [SteM(arena, BASES[2]), SteM(arena, BASES[2])]
    stem = SteM(arena, Layout(False, False, (), (), (), (), components=(0, 1)))
    for source in range(2):
        bases[source].rows.append({K2: pa.array([1, 2])}, np.zeros(2, np.int64), None)
        bases[source].build(2 * source, 2)
    stem.rows.append_tuples({0: np.array([0, 1]), 1: np.array([1, 1])}, [base.rows for base in bases])
    stem.build(4, 2)
    stem.expire_tuples(bases)
    assert stem.rows.min_live == 0 and [m[1].tolist() for m in stem.prober.probe_all(1, limits(2, 0))] == [[0, 1]]


@pytest.mark.parametrize("where", ["memory", "folder"])
def test_what_is_freed_is_given_back_and_comes_zeroed(where: str, tmp_path: Path) -> None:
    arena = Arena(None if where == "memory" else str(tmp_path / "arena"))
    bases, stem = [SteM(arena, layout) for layout in BASES], SteM(arena, BETWEEN)
    for source, base in enumerate(bases):
        store_rows(base, 0, source, [{"time": t, "k": t, "s": "a", "x": t} for t in range(300)])
    before, base_regions = arena.bytes, {r for base in bases for r in taken(base)}
    for size in (300, 20, 5000):  # tables of several sizes, one after the other
        stem.rows.append_tuples({s: np.arange(size) % 299 + 1 for s in range(3)}, [base.rows for base in bases])
        stem.build(stem.built, size)
    stem.commit()
    given = taken(stem)
    assert len(given) == len(set(given)) and arena.bytes > before + 5000 * 8 * 5
    stem.free()
    assert sorted(arena.freed) == sorted(given) and not base_regions & set(given)
    assert arena.bytes <= before + 2**16
    for _ in given:
        column = Column(arena, "u1")
        column.reserve(1 << 20)
        assert column._region in given and not column.values[: 1 << 20].any()
    assert arena.freed == [] and Column(arena, "i8")._region == arena.regions - 1


def index_by(arena: Arena, stem: SteM, indexes: Sequence[tuple[Expr, ...]]) -> None:
    """Give a SteM other indexes, which a view makes in two builds."""
    view = View(arena, stem, indexes, stem.rows.min_live, fed=True)
    for number in range(2):
        view.build(number, view.behind // (2 - number))
    assert not view.behind
    stem.adopt(indexes, view.made.hashed)


def test_indexes_come_and_go_at_a_commit() -> None:
    arena = Arena()
    layout = Layout(True, False, (), (K0, S0), ((K0,), (K0, S0)), (), edges=((K0,), (K0, S0), (S0,)))
    stem, twin = SteM(arena, layout), SteM(Arena(), layout)
    for base in range(0, 5000, 1000):
        for one in (stem, twin):
            values = {K0: pa.array(np.arange(1000) % 7), S0: pa.array(["a", "b"] * 500)}
            one.rows.append(values, np.arange(base, base + 1000), None)
            one.build(base, 1000)
            one.expire(base)
            one.commit()
    index_by(arena, stem, [(K0,)])
    assert len(arena.freed) == 3, "two regions of a table, and the chains"
    index_by(arena, stem, [(K0, S0), (K0,)])
    assert len(arena.freed) == 0 and stem.layout.indexes == ((K0, S0), (K0,))
    assert stem.nbytes <= twin.nbytes, "rows that expired before the index was made are not counted"
    for on in stem.layout.indexes:
        for one in (stem, twin):
            one.wind_back()
        found, wanted = (
            np.concatenate(
                [rows for _, rows in one.prober.probe_key(on, one.rows.key_values(on), np.array([4001]), some)]
            ).tolist()
            for one in (stem, twin)
            for some in [limits(5000, one.rows.min_live)]
        )
        assert sorted(found) == sorted(wanted) and found
    index_by(arena, stem, [])
    stem.commit()
    index_by(arena, stem, [(K0,)])
    assert (
        sum(rows.size for _, rows in stem.prober.probe_key((K0,), np.array([3]), np.array([0]), limits(5000, 4000)))
        == 143
    )


def test_row_bytes() -> None:
    _, _bases, stem = some_state()
    assert stem.rows.row_bytes == 8 * 9, "a time, three rows, three keys, two order keys"
    assert SteM(Arena(), BETWEEN).rows.row_bytes == 0
    stem.commit()
    assert stem.rows.row_bytes == 8 * 9
