"""Panes can be written as record batches and read again; rows of several panes are the cells of all."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from eddyline.bound.evaluate import ErrorCount
from eddyline.engine.groups.group_by import Grouping
from eddyline.engine.groups.panes import Panes
from eddyline.engine.groups.panes_arrow import as_batches, as_rows, from_batches, from_rows
from tests.support.jobs import Job

S = "[RANGE 8 MICROSECONDS SLIDE 4 MICROSECONDS]"
QUERIES = [
    f"SELECT a.k, a.s, COUNT(*) AS n, COUNT(DISTINCT b.k) AS d, SUM(b.x) AS x FROM a {S}, b {S} WHERE a.k = b.k "
    "GROUP BY a.k, a.s",
    f"SELECT MIN(b.s) AS s, STDDEV_SAMP(b.x) AS x FROM a {S}, b {S} WHERE a.k = b.k",
    f"SELECT a.s FROM a {S}, b {S} WHERE a.k = b.k GROUP BY a.s",
]


def filled(select: str, seed: int) -> Grouping:
    rng, job = random.Random(seed), Job(select, a="k s:string", b="k x s:string")
    for _ in range(4):
        a = [(100 + rng.randrange(8), rng.randrange(3), rng.choice(["p", "q", None])) for _ in range(20)]
        job.feed(a=a, b=[(t, k, rng.randrange(9), s) for t, k, s in a])
    return job.engine.slot.results._grouping


def contents(panes: Panes) -> list[dict[str, object]]:
    return sorted(as_rows(panes).to_pylist(), key=repr)


@pytest.mark.parametrize("select", QUERIES)
def test_panes_come_back(select: str) -> None:
    for panes in filled(select, 1)._now.panes:
        again = from_batches(as_batches(panes))
        assert contents(again) == contents(panes) and len(panes)
        assert (again.groups, again.group.tolist()) == (panes.groups, panes.group.tolist())
        flat = from_rows(as_rows(panes))
        assert contents(flat) == contents(panes) and flat.groups <= panes.groups


@pytest.mark.parametrize("select", QUERIES)
def test_the_rows_of_several_groupings_are_merged(select: str) -> None:
    """The emitted rows do not depend on the pieces in which the cells came."""
    (next, rows), (_, others) = filled(select, 1).small_state(), filled(select, 2).small_state()
    assert len(rows) == 1
    job = Job(select, a="k s:string", b="k x s:string")

    def emitted(batches: list[pa.RecordBatch]) -> list[dict[str, object]]:
        grouping = Grouping(job.query, ErrorCount())
        grouping.restore_small_state(next, batches)
        assert grouping.small_state()[1][0].num_rows <= sum(batch.num_rows for batch in batches)
        return sorted((row for batch in grouping.emit(200) for row in batch.to_pylist()), key=repr)

    together = pa.Table.from_batches(rows + others).combine_chunks().to_batches()
    pieces = [rows[0].slice(0, 3), others[0], rows[0].slice(3), others[0].slice(0, 0)]
    assert emitted(rows + others) == emitted(together) == emitted(pieces)
    assert emitted(pieces) != emitted(rows) or select == QUERIES[2]
