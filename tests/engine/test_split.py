"""The split: every result is made in one slot, every row is counted and logged once, and no row is shipped twice."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.bound.evaluate import ErrorCount, mask
from eddyline.bound.expr import Expr, SourceColumn
from eddyline.bound.model import BoundQuery
from eddyline.engine.slot import Slot
from eddyline.engine.split import Shipment, Split
from eddyline.plan.partition import partition
from eddyline.plan.plan import Plan
from eddyline.settings import Settings
from tests.support.jobs import Row, batch_of, bound, schema
from tests.support.properties import examples

COLUMNS = "k x y:float s:words w:string"
SHAPES = [
    "a.k = b.k AND b.k = c.k",
    "a.k = b.k AND b.x = c.x",
    "a.k = b.y AND b.s = c.w",
    "a.k = b.k AND b.k = c.y",
    "a.k + 1 = b.x AND a.x < c.x",
    "a.k = b.k AND a.x = b.x AND a.k = c.k AND c.x = b.x",
    "a.k < b.k",
    "a.x > 0",
]


def split_of(select: str, slots: int, groups: int = 256, **rows: float) -> Split:
    plan = Plan(bound(select, **dict.fromkeys("abc", COLUMNS)))
    return Split(plan, partition(plan, slots, groups, rows), logged=True)


def rows_for(rng: random.Random, count: int) -> list[Row]:
    def one(*values: Any) -> Any:
        return rng.choice([*values, None])

    return [
        (rng.randrange(20), one(0, 1, 2), one(0, 1, 2), one(0.0, -0.0, 1.0, 2.0), one("p", "q"), one("p", "q"))
        for _ in range(count)
    ]


def shipments(split: Split, rows: dict[str, list[Row]]) -> list[Shipment]:
    return [s for name, r in rows.items() for s in split.split(name, batch_of(schema(COLUMNS), r), None).shipments]


def built(found: list[Shipment], source: int, stream: str, slots: int) -> list[list[tuple[Any, ...]]]:
    """For each slot, the rows that it builds for a source."""
    by_slot: list[list[tuple[Any, ...]]] = [[] for _ in range(slots)]
    for s in found:
        if s.stream == stream:
            assert s.build is not None
            which = s.build[source]
            batch = s.batch if which is None else s.batch.filter(pa.array(which))
            by_slot[s.slot] += [tuple(row.values()) for row in batch.to_pylist()]
    return by_slot


def results(query: BoundQuery, rows: list[list[Row]]) -> list[tuple[int, ...]]:
    """The combinations of one row of each source, by number, that satisfy WHERE."""
    numbers = list(product(*(range(len(r)) for r in rows)))
    env: dict[Expr, pa.Array] = {}
    for source, item in enumerate(query.sources):
        batch = batch_of(item.stream.schema, [rows[source][n[source]] for n in numbers])
        env |= {SourceColumn(source, f.name, f.type): batch.column(f.name) for f in item.stream.schema}
    masks = [mask(p, env, len(numbers), ErrorCount()) for p in query.predicates]
    return [n for at, n in enumerate(numbers) if all(m[at] for m in masks)]


@examples(60)
@given(st.sampled_from(SHAPES), st.sampled_from([2, 3, 4, 8]), st.sampled_from([1, 7, 256]), st.randoms())
def test_each_result_is_made_in_exactly_one_slot(where: str, slots: int, groups: int, rng: random.Random) -> None:
    """All components of a combination that satisfies WHERE are together in exactly one slot."""
    sizes = {name: rng.choice([1.0, 1.0, 50.0]) for name in "abc"}
    split = split_of(f"SELECT a.*, b.*, c.* FROM a, b, c WHERE {where}", slots, groups, **sizes)
    rows = {name: rows_for(rng, 5) for name in "abc"}
    rows = {name: [(10 * n, *row[1:]) for n, row in enumerate(r)] for name, r in rows.items()}  # all rows differ
    found = shipments(split, rows)
    times = [[{row[0] for row in r} for r in built(found, i, name, slots)] for i, name in enumerate("abc")]
    at = batch_of(schema(COLUMNS), rows["a"]).column("ts").to_pylist()
    for combination in results(split.plan.query, list(rows.values())):
        together = [all(at[n] in times[i][slot] for i, n in enumerate(combination)) for slot in range(slots)]
        assert sum(together) == 1


@pytest.mark.parametrize("window", ["", "[ROWS 3]"])
@pytest.mark.parametrize("where", [*SHAPES, "a.k = o.x", "a.k = o.k AND o.x > 0"])
def test_a_row_is_shipped_once_to_a_slot_and_logged_once_in_all(where: str, window: str) -> None:
    """It is logged by a slot that gets it, whatever the cut and the order."""
    sources = f"a {window}, b, c" if "o." not in where else f"a {window}, a AS o, b"
    rng = random.Random(5)
    rows = {name: [(n, *row[1:]) for n, row in enumerate(rows_for(rng, 60))] for name in "abc" if name in sources}
    select = f"SELECT 1 AS o FROM {sources} WHERE {where}"
    logs: list[dict[tuple[str, Any], tuple[int, int]]] = []
    for cut in (60, 7):
        split, log = split_of(select, 8), dict[tuple[str, Any], tuple[int, int]]()
        for start in range(0, 60, cut):
            found = shipments(
                split, {name: r[start : start + cut][:: 1 if cut == 60 else -1] for name, r in rows.items()}
            )
            assert len({(s.stream, s.slot) for s in found}) == len(found)
            for s in found:
                assert s.log is not None and s.build is not None
                times = s.batch.column("ts").cast(pa.int64()).to_pylist()
                assert len(times) == len(set(times))
                if not (window and s.stream == "a"):  # no slot gets a row that none of its aliases builds
                    wanted = [np.ones(len(times), bool) if w is None else w for w in s.build.values()]
                    assert np.logical_or.reduce(wanted).all()
                for at, group, here in zip(times, s.log.groups.tolist(), s.log.here.tolist(), strict=True):
                    if here:
                        assert (s.stream, at) not in log
                        log[s.stream, at] = (s.slot, group)
            shipped = {(s.stream, t) for s in found for t in s.batch.column("ts").cast(pa.int64()).to_pylist()}
            assert shipped <= log.keys()
        logs.append(log)
    assert logs[0] == logs[1]
    if window:
        assert sum(name == "a" for name, _ in logs[0]) == 60


def test_logs_are_spread_where_rows_are_everywhere() -> None:
    split = split_of("SELECT a.k, b.k AS j, c.k AS i FROM a, b, c WHERE a.k = b.k", 8, a=100, b=100, c=1)
    found = shipments(split, {"c": [(n, n % 3, 0, 0.0, "", "") for n in range(400)]})
    assert [s.batch.num_rows for s in found] == [400] * 8
    assert all(s.log is not None and 20 < s.log.here.sum() < 90 for s in found)


def test_only_what_is_needed_is_shipped() -> None:
    split = split_of("SELECT a.k FROM a, b WHERE a.k = b.k AND a.x > 1", 3)
    found = shipments(split, {"a": [(1, 1, 2, 0.0, "", ""), (2, 1, 1, 0.0, "", ""), (3, None, 2, 0.0, "", "")]})
    assert [s.batch.to_pydict() for s in found] == [
        {"ts": [batch_of(schema("k"), [(1, 0)]).column(0)[0].as_py()], "k": [1], "x": [2]}
    ]


def test_with_one_slot_nothing_is_copied_hashed_or_filtered() -> None:
    split = split_of("SELECT a.k FROM a, b WHERE a.k = b.k AND a.x > 1", 1)
    batch = batch_of(schema(COLUMNS), [(1, 1, 0, 0.0, "", ""), (2, None, 2, 0.0, "", "")])
    (only,) = split.split("a", batch, None).shipments
    assert only.build is None and only.log is None and only.batch.num_rows == 2
    for name in ("ts", "k", "x"):
        assert only.batch.column(name).buffers()[1].address == batch.column(name).buffers()[1].address


def test_rows_of_a_rows_window_go_everywhere_in_the_same_order() -> None:
    split = split_of("SELECT a.k FROM a [ROWS 2], b WHERE a.k = b.k AND a.x > 1", 3)
    rows = rows_for(random.Random(1), 50)
    found = shipments(split, {"a": rows})
    assert [s.slot for s in found] == [0, 1, 2] and all(s.batch.num_rows == 50 for s in found)
    assert sum(len(r) for r in built(found, 0, "a", 3)) == sum(r[1] is not None and (r[2] or 0) > 1 for r in rows)


def test_equal_rows_have_one_owner() -> None:
    """Also if the values under a NULL, or the signs of a zero, differ."""
    split = split_of("SELECT a.k, a.y, a.s FROM a [ROWS 2], b WHERE a.x < b.x", 8, a=100)
    rows = [(1, 1, 1, y, s, str(n)) for n in range(40) for y in (0.0, -0.0) for s in ("p",)]
    assert sorted(map(len, built(shipments(split, {"a": rows}), 0, "a", 8))) == [0] * 7 + [80]


def test_the_map_of_groups_may_change() -> None:
    split = split_of("SELECT a.k FROM a, b WHERE a.k = b.k", 4)
    split.places = (np.full(256, 2),)
    assert {s.slot for s in shipments(split, {"a": rows_for(random.Random(1), 50)})} == {2}


def test_late_and_dead_rows_stay_behind() -> None:
    split = split_of("SELECT a.k FROM a, b WHERE a.k = b.k", 4)
    batch = batch_of(schema(COLUMNS), [(n, 1, 1, 0.0, "", "") for n in (None, 1, 5, 9, 7)])
    found = split.split("a", batch, 5)
    assert (found.used, found.late.num_rows, found.dead.num_rows, found.newest) == (3, 1, 1, 9)
    assert [s.batch.num_rows for s in found.shipments] == [3]


@pytest.mark.parametrize("slots", [2, 3, 8])
@pytest.mark.parametrize("window", ["", "[ROWS 3]"])
def test_errors_of_filters_and_keys_are_counted_once(slots: int, window: str) -> None:
    select = (
        f"SELECT a.k FROM a {window}, b, a AS o "
        "WHERE a.k // a.x > 0 AND CAST(a.w AS BIGINT) = b.k AND b.x // b.k > 0 AND o.k % o.x = b.x"
    )
    rows = {name: rows_for(random.Random(2), 80) for name in "ab"}
    alone, shared = split_of(select, 1), split_of(select, slots, a=1, b=100)
    shipments(shared, rows)
    slot = Slot(alone.plan.query, Settings())
    for shipment in shipments(alone, rows):
        slot.receive(shipment)
    slot.end(None)
    assert shared.errors.count == slot.errors.count > 20
