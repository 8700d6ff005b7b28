"""The oracle on hand-made rows, each rule of SEMANTICS with the answer worked out by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eddyline.cql.script import parse
from eddyline.testing.case import Batch
from eddyline.testing.oracle import Oracle

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64()), ("x", pa.int64())])
DECLARED = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT, x BIGINT) USING memory TIMESTAMP BY ts;
CREATE STREAM t (ts TIMESTAMP, k BIGINT, x BIGINT) USING memory TIMESTAMP BY ts LATENESS 5 MICROSECONDS;
CREATE TABLE d (ts TIMESTAMP, k BIGINT, x BIGINT) USING memory;
"""


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle()


def rows(*given: tuple[int | None, int | None, int | None]) -> pa.RecordBatch:
    columns = list(zip(*given, strict=True)) if given else [[], [], []]
    arrays = [
        pa.array(columns[0], pa.int64()).cast(SCHEMA.types[0]),
        pa.array(columns[1], pa.int64()),
        pa.array(columns[2], pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def ask(
    oracle: Oracle, select: str, *batches: dict[str, pa.RecordBatch], table: pa.RecordBatch | None = None
) -> list[tuple]:
    cut = [Batch(tuple(batch.items())) for batch in batches]
    found = oracle.expected(parse(DECLARED + select), lambda _: SCHEMA, cut, {"d": table or rows()})
    return sorted(zip(*[c.to_pylist() for c in found.table.columns], strict=True))


def test_a_range_window_includes_both_ends(oracle: Oracle) -> None:
    given = {"s": rows((0, 1, 1), (10, 1, 2)), "t": rows((5, 1, 1), (15, 1, 2), (16, 1, 3))}
    query = "SELECT a.x, b.x FROM s [RANGE 5 MICROSECONDS] AS a, t [RANGE 5 MICROSECONDS] AS b WHERE a.k = b.k"
    assert ask(oracle, query, given) == [(1, 1), (2, 1), (2, 2)]


def test_windows_of_different_size_bound_each_their_own_stream(oracle: Oracle) -> None:
    given = {"s": rows((0, 1, 1), (10, 1, 2)), "t": rows((0, 1, 3), (10, 1, 4))}
    query = "SELECT a.x, b.x FROM s [RANGE 9 MICROSECONDS] AS a, t [RANGE 10 MICROSECONDS] AS b WHERE a.k = b.k"
    assert ask(oracle, query, given) == [(1, 3), (2, 3), (2, 4)]


def test_rows_counts_all_rows_before_where_and_breaks_ties_by_used_columns(oracle: Oracle) -> None:
    given = {"s": rows((0, 1, 9), (0, 1, 8), (0, 2, 1)), "t": rows((0, 1, 0), (3, 1, 1))}
    query = "SELECT a.x, b.x FROM s [ROWS 2] AS a, t AS b WHERE a.k = b.k"
    assert ask(oracle, query, given) == [(9, 0), (9, 1)]  # the order is (k 1, x 8), (1, 9), (2, 1)


def test_a_single_stream_with_rows_keeps_the_last_of_each_instant(oracle: Oracle) -> None:
    given = {"s": rows((0, None, 1), (0, None, 2), (1, None, 3))}
    assert ask(oracle, "SELECT x FROM s [ROWS 1]", given) == [(2,), (3,)]


def test_late_rows_depend_on_the_cut_and_dead_rows_have_no_time(oracle: Oracle) -> None:
    query = "SELECT x FROM s"
    assert ask(oracle, query, {"s": rows((10, 1, 1), (5, 1, 2), (None, 1, 3))}) == [(1,), (2,)]
    assert ask(oracle, query, {"s": rows((10, 1, 1))}, {"s": rows((5, 1, 2), (10, 1, 3))}) == [(1,), (3,)]
    assert ask(oracle, "SELECT x FROM t", {"t": rows((10, 1, 1))}, {"t": rows((5, 1, 2), (4, 1, 3))}) == [(1,), (2,)]


def test_a_slide_covers_the_half_open_window_up_to_the_first_boundary_after_the_newest_row(oracle: Oracle) -> None:
    query = "SELECT epoch_us(window_end()), COUNT(*), SUM(x) FROM s [RANGE 4 MICROSECONDS SLIDE 2 MICROSECONDS]"
    given = {"s": rows((-1, 1, 1), (2, 1, 10), (3, 1, 100))}
    assert ask(oracle, query, given) == [(0, 1, 1), (2, 2, 11), (4, 2, 110)]
    # -1 counts at 0 and 2, 2 counts at 2 and 4, 3 at 4 (and 6, which is beyond the end)


def test_unbounded_and_rows_with_a_slide(oracle: Oracle) -> None:
    given = {"s": rows((1, 1, 1), (3, 1, 2), (5, 1, 3))}
    query = "SELECT epoch_us(window_end()), SUM(x) FROM s [{} SLIDE 2 MICROSECONDS] HAVING COUNT(*) > 0"
    assert ask(oracle, query.format("UNBOUNDED"), given) == [(2, 1), (4, 3), (6, 6)]
    assert ask(oracle, query.format("ROWS 2"), given) == [(2, 1), (4, 3), (6, 5)]


def test_no_combination_no_group(oracle: Oracle) -> None:
    assert ask(oracle, "SELECT COUNT(*) FROM s WHERE x > 5", {"s": rows((1, 1, 1))}) == []
    assert ask(oracle, "SELECT COUNT(*) FROM s", {"s": rows((1, 1, 1))}) == [(1,)]


def test_failures_are_null_where_they_happen(oracle: Oracle) -> None:
    query = "SELECT x / 0, COALESCE(x / (k - 1), 7), x % (k - 1), CAST('a' AS INTEGER) FROM s"
    assert ask(oracle, query, {"s": rows((1, 1, 1))}) == [(None, 7, None, None)]
    assert ask(oracle, "SELECT SUM(x) / (COUNT(*) - 1) FROM s", {"s": rows((1, 1, 1))}) == [(None,)]


def test_names_stars_ordinals_and_aliases(oracle: Oracle) -> None:
    given = {"s": rows((1, 1, 5), (1, 2, 5))}
    assert len(ask(oracle, "SELECT * FROM s", given)[0]) == 3
    assert ask(oracle, "SELECT X + 1 AS y, COUNT(*) FROM s AS A GROUP BY a.x + 1", given) == [(6, 2)]


def test_abs_of_a_difference_of_times(oracle: Oracle) -> None:
    given = {"s": rows((0, 1, 1)), "t": rows((5, 1, 1), (6, 1, 2))}
    query = "SELECT b.x FROM s AS a, t AS b WHERE ABS(a.ts - b.ts) <= INTERVAL 5 MICROSECONDS"
    assert ask(oracle, query, given) == [(1,)]


def test_a_self_join_and_a_table(oracle: Oracle) -> None:
    given = {"s": rows((1, 1, 1), (2, 1, 2))}
    query = "SELECT a.x, b.x, d.x FROM s [RANGE 0 SECONDS] AS a, s [RANGE 0 SECONDS] AS b, d WHERE d.k = a.k"
    assert ask(oracle, query, given, table=rows((None, 1, 7))) == [(1, 1, 7), (2, 2, 7)]


def test_bytes_cast_to_text_are_decoded(oracle: Oracle) -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("v", pa.binary())])
    given = pa.record_batch([pa.array([1, 2], pa.timestamp("us")), pa.array(["é\\".encode(), b"\xff"])], schema=schema)
    script = parse(
        "CREATE STREAM s USING memory TIMESTAMP BY ts;"
        "SELECT CAST(s.v AS VARCHAR), length(v::TEXT), (v)::VARCHAR || '!' FROM s"
    )
    found = oracle.expected(script, lambda _: schema, [Batch((("s", given),))])
    assert [c.to_pylist() for c in found.table.columns] == [["é\\", None], [2, None], ["é\\!", None]]
