"""AT TIME ZONE as DuckDB computes it, whose zone data are those of ICU."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import duckdb
import pyarrow as pa
import pytest

from eddyline.bound import types as t
from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Literal, SourceColumn
from eddyline.bound.functions import call
from eddyline.bound.types import TypeMismatch

ZONES = [
    "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo", "UTC",
    "Pacific/Apia", "Asia/Tehran", "Etc/GMT+5", "America/St_Johns", "europe/london",
]  # fmt: skip


def times(rng: random.Random) -> list[datetime]:
    """Moments of all years, and around changes of clocks."""
    spread = [datetime(1, 1, 1) + timedelta(seconds=rng.random() * 3.1e11) for _ in range(300)]
    spread += [datetime(1900, 1, 1) + timedelta(seconds=rng.random() * 6e9) for _ in range(600)]
    for day in (datetime(2026, 3, 29), datetime(2026, 10, 25), datetime(2026, 3, 8), datetime(2051, 11, 5)):
        spread += [day + timedelta(minutes=15 * n) for n in range(-20, 120)]
    return [*spread, datetime(1970, 1, 1), datetime(2439, 12, 31, 23), datetime(2440, 1, 1), datetime(1800, 1, 1)]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("type", [t.TIMESTAMP, t.TIMESTAMPTZ], ids=["clock", "moment"])
def test_as_duckdb(zone: str, type: pa.DataType) -> None:
    array = pa.array([None, *times(random.Random(7))], t.TIMESTAMP).cast(type)
    data = pa.table({"x": array})
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    theirs = connection.execute(f"SELECT epoch_us(timezone('{zone}', x)) FROM data").fetchall()
    column = SourceColumn(0, "x", type)
    expr = call("timezone", [Literal(zone, t.STRING), column])
    assert expr.type == (t.TIMESTAMP if type == t.TIMESTAMPTZ else t.TIMESTAMPTZ) and data.num_rows
    ours = evaluate(expr, {column: array}, len(array), ErrorCount()).cast(pa.int64()).to_pylist()
    wrong = [(x, a, b) for x, a, (b,) in zip(array.to_pylist(), ours, theirs, strict=True) if a != b]
    assert not wrong, (len(wrong), wrong[:3])


def test_no_such_zone_and_no_such_time() -> None:
    column = SourceColumn(0, "x", t.TIMESTAMP)
    with pytest.raises(TypeMismatch, match="there is no time zone 'Europe/Berln'; did you mean 'Europe/Berlin'"):
        call("timezone", [Literal("Europe/Berln", t.STRING), column])
    with pytest.raises(TypeMismatch, match="AT TIME ZONE does not take"):
        call("timezone", [Literal("UTC", t.STRING), SourceColumn(0, "x", t.INT64)])
    errors = ErrorCount()
    expr = call("timezone", [Literal("Asia/Tokyo", t.STRING), column])
    far = pa.array([t.EARLIEST, t.LATEST, 0], pa.int64()).view(t.TIMESTAMP)
    assert evaluate(expr, {column: far}, 3, errors).null_count == errors.count == 2
