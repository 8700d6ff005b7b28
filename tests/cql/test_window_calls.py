"""TUMBLE, HOP, CUMULATE and window(), however they are written, and which rows they count."""

import random

import duckdb
import pyarrow as pa
import pytest

import eddyline as el
from eddyline.bound.bind import bind
from eddyline.bound.model import BoundQuery
from eddyline.cql.script import parse

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64())])
SELECT = "SELECT k, window_start() AS a, window_end() AS b, COUNT(*) AS n"
TUMBLE = f"{SELECT} FROM s [TUMBLE 1 MINUTE] GROUP BY k"
HOP = f"{SELECT} FROM s [HOP 1 MINUTE, 10 MINUTES] GROUP BY k"
LATER = f"{SELECT} FROM s [HOP 1 MINUTE, 10 MINUTES OFFSET 15 SECONDS] GROUP BY k"
CUMULATE = f"{SELECT} FROM s [CUMULATE 1 MINUTE, 10 MINUTES] GROUP BY k"


def bound(select: str) -> BoundQuery:
    return bind(parse(select + "; CREATE STREAM s USING json TIMESTAMP BY ts"), lambda _: SCHEMA)


@pytest.mark.parametrize(
    ("rest", "means"),
    [
        ("FROM s [HOP 1 MINUTE, 1 MINUTE] GROUP BY k", TUMBLE),
        ("FROM s [TUMBLE INTERVAL '60' SECOND] GROUP BY window_start(), k, window_end()", TUMBLE),
        ("FROM TUMBLE(s, INTERVAL '1' MINUTE) GROUP BY k", TUMBLE),
        ("FROM tumble(s, TS, INTERVAL '1' MINUTE) GROUP BY window_end, k", TUMBLE),
        (
            "FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY k, window_start, window_end",
            TUMBLE,
        ),
        ("FROM s GROUP BY k, TUMBLE(ts, INTERVAL '1' MINUTE)", TUMBLE),
        ("FROM s GROUP BY TUMBLE(`s`.`ts`, INTERVAL '1' MINUTE), k", TUMBLE),
        ("FROM s [HOP 1 MINUTE, 10 MINUTES] GROUP BY k", HOP),
        ("FROM HOP(s, ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTE) GROUP BY k", HOP),
        ("FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '10 minutes')) GROUP BY k", HOP),
        ("FROM s GROUP BY k, HOP(ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTE)", HOP),
        ("FROM s GROUP BY window(ts, '1 minute'), k", TUMBLE),
        ("FROM s GROUP BY window(s.ts, '60 seconds', '1 minute', '-3 minutes'), k", TUMBLE),
        ("FROM s GROUP BY k, window(ts, '10 minutes', '1 minute')", HOP),
        ("FROM s GROUP BY k, window(ts, INTERVAL 10 MINUTES, INTERVAL 1 MINUTE, '15 seconds')", LATER),
        ("FROM HOP(s, ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTE, INTERVAL '15' SECOND) GROUP BY k", LATER),
        ("FROM s GROUP BY k, HOP(ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTE, INTERVAL '-45' SECOND)", LATER),
        ("FROM s [HOP 1 MINUTE, 10 MINUTES OFFSET -45 SECONDS] GROUP BY k", LATER),
        (
            "FROM TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '10' MINUTE)) GROUP BY k",
            CUMULATE,
        ),
        ("FROM CUMULATE(s, INTERVAL '1' MINUTE, INTERVAL '10' MINUTE, INTERVAL '1' HOUR) GROUP BY k", CUMULATE),
        ("FROM s GROUP BY CUMULATE(ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTE), k", CUMULATE),
    ],
)
def test_every_way_to_write_it(rest: str, means: str) -> None:
    assert bound(f"{SELECT} {rest}") == bound(means)
    bare = f"SELECT k, window_start AS a, window_end AS b, COUNT(*) AS n {rest}"
    assert bound(bare) == bound(means)
    of_spark = f"SELECT k, window.start AS a, window.end AS b, COUNT(*) AS n {rest}"
    assert bound(of_spark) == bound(means)


