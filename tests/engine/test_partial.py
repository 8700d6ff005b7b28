"""Combined aggregates of several slots equal those of one slot."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.expr import SourceColumn
from eddyline.bound.model import BoundQuery
from eddyline.engine.groups.group_by import Grouping
from eddyline.engine.groups.partial import combine
from tests.support.jobs import Row, bound, tuples

AGGREGATES = (
    "COUNT(*) AS n, COUNT(x) AS c, COUNT(DISTINCT s) AS d, SUM(x) AS t, MIN(y) AS l, MAX(s) AS m, AVG(x) AS a, "
    "VAR_SAMP(y) AS v, STDDEV_SAMP(y) AS w"
)


def query_of(select: str) -> BoundQuery:
    return bound(select, a="k:words x y:float s:string")


def fed(grouping: Grouping, query: BoundQuery, rows: list[Row]) -> None:
    """Add rows (first, last, k, x, y, s)."""
    columns = [SourceColumn(0, n, query.sources[0].stream.schema.field(n).type) for n in ("k", "x", "y", "s")]
    env = {c: pa.array([r[i + 2] for r in rows], c.type) for i, c in enumerate(columns)}
    grouping.add(env, len(rows), *(np.array([r[i] for r in rows], np.int64) for i in (0, 1)))  # type: ignore[arg-type]


def near(rows: list[Row]) -> list[Row]:
    return [tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in rows]


def made(rng: random.Random, at: int) -> Row:
    values: list[Any] = [["p", "q", "", None], [1, -5, 2**62, None], [0.5, -0.0, 2.25, None], ["u", "\u00fc", "", None]]
    return (at + rng.randrange(4), at + rng.randrange(8), *(rng.choice(v) for v in values))


@pytest.mark.parametrize("slots", [1, 2, 5])
@pytest.mark.parametrize("tail", ["GROUP BY k", "", "GROUP BY k, s HAVING COUNT(*) > 2"])
def test_combined_as_if_it_were_one(tail: str, slots: int) -> None:
    by = "k, " if tail else ""
    query = query_of(
        f"SELECT {by}window_end() AS e, {AGGREGATES} FROM a [RANGE 8 MICROSECONDS SLIDE 1 MICROSECONDS] {tail}"
    )
    rng, errors = random.Random(slots), ErrorCount()
    parts, whole = [Grouping(query, errors, partial=True) for _ in range(slots)], Grouping(query, errors)
    results = 0
    for at in range(0, 40, 4):
        rows = [made(rng, at) for _ in range(rng.choice([0, 1, 30]))]
        share = [rng.randrange(slots) for _ in rows]
        fed(whole, query, rows)
        for n, part in enumerate(parts):
            fed(part, query, [r for r, s in zip(rows, share, strict=True) if s == n])
        found = combine(query, [batch for part in parts for batch in part.emit(at)], errors)
        wanted = whole.emit(at)
        assert near(tuples(found)) == near(tuples(wanted))
        assert [t for b in found for t in b.column("e").to_pylist()] == sorted(
            t for b in found for t in b.column("e").to_pylist()
        )
        assert all(b.schema == query.schema for b in found)
        results += sum(b.num_rows for b in wanted)
    assert results > 5


def test_nothing_gives_nothing() -> None:
    query = query_of("SELECT COUNT(*) AS n FROM a")
    assert combine(query, [], ErrorCount()) == []
    assert Grouping(query, ErrorCount(), partial=True).emit(0) == []


def test_errors_are_those_of_the_whole() -> None:
    """A sum that each of two slots can hold, but not both together, is counted as an error where they are combined."""
    query = query_of("SELECT SUM(CAST(x AS DECIMAL(38, 0)) * 10000000000000000000) AS t, COUNT(*) // 0 AS z FROM a")
    parts, errors, theirs = [], ErrorCount(), ErrorCount()
    for _ in range(2):
        part = Grouping(query, theirs, partial=True)
        fed(part, query, [(0, 0, "p", 2**62, 0.0, "")])
        parts += part.emit(0)
    assert tuples(combine(query, parts, errors)) == [(2**63 * 10**19, None)] and (errors.count, theirs.count) == (1, 0)
    errors.count = 0
    assert tuples(combine(query, parts * 2, errors)) == [(None, None)] and errors.count == 2
