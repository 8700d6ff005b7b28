"""What is missing because groups were on disk is made by a sweep, once: small examples, and random lives."""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from eddyline.engine.slot import Slot
from eddyline.engine.watermarks import Watermarks
from eddyline.protocol.attach import close, open_slot
from eddyline.protocol.ledger import Moves
from eddyline.settings import Settings
from eddyline.spill.generations import Generations
from lab.fuzz.trees import random_tree
from tests.support.jobs import Row, batch_of, bound, schema
from tests.support.plan_world import GROUPED, QUERIES, TABLE, TABLE_ROWS, columns, options, planned, query, ready
from tests.support.regions import check_regions
from tests.support.slot_steps import Step, reopened, with_tables
from tests.support.spilling import Spilling, group_of, may_spill

LONG = "[RANGE 1000 MICROSECONDS]"
ONE, TWO = (next(key for key in range(99) if group_of(key, 2) == group) for group in (0, 1))
"""Keys of the groups 0 and 1."""
OUT, SWEEP = Moves(leave=(0, 1)), Moves(sweep=(0, 1))


class Life:
    """A query over streams with the columns ts, k, x whose groups, 0 and 1, move as it is told."""

    def __init__(self, select: str, tables: dict[str, Sequence[Row]] | None = None, lateness: int = 0) -> None:
        names = [name for name in "abcds" if f" {name} " in select]
        self._tables = {name: batch_of(schema("k x", False), rows) for name, rows in (tables or {}).items()}
        late = dict.fromkeys(names, lateness)
        bound_query = bound(select, late, self._tables, **dict.fromkeys([*names, *self._tables], "k x"))
        slot = with_tables(Slot(bound_query, may_spill(Settings(check=True), 2)), self._tables)
        self.spilling = Spilling(slot, self._tables)
        self._watermarks = Watermarks([s.stream for s in bound_query.sources if not s.stream.is_table])

    def batch(self, moves: Moves = Moves(), **rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:  # noqa: B008
        """A batch; returns the rows that the sweep before it made, and the others. Groups that are whole again are not
        swept."""
        out = self.spilling.ledger.generations.clean
        moves = replace(moves, sweep=tuple(group for group in moves.sweep if group in out))
        self._watermarks.finish_batch({name: max(row[0] for row in some) for name, some in rows.items()}, ())
        fed = {name: batch_of(schema("k x"), some) for name, some in rows.items()}
        marks = self._watermarks
        found = self.spilling.batch(Step(fed, marks.by_stream, marks.query, marks.newest), moves)
        self.spilling.commit()
        for row in self.spilling.swept:
            found.remove(row)
        return self.spilling.swept, found


def joined() -> Life:
    return Life(f"SELECT a.x, b.x AS y FROM a {LONG}, b {LONG} WHERE a.k = b.k")


def test_what_came_after_a_group_had_left_is_missing_until_it_is_swept() -> None:
    life = joined()
    assert life.batch(a=[(1, ONE, 1)]) == ([], [])
    assert life.batch(OUT, b=[(2, ONE, 2)]) == ([], []), "row 1 is on disk"
    assert life.batch(a=[(3, ONE, 3)]) == ([], [(3, 2)]), "row 2 is in memory"
    assert life.batch(SWEEP) == ([(1, 2)], [])
    assert life.batch(SWEEP) == ([], []), "nothing is made twice"
    assert life.batch(b=[(5, ONE, 5)]) == ([], [(3, 5)]), "row 1 is on disk still"
    assert life.batch(SWEEP) == ([(1, 5)], [])


def test_generations() -> None:
    """A group leaves three times; each pair of rows in different generations is missing, and all come at once."""
    life = joined()
    made = []
    for time in range(1, 5):
        made += life.batch(OUT, a=[(time, ONE, time)], b=[(time, ONE, time)])[1]
    assert made == [(time, time) for time in range(1, 5)]
    swept, _ = life.batch(SWEEP)
    assert swept == [(a, b) for a in range(1, 5) for b in range(1, 5) if a != b]


def test_rows_that_came_since_the_sweep_are_missing_with_those_of_all_generations() -> None:
    life = joined()
    life.batch(a=[(1, ONE, 1)])
    life.batch(OUT, a=[(2, ONE, 2)])
    life.batch(OUT, b=[(3, ONE, 3)])
    assert life.batch(SWEEP) == ([(1, 3), (2, 3)], [])
    assert life.batch(b=[(4, ONE, 4)]) == ([], [])
    assert life.batch(Moves(leave=(0,), sweep=(0,))) == ([(1, 4), (2, 4)], [])
    assert life.batch(a=[(5, ONE, 5)]) == ([], [])
    assert life.batch(SWEEP) == ([(5, 3), (5, 4)], [])


def test_only_the_groups_that_are_named_move() -> None:
    life = joined()
    life.batch(a=[(1, ONE, 1), (1, TWO, 2)])
    assert life.batch(Moves(leave=(0,)), b=[(2, ONE, 3), (2, TWO, 4)]) == ([], [(2, 4)])
    life.batch(Moves(leave=(1,)), b=[(3, TWO, 5)])
    assert life.batch(Moves(sweep=(1,))) == ([(2, 5)], [])
    assert life.batch(Moves(sweep=(0,))) == ([(1, 3)], [])


def test_rows_without_a_key_and_rows_that_are_filtered_out() -> None:
    life = Life(f"SELECT a.x, b.x AS y FROM a {LONG}, b {LONG} WHERE a.k = b.k AND a.x > 0")
    life.batch(a=[(1, ONE, 1), (1, None, 2), (1, ONE, -1), (1, ONE, None)])
    life.batch(OUT, b=[(2, ONE, 3), (2, None, 4)])
    assert life.batch(SWEEP) == ([(1, 3)], [])


def test_errors_of_conditions_across_sources_are_counted() -> None:
    """The rows meet in the sweep only: nobody else could tell of the error."""
    life = Life(f"SELECT a.x, b.x AS y FROM a {LONG}, b {LONG} WHERE a.k = b.k AND a.x % (b.x - a.x) = 0")
    life.batch(a=[(1, ONE, 2)])
    life.batch(OUT, b=[(2, ONE, 2), (2, ONE, 3)])
    assert life.spilling.slot.errors.count == 0
    assert life.batch(SWEEP) == ([(2, 3)], [])
    assert life.spilling.slot.errors.count == 1
    life.batch(SWEEP)
    assert life.spilling.slot.errors.count == 1


STAYS = f"SELECT a.x, b.x AS y, c.x AS z FROM a {LONG}, b {LONG}, c {LONG} WHERE a.k = b.k AND b.x < c.x"


@pytest.mark.parametrize("first", ["before", "after"])
def test_a_source_that_stays_in_memory(first: str) -> None:
    """The rows of `c` have no group: whether they came before or after the group had left decides what is missing."""
    life = Life(STAYS)
    life.batch(a=[(1, ONE, 1)], **({"c": [(1, 0, 9)]} if first == "before" else {}))
    late = {} if first == "before" else {"c": [(2, 0, 9)]}
    assert life.batch(OUT, b=[(2, ONE, 2)], **late) == ([], [])
    assert life.batch(c=[(3, 0, 8)]) == ([], []), "a is on disk, though b and c are in memory"
    assert life.batch(SWEEP) == ([(1, 2, 8), (1, 2, 9)], [])
    assert life.batch(c=[(5, 0, 7)]) == ([], [])
    assert life.batch(a=[(6, ONE, 6)]) == ([], [(6, 2, 7), (6, 2, 8), (6, 2, 9)])
    assert life.batch(SWEEP) == ([(1, 2, 7)], [])


def test_a_source_that_follows_leaves_by_groups_of_its_own() -> None:
    """The groups of `c` are 2 and 3. While its rows are on disk, any group may miss results."""
    life = Life(STAYS)
    life.batch(a=[(1, ONE, 1)], c=[(1, 0, 9), (1, 0, 8), (1, 1, 7)])
    assert life.batch(Moves(leave=(2, 3)), b=[(2, ONE, 2)], a=[(2, TWO, 3)]) == ([], [])
    assert life.batch(c=[(3, 0, 6)]) == ([], [(1, 2, 6)])
    assert life.batch(SWEEP, b=[(4, TWO, 4)]) == ([(1, 2, 7), (1, 2, 8), (1, 2, 9)], [(3, 4, 6)])
    assert life.batch(Moves(leave=(0, 2, 3))) == ([], [])
    assert life.batch(c=[(6, 0, 5)]) == ([], [(3, 4, 5)]), "a and b of the other key are on disk"
    assert life.batch(SWEEP) == ([(1, 2, 5), (3, 4, 7), (3, 4, 8), (3, 4, 9)], [])


def test_a_sweep_before_rows_that_follow_leave_is_done_again() -> None:
    """The batch is wound back after they have left: the sweep of its next attempt must not look for them in memory."""
    life = Life(STAYS)
    life.batch(a=[(1, ONE, 1)], c=[(1, 0, 9)])
    life.batch(Moves(leave=(0,)), b=[(2, ONE, 2)])
    spilling = life.spilling
    step = Step({}, {"a": None, "b": None, "c": None}, None, None)
    once = spilling.batch(step, Moves(leave=(2, 3), sweep=(0,)))
    spilling.wind_back()
    assert spilling.batch(step, Moves(leave=(2, 3), sweep=(0,))) == once == [(1, 2, 9)]


def test_groups_that_are_clean_to_different_epochs_are_swept_together() -> None:
    """The row of `c` came after group 1 was clean, and before group 0 was swept: with that it is joined already."""
    life = Life(STAYS)
    life.batch(a=[(1, ONE, 1), (1, TWO, 2)])
    assert life.batch(OUT, b=[(2, ONE, 3), (2, TWO, 4)], c=[(2, 0, 9)]) == ([], [])
    assert life.batch(Moves(sweep=(0,)), b=[(3, ONE, 5)]) == ([(1, 3, 9)], [])
    assert life.batch(SWEEP) == ([(1, 5, 9), (2, 4, 9)], [])


def test_rows_that_no_row_to_come_joins_with_are_there_for_a_sweep() -> None:
    """At time 100 no row to come can join with `c` of time 5, but the missing result of time 6 can."""
    short = "[RANGE 10 MICROSECONDS]"
    life = Life(f"SELECT a.x, b.x AS y, c.x AS z FROM a {short}, b {short}, c {short} WHERE a.k = b.k AND b.x < c.x")
    life.batch(a=[(4, ONE, 1)], b=[(4, TWO, 0)], c=[(4, 0, 0)])
    life.batch(OUT, b=[(6, ONE, 2)], c=[(5, 0, 9)])
    far = [(100, TWO, 0)]
    life.batch(a=far, b=far, c=[(100, 0, 0)])
    life.batch(a=far, b=far)
    assert life.batch(SWEEP) == ([(1, 2, 9)], [])


COLD = Moves(leave=(0, 1), cool=(0, 1))


def test_rows_of_cold_groups_are_joined_by_sweeps_alone() -> None:
    life = joined()
    assert life.batch(a=[(1, ONE, 1)], b=[(1, ONE, 2)]) == ([], [(1, 2)])
    assert life.batch(COLD, a=[(2, ONE, 3)], b=[(2, ONE, 4), (2, TWO, 5)]) == ([], [])
    assert life.batch(a=[(3, TWO, 6)]) == ([], [])
    assert life.spilling.slot.state_rows == 0
    assert life.batch(SWEEP, a=[(4, ONE, 7)]) == ([(1, 4), (3, 2), (3, 4), (6, 5)], [])
    assert life.batch(Moves(sweep=(0, 1), warm=(0,)), b=[(5, ONE, 8), (5, TWO, 9)]) == ([(7, 2), (7, 4)], [])
    assert life.spilling.ledger.generations.cold.keys() == {1}
    assert life.batch(a=[(6, ONE, 10), (6, TWO, 11)]) == ([], [(10, 8)]), "only the other group is cold"


def test_a_cold_group_gets_warm_only_when_it_is_clean() -> None:
    life = joined()
    life.batch(a=[(1, ONE, 1)])
    life.batch(COLD, b=[(2, ONE, 2)])
    assert life.batch(Moves(sweep=(1,), warm=(0,)), a=[(3, ONE, 3)]) == ([], [])
    assert sum(
        part.state_rows for part in life.spilling.slot.executor.parts
    ) == 0 and life.spilling.ledger.generations.cold.keys() == {0, 1}
    warm = Moves(sweep=(0, 1), warm=(0, 1))
    assert life.batch(warm, a=[(4, ONE, 4)], b=[(4, ONE, 5)]) == ([(1, 2), (3, 2)], [(4, 5)])
    assert life.batch(SWEEP) == ([(1, 5), (3, 5), (4, 2)], [])


def test_sources_that_follow_by_keys_are_joined_one_after_the_other() -> None:
    """The rows of three stages, of which the first two make tuples that wait."""
    select = "SELECT a.x, b.x AS y, c.x AS z, d.x AS w FROM"
    keys = "a.k = b.k AND b.x = c.k AND c.x = d.k"
    life = Life(f"{select} a {LONG}, b {LONG}, c {LONG}, d {LONG} WHERE {keys}")
    life.batch(a=[(1, ONE, 1)], c=[(1, 5, 6), (1, 5, 7)], d=[(1, 7, 8)])
    groups = tuple(range(6))
    assert life.batch(Moves(leave=groups, cool=groups), b=[(2, ONE, 5)], d=[(2, 6, 9)]) == ([], [])
    assert life.batch(SWEEP) == ([(1, 5, 6, 9), (1, 5, 7, 8)], [])
    assert life.batch(c=[(3, 5, 7)], d=[(3, 7, 2)]) == ([], [])
    assert life.batch(SWEEP) == ([(1, 5, 7, 2), (1, 5, 7, 2), (1, 5, 7, 8)], []), "the others are made"
    many = range(100, 120)
    rows = {"b": [(4, ONE, n) for n in many], "c": [(4, n, n) for n in many], "d": [(4, n, n) for n in many]}
    life.batch(**rows)
    assert life.batch(SWEEP) == ([(1, n, n, n) for n in many], [])


def test_a_table_leaves_by_its_key_or_stays() -> None:
    rows = {"t": [(ONE, 7), (ONE, 8), (TWO, 9), (None, 0)]}
    leaves = Life(f"SELECT a.x, t.x AS y FROM a {LONG}, t WHERE a.k = t.k", rows)
    assert leaves.batch(OUT, a=[(1, ONE, 1)]) == ([], [])
    assert leaves.batch(Moves(sweep=(0,)), a=[(2, TWO, 2)]) == ([(1, 7), (1, 8)], [])
    assert leaves.batch(SWEEP) == ([(2, 9)], [])
    assert leaves.spilling.ledger.generations.left.keys() == {0, 1}, "a row of a table may always join"
    stays = Life(f"SELECT a.x, b.x AS y, t.x AS z FROM a {LONG}, b {LONG}, t WHERE a.k = b.k AND a.x < t.x", rows)
    stays.batch(a=[(1, ONE, 8)])
    assert stays.batch(OUT, b=[(2, ONE, 2)]) == ([], [])
    assert stays.batch(SWEEP) == ([(8, 2, 9)], [])


@pytest.mark.parametrize(("where", "pairs"), [("p.k = q.k", 9), ("p.k = q.x", 3)])
def test_a_self_join(where: str, pairs: int) -> None:
    """A row has a group for each alias, and these may differ."""
    life = Life(f"SELECT p.ts AS t, q.ts AS u FROM s {LONG} AS p, s {LONG} AS q WHERE {where}")
    made = []
    for time, (key, other) in enumerate([(ONE, TWO), (ONE, ONE), (ONE, TWO)], 1):
        made += life.batch(Moves(leave=(0,)) if time > 1 else Moves(), s=[(time, key, other)])[1]
    assert len(made) < pairs
    made += life.batch(SWEEP)[0]
    assert len(made) == len(set(made)) == pairs


def test_slide_boundaries_wait_until_groups_are_clean() -> None:
    slide = "[RANGE 10 MICROSECONDS SLIDE 10 MICROSECONDS]"
    life = Life(f"SELECT COUNT(*) AS n, SUM(a.x) AS s FROM a {slide}, b {slide} WHERE a.k = b.k")
    assert life.batch(a=[(1, ONE, 1), (1, TWO, 5)], b=[(1, TWO, 0)]) == ([], [])
    assert life.batch(Moves(leave=(0,)), b=[(2, ONE, 2)], a=[(2, ONE, 2)]) == ([], [])
    assert life.batch(a=[(25, TWO, 7)], b=[(25, TWO, 7)]) == ([], []), "the boundaries 10 and 20 are passed"
    _, found = life.batch(Moves(sweep=(0,)), a=[(26, ONE, 1)])
    assert found == [(3, 8)], "the missing row counts"
    assert life.batch(a=[(35, ONE, 1)], b=[(35, TWO, 1)]) == ([], [(1, 7)]), "the group is whole"


def test_a_group_is_whole_when_nothing_on_disk_can_join_any_more() -> None:
    short = "[RANGE 10 MICROSECONDS]"
    life = Life(f"SELECT a.x, b.x AS y FROM a {short}, b {short} WHERE a.k = b.k")
    life.batch(a=[(1, ONE, 1)], b=[(1, TWO, 2)])
    life.batch(OUT, a=[(5, ONE, 5)], b=[(5, TWO, 5)])
    life.batch(SWEEP)
    assert life.spilling.ledger.generations == Generations({0: (1,), 1: (1,)}, {0: 2, 1: 2})
    life.batch(a=[(50, ONE, 1)], b=[(50, ONE, 1)])
    life.batch(Moves(leave=(1,), sweep=(0, 1)))
    assert life.spilling.ledger.generations.left == {1: (1, 3)}, "a group that leaves again is not whole"
    life.batch(a=[(100, ONE, 1)], b=[(100, ONE, 1)])
    life.batch(Moves(sweep=(1,)))
    assert life.spilling.ledger.generations == Generations() and life.spilling.ledger.held is None


def test_the_memory_of_a_sweep_is_given_back_at_once() -> None:
    """Not when Python happens to look for cycles of objects."""

    def arenas() -> tuple[int, int]:
        """The open files and the mappings of arenas of this process."""
        links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
        files = [os.readlink(link) for link in links if os.path.lexists(link)]
        return sum("memfd:eddyline" in name for name in files), Path("/proc/self/maps").read_text().count(
            "memfd:eddyline"
        )

    life = Life(STAYS)
    life.batch(a=[(1, ONE, 1)], c=[(1, 0, 9)])
    life.batch(OUT, b=[(2, ONE, 2)])
    life.batch()
    gc.collect()
    gc.disable()
    try:
        before = arenas()
        assert life.batch(SWEEP) == ([(1, 2, 9)], []) and arenas() == before
    finally:
        gc.enable()


# Random lives


def moves(rng: random.Random, spilling: Spilling) -> Moves:
    """Some groups leave, all of them now and then; some that may miss results are swept."""
    out, axis = sorted(spilling.ledger.generations.clean), spilling.slot.executor.spill_axis
    assert axis is not None
    groups = axis.count if rng.random() < 0.5 else axis.size
    leave = [g for g in range(groups) if rng.random() < rng.choice([0.3, 1.0])] if rng.random() < 0.6 else []
    return Moves(tuple(leave), tuple(g for g in out if rng.random() < 0.5) if rng.random() < 0.4 else ())


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [*QUERIES, *GROUPED])
def test_rows_are_the_same_whatever_leaves_and_is_swept(name: str, seed: int, tmp_path: Path) -> None:
    """Plans change, batches are wound back and run again, with other rows at times, and the slot goes from process to
    process."""
    steps, expected = planned(name)
    rng, found, groups = random.Random(f"{name} {seed}"), list[Row](), 1 + (seed + 1) % 3
    tables = {"t": batch_of(TABLE, TABLE_ROWS)} if "t" in columns(name) else {}
    settings = may_spill(options(packet=rng.choice([None, 1, 3])), groups)
    spilling = Spilling(ready(name, open_slot(query(name), settings, str(tmp_path))), tables)
    for number, step in enumerate(steps):
        slot = spilling.slot
        if rng.random() < 0.4:
            slot.set_plan(
                random_tree(rng, len(slot.query.sources), slot.executor.plan.edges, grouped=0.5 * (name in GROUPED))
            )
        some = moves(rng, spilling)
        if rng.random() < 0.3:  # a batch with other rows, or the end, which comes to nothing
            spilling.batch(rng.choice([*steps[: number + 1], steps[-1]]), some)
            spilling.wind_back()
        once = spilling.batch(step, some)
        if rng.random() < 0.3:
            spilling.slot = reopened(spilling.slot, tmp_path)
            assert spilling.slot.version == number, "the state was lost"
        if rng.random() < 0.3:
            spilling.wind_back()
            assert spilling.batch(step, some) == once
        found += once
        spilling.commit()
        check_regions(spilling.slot, spilling.slot.arena)
    close(spilling.slot)
    assert sorted(found, key=repr) == expected and expected
