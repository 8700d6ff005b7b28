"""TUMBLE and HOP, however they are written, are a RANGE with a SLIDE."""

import pyarrow as pa
import pytest

import eddyline as el
from eddyline.bound.bind import bind
from eddyline.bound.model import BoundQuery
from eddyline.cql.script import parse

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64())])
SELECT = "SELECT k, window_start() AS a, window_end() AS b, COUNT(*) AS n"
TUMBLE = f"{SELECT} FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k"
HOP = f"{SELECT} FROM s [RANGE 10 MINUTES SLIDE 1 MINUTE] GROUP BY k"


def bound(select: str) -> BoundQuery:
    return bind(parse(select + "; CREATE STREAM s USING json TIMESTAMP BY ts"), lambda _: SCHEMA)


@pytest.mark.parametrize(
    ("rest", "means"),
    [
        ("FROM s [TUMBLE 1 MINUTE] GROUP BY k", TUMBLE),
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
    ],
)
def test_every_way_to_write_it(rest: str, means: str) -> None:
    assert bound(f"{SELECT} {rest}") == bound(means)
    bare = f"SELECT k, window_start AS a, window_end AS b, COUNT(*) AS n {rest}"
    assert bound(bare) == bound(means)


def test_a_column_called_window_end_is_meant_first() -> None:
    schema = pa.schema([*SCHEMA, ("window_end", pa.int64())])
    script = parse(
        "SELECT window_end, COUNT(*) FROM s [TUMBLE 1 MINUTE] GROUP BY window_end;"
        "CREATE STREAM s USING json TIMESTAMP BY ts"
    )
    query = bind(script, lambda _: schema)
    assert query.outputs[0].expr.type == pa.int64() and query.group is not None and len(query.group.keys) == 1


def test_which_rows_are_in_a_tumbling_window() -> None:
    """window_start() < ts <= window_end(): a row at the end of a window is in it."""
    minute = 60_000_000
    times = [1, minute - 1, minute, minute + 1, 2 * minute, 3 * minute]
    table = pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": range(6)})
    rows: list[tuple[int, int, int]] = []

    def keep(batch: pa.RecordBatch) -> None:
        whole = [column.cast(pa.int64()).to_pylist() for column in batch.columns]
        rows.extend(zip(*whole, strict=True))

    query = """
        SELECT window_start, window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
        GROUP BY window_start, window_end
    """
    el.query(query, {"s": el.stream(table, time="ts")}).start(sink=keep).wait()
    assert sorted(rows) == [(0, minute, 3), (minute, 2 * minute, 2), (2 * minute, 3 * minute, 1)]