def test_a_borrowed_window_is_not_one_of_ours() -> None:
    assert bound(TUMBLE) != bound(TUMBLE.replace("TUMBLE 1 MINUTE", "RANGE 1 MINUTE SLIDE 1 MINUTE"))
    assert bound(CUMULATE) != bound(HOP)


def test_spark_names_the_column_of_window_start_start() -> None:
    select = "SELECT window.start, window.end, window_time(window), COUNT(*) FROM s GROUP BY window(ts, '1 minute')"
    assert bound(select).schema.names == ["start", "end", "window_time(window)", "COUNT(*)"]


def test_a_column_called_window_end_is_meant_first() -> None:
    schema = pa.schema([*SCHEMA, ("window_end", pa.int64())])
    script = parse(
        "SELECT window_end, COUNT(*) FROM s [TUMBLE 1 MINUTE] GROUP BY window_end;"
        "CREATE STREAM s USING json TIMESTAMP BY ts"
    )
    query = bind(script, lambda _: schema)
    assert query.outputs[0].expr.type == pa.int64() and query.group is not None and len(query.group.keys) == 1


def answers(query: str, times: list[int]) -> list[tuple[int, ...]]:
    """The result rows; times as microseconds."""
    table = pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": range(len(times))})
    found = el.query(query, {"s": el.stream(table, time="ts")}).start().to_arrow()
    return sorted(zip(*[column.cast(pa.int64()).to_pylist() for column in found.columns], strict=True))


def test_which_rows_are_in_a_tumbling_window() -> None:
    """window_start() <= ts < window_end(): a row at the end of a window is in the next one."""
    minute = 60_000_000
    query = """
        SELECT window_start, window_end, window_time, COUNT(*), SUM(k)
        FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, window_time
    """
    assert answers(query, [0, 1, minute - 1, minute, minute + 1, 3 * minute]) == [
        (0, minute, minute - 1, 3, 3),
        (minute, 2 * minute, 2 * minute - 1, 2, 7),
        (3 * minute, 4 * minute, 4 * minute - 1, 1, 5),
    ]


def test_windows_that_grow() -> None:
    """Each begins at a multiple of the length, and ends at a multiple of the step."""
    second = 1_000_000
    query = "SELECT window_start, window_end, COUNT(*) FROM s [CUMULATE 1 SECOND, 3 SECONDS OFFSET 1 SECOND]"
    assert answers(query, [-2 * second, -1, 4 * second - 1, 4 * second]) == [
        (start * second, end * second, rows)
        for start, end, rows in [(-2, -1, 1), (-2, 0, 2), (-2, 1, 2), (1, 4, 1), (4, 5, 1), (4, 6, 1), (4, 7, 1)]
    ]


@pytest.mark.parametrize(("width", "offset"), [(60_000_000, 0), (7_000_000, 2_500_000), (7, -3)])
def test_buckets_of_duckdb(width: int, offset: int) -> None:
    """TUMBLE counts as GROUP BY time_bucket does, with rows on the boundaries and a microsecond beside them."""
    rng = random.Random(width)
    times = [rng.randrange(-40, 40) * width + offset + rng.choice([-1, 0, 0, 1]) for _ in range(400)]
    query = f"""
        SELECT epoch_us(window_start()), epoch_us(window_end()), COUNT(*), SUM(k)
        FROM s [TUMBLE {width} MICROSECONDS OFFSET {offset} MICROSECONDS]
    """
    rows = pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": range(len(times))})
    with duckdb.connect() as db:
        db.register("rows", rows)
        start = f"time_bucket(to_microseconds({width}), ts, make_timestamp({offset}))"
        select = f"SELECT epoch_us({start}) AS s, s + {width}, COUNT(*), SUM(k)::BIGINT FROM rows GROUP BY ALL"
        expected = db.sql(select).fetchall()
    assert answers(query, times) == sorted(expected)
