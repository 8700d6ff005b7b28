"""Timestamps at DuckDB's first and last moment: a result that no timestamp has is NULL and counted."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from eddyline.bound import types as t
from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Literal, SourceColumn
from eddyline.bound.functions import call, cast
from tests.support.grid import Case, col, differences, lit, ours

DAY = 86_400_000_000
NEAR = (0, 1, 499, 500, 1000, 40 * DAY)
ENDS = [None, 0, *(t.EARLIEST + n for n in NEAR), *(t.LATEST - n for n in NEAR)]
A, B = col(t.TIMESTAMP), col(t.TIMESTAMP, 1)
ONE = pa.table({"a": pa.array(ENDS, t.TIMESTAMP)})
TWO = pa.table(
    {"a": pa.array([x for x in ENDS for _ in ENDS], t.TIMESTAMP), "b": pa.array(ENDS * len(ENDS), t.TIMESTAMP)}
)
UNITS = ["microsecond", "millisecond", "second", "minute", "hour", "day", "month", "quarter", "year"]


def one() -> Iterator[Case]:
    for unit in (*UNITS, "week"):
        yield Case("date_trunc", (A,), f"date_trunc('{unit}', a)", unit)
    for sign in "+-":
        for by in (1, -1, 1000, 45 * DAY, -45 * DAY):
            yield Case(sign, (A, Literal(by, t.INTERVAL)), f"a {sign} INTERVAL '{by} microseconds'")
        for months, days, micros in ((1, 0, 0), (-1, 0, 0), (2, -40, 5), (-2, 40, -5), (120_000, 0, 0)):
            interval = lit(pa.scalar((months, days, micros * 1000), t.MONTHS).as_py(), t.MONTHS)
            written = f"INTERVAL '{months} months {days} days {micros} microseconds'"
            yield Case(sign, (A, interval), f"a {sign} {written}")
    for name in ("epoch", "epoch_us", "epoch_ms", "last_day", "dayname", "monthname", "year", "week", "isoyear"):
        yield Case(name, (A,), f"{name}(a)")
    for seconds in (1, 420, 700, 86_400, 604_800):
        width = Literal(seconds * 1_000_000, t.INTERVAL)
        yield Case("time_bucket", (width, A), f"time_bucket(INTERVAL '{seconds} seconds', a)")
    for target in ("VARCHAR", "DATE", "TIME"):
        yield Case("cast", (A,), f"a::{target}", target)


def two() -> Iterator[Case]:
    yield Case("-", (A, B), "a - b")
    for unit in UNITS:
        if unit == "quarter":
            continue  # DuckDB's quarters before the year 0 are not its quarters after
        yield Case("date_diff", (A, B), f"date_diff('{unit}', a, b)", unit)


@pytest.mark.parametrize("case", list(one()), ids=lambda c: c.sql)
def test_of_one_moment(case: Case) -> None:
    assert not differences(case.expr(), case.sql, ONE)


@pytest.mark.parametrize("case", list(two()), ids=lambda c: c.sql)
def test_of_two_moments(case: Case) -> None:
    assert not differences(case.expr(), case.sql, TWO)


def test_from_dates() -> None:
    last = t.LATEST // DAY
    days = pa.table({"a": pa.array([last, last + 1, -last, -last - 1, 2**31 - 2], pa.int32()).cast(t.DATE)})
    day = col(t.DATE)
    for case in (
        Case("+", (day, Literal(14_454_000_000, t.INTERVAL)), "a + INTERVAL '14454 seconds'"),
        Case("+", (day, Literal(DAY, t.INTERVAL)), "a + INTERVAL '24 hours'"),
        Case("-", (day, Literal(1, t.INTERVAL)), "a - INTERVAL '1 microsecond'"),
        Case("cast", (day,), "a::TIMESTAMP", "TIMESTAMP"),
    ):
        assert not differences(case.expr(), case.sql, days)
        assert ours(case.expr(), days)[1] > 0


def test_from_strings() -> None:
    texts = [
        *("290309-12-21 (BC) 23:59:59", "290309-12-22 (BC) 00:00:00", "290309-12-21 (BC)"),
        *("294247-01-10 04:00:54.775807", "294247-01-10 04:00:54.775806", "294247-01-11"),
    ]
    assert not differences(cast(col(t.STRING), t.TIMESTAMP), "a::TIMESTAMP", pa.table({"a": texts}))


def test_make_timestamp() -> None:
    """DuckDB lets some through below its first moment that it cannot print."""
    given = [2**63 - 1, t.LATEST, 0, None, t.EARLIEST, t.EARLIEST - 1, -(2**63)]
    numbers = pa.table({"a": pa.array(given, t.INT64)})
    result, failed = ours(call("make_timestamp", [col(t.INT64)]), numbers)
    assert result.view(t.INT64).to_pylist() == [None, t.LATEST, 0, None, t.EARLIEST, None, None] and failed == 3


def test_coarse_columns() -> None:
    """What microseconds cannot hold is NULL."""
    seconds = SourceColumn(0, "a", pa.timestamp("s"))
    given = [t.EARLIEST // 10**6 - 1, t.EARLIEST // 10**6, t.LATEST // 10**6, t.LATEST // 10**6 + 1]
    result = evaluate(call("epoch_us", [seconds]), {seconds: pa.array(given, seconds.type)}, 4, ErrorCount())
    assert result.to_pylist() == [None, t.EARLIEST, t.LATEST // 10**6 * 10**6, None]
