"""Queries of three and more sources, their batches, and slots that run them by changing plans."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from eddyline.bound.model import BoundQuery
from eddyline.bound.udf import udf
from eddyline.engine.slot import Slot
from eddyline.plan.tree import Tree
from eddyline.protocol.attach import close, open_slot
from eddyline.settings import Settings
from lab.fuzz.eager import eager
from lab.fuzz.trees import random_tree
from tests.support.jobs import Row, batch_of, bound, schema
from tests.support.regions import check_regions
from tests.support.slot_steps import Step, reopened, run, run_again, steps_of, with_tables


def register() -> None:
    @udf(returns=pa.bool_(), name="set_plan_even")
    def even(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (x + y) % 2 == 0

    @udf(returns=pa.bool_(), name="set_plan_most")
    def most(x: np.ndarray) -> np.ndarray:
        return x != 1

    @udf(returns=pa.bool_(), name="set_plan_fails")
    def fails(x: np.ndarray) -> np.ndarray:
        raise ValueError("no")


register()

W, S = "[RANGE 9 MICROSECONDS]", "[RANGE 8 MICROSECONDS SLIDE 4 MICROSECONDS]"
OUT = "a.x, b.x AS y, c.x AS z"
EDGES = "a.k = b.k AND b.s = c.s"
QUERIES = {
    "chain": f"SELECT {OUT} FROM a {W}, b {W}, c {W} WHERE {EDGES}",
    "several keys": f"SELECT {OUT} FROM a {W}, b {W}, c {W} WHERE b.k = a.k AND b.s = a.s AND b.x = c.x AND b.y = c.y",
    "cycle": f"SELECT {OUT} FROM a {W}, b {W}, c [RANGE 5 MICROSECONDS] WHERE {EDGES} AND c.k = a.k",
    "ranges": f"SELECT {OUT} FROM a {W}, b {W}, c {W} WHERE a.x < b.x AND c.y BETWEEN b.y - 1 AND b.y + 1",
    "table": f"SELECT {OUT}, t.x AS w FROM a {W}, b {W}, c {W}, t WHERE {EDGES} AND t.k = a.k",
    "tables": f"SELECT a.x, t.x AS y, u.x AS z, v.x AS w FROM a {W}, t, t AS u, t AS v WHERE a.k = t.k AND t.k = u.k "
    "AND u.k = v.k",
    "rows": f"SELECT {OUT} FROM a [ROWS 6], b {W}, c {W} WHERE {EDGES}",
    "slide": f"SELECT a.s, COUNT(*) AS n, SUM(c.x) AS sum, window_end() AS e FROM a {S}, b {S}, c {S} WHERE {EDGES} "
    "GROUP BY a.s",
    "slide of rows": f"SELECT b.k, COUNT(*) AS n, MAX(c.x) AS m, window_end() AS e FROM a [ROWS 5], b {S}, c {S} "
    f"WHERE {EDGES} GROUP BY b.k",
    "selections": f"SELECT {OUT} FROM a {W}, b {W}, c {W} WHERE {EDGES} AND set_plan_even(a.x, b.y) "
    "AND set_plan_even(b.x, c.y)",
    "selection of one": f"SELECT {OUT} FROM a {W}, b {W}, c {W} WHERE {EDGES} AND set_plan_most(b.x) "
    "AND set_plan_even(a.x, c.y)",
    "four selections": f"SELECT {OUT}, d.x AS w FROM a {W}, b {W}, c {W}, d {W} WHERE {EDGES} AND c.y = d.y "
    "AND set_plan_most(a.x) AND set_plan_even(a.x, b.y) AND set_plan_even(a.x, c.x) AND set_plan_most(d.x)",
    "four": f"SELECT {OUT}, d.x AS w FROM a {W}, b {W}, c {W}, d {W} WHERE {EDGES} AND c.y = d.y",
    "self": f"SELECT p.x, q.x AS y, a.x AS z FROM a {W}, b {W} AS p, b {W} AS q WHERE a.k = p.k AND p.s = q.s",
}
GROUPED = {
    "grouped": "SELECT b.s, COUNT(*) AS n, SUM(a.x) AS s1, SUM(c.k) AS s2, COUNT(c.k) AS n2, AVG(b.y) AS m, "
    "MIN(a.s) AS low, MAX(c.y) AS high, COUNT(DISTINCT b.x) AS d, ROUND(STDDEV_SAMP(c.x), 6) AS v, "
    f"SUM(a.y * c.x) AS both, window_end() AS e FROM a {S}, b {S}, c {S} WHERE {EDGES} GROUP BY b.s",
    "grouped and selected": "SELECT a.x + d.y AS g, COUNT(*) AS n, SUM(b.x) AS s1, SUM(d.x) AS s2, MAX(c.s) AS high, "
    f"window_end() AS e FROM a {S}, b {S}, c {S}, d {S} WHERE {EDGES} AND c.y = d.y AND set_plan_even(a.x, b.y) "
    "AND set_plan_most(c.x) GROUP BY a.x + d.y",
    "two grouped": "SELECT b.x AS g, COUNT(*) AS n, SUM(a.x) AS s1, SUM(b.y) AS s2, MAX(a.y) AS high, "
    f"window_end() AS e FROM a {S}, b {S} WHERE a.k = b.k AND set_plan_most(a.x) GROUP BY b.x",
    "grouped in time": f"SELECT COUNT(*) AS n, SUM(a.x) AS s1, SUM(c.x) AS s2, window_end() AS e FROM a {S}, b {S}, "
    f"c [RANGE 12 MICROSECONDS SLIDE 4 MICROSECONDS] WHERE {EDGES} AND a.y < c.y + 2 "
    "AND b.ts - c.ts BETWEEN INTERVAL '-3' MICROSECONDS AND INTERVAL '4' MICROSECONDS",
    "grouped with a table": f"SELECT t.x AS g, COUNT(*) AS n, SUM(a.x) AS s1, COUNT(b.k) AS n2, window_end() AS e "
    f"FROM a {S}, b [UNBOUNDED SLIDE 4 MICROSECONDS], t WHERE a.s = b.s AND t.k = a.k GROUP BY t.x",
}
"""Those in which operators can group, in many ways."""
_TEXTS = QUERIES | GROUPED
COLUMNS, TABLE = schema("k x y s:string"), schema("k x", timed=False)
TABLE_ROWS = [(0, 1), (1, 5), (1, 7), (2, None)]
LATENESS = 6


def streams(name: str) -> list[str]:
    return [n for n in "abcd" if f" {n} [" in _TEXTS[name]]


def columns(name: str) -> dict[str, pa.Schema]:
    return dict.fromkeys(streams(name), COLUMNS) | ({"t": TABLE} if ", t " in _TEXTS[name] else {})


@cache
def query(name: str) -> BoundQuery:
    return bound(_TEXTS[name], dict.fromkeys(streams(name), LATENESS), ["t"], **columns(name))


def some_rows(rng: random.Random, start: int) -> list[Row]:
    return [
        (start + rng.randrange(8), rng.choice([0, 1, 2, None]), rng.randrange(5), rng.randrange(4), rng.choice("aab"))
        for _ in range(rng.randrange(2, 9))
    ]


@cache
def planned(name: str) -> tuple[list[Step], list[Row]]:
    """The batches of a run, and all rows that it must give."""
    rng, tables = random.Random(name), {"t": TABLE_ROWS} if "t" in columns(name) else {}
    some = partial(some_rows, rng)
    return steps_of(_TEXTS[name], columns(name), LATENESS, tables, range(0, 48, 6), some)


def ready(name: str, slot: Slot) -> Slot:
    """With its tables, if it is new."""
    return with_tables(slot, {"t": batch_of(TABLE, TABLE_ROWS)} if "t" in columns(name) else {})


def options(**others: object) -> Settings:
    return replace(Settings(check=True, optimizer="off"), **others)


def other_plan(rng: random.Random, slot: Slot) -> None:
    slot.set_plan(random_tree(rng, len(slot.query.sources), slot.executor.plan.edges))


def change_from_process_to_process(name: str, old: Tree, new: Tree, parallel: bool, folder: Path) -> None:
    """Saved after every batch, before it is committed; the next one goes on where it was, or winds back."""
    steps, expected = planned(name)
    aliases = [s.alias for s in query(name).sources]
    rng, found, under_way = random.Random(old.text(aliases) + new.text(aliases)), list[Row](), 0
    tuning = eager(2)
    slot = open_slot(query(name), options(pause_ms=0.0), str(folder), tuning=tuning)
    slot.set_plan(old)
    for number, step in enumerate(steps):
        if number == 2:
            slot.executor.migrate(new, parallel)
        elif slot.executor.migration is not None:
            slot.replan()
        once, course = run(slot, step), slot.executor.course
        under_way += slot.executor.migration is not None
        slot = reopened(slot, folder)
        assert slot.version == number and slot.executor.course == course, "the state was lost"
        check_regions(slot, slot.arena)
        if rng.random() < 0.3:
            run_again(slot, step, once)
        found += once
        slot.commit(number + 1)
    assert under_way and slot.executor.plan.tree == new
    close(slot)
    assert sorted(found, key=repr) == expected
