"""Functions of numbers: the same bits in a batch of one row as in a large one, and DuckDB's; decimals that fit."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import eddyline as el
from eddyline.bound import types as t
from eddyline.bound.functions import call
from lab.fuzz.same_bits import Values, check, compare
from tests.conftest import at
from tests.support.grid import CONNECTION, Case, col, lit, ours

A, B = col(t.DOUBLE), col(t.DOUBLE, 1)
CASES = [
    *(Case(name, (A,), f"{name}(a)") for name in ("sqrt", "exp", "ln", "log10", "log2")),
    *(Case("pow", (A, lit(y)), f"pow(a, {y}::DOUBLE)") for y in (2, 3, -1, 0.5)),
    *(Case("pow", (lit(x), B), f"pow({x}::DOUBLE, b)") for x in (2, 10, 1.1)),
    Case("pow", (A, B), "pow(a, b)"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sql)
def test_any_double_in_batches_of_any_size(case: Case) -> None:
    rng = np.random.default_rng(5)
    a, b = np.exp(rng.normal(0, 5, 1500)), rng.normal(0, 9, 1500)
    a[:4] = [-np.inf, -0.0, np.inf, -2.5]
    rows = pa.table({"a": a, "b": b})
    whole = check(case.over, rows)
    CONNECTION.register("doubles", rows)
    theirs = CONNECTION.sql(f"SELECT {case.sql} AS r FROM doubles").to_arrow_table()["r"]
    compare("DuckDB", rows, whole, Values(theirs.combine_chunks(), 0))


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
@pytest.mark.parametrize(("power", "x"), [("0.5", 19.0), ("2", 47.22705731026579), ("-1", 74182.0)])
def test_a_power_is_one_key_whatever_the_batches(power: str, x: float, batch_rows: int) -> None:
    def stream(*values: float) -> el.Stream:
        return el.stream(pa.table({"ts": [at(i) for i in range(len(values))], "x": values}), time="ts")

    def rows(text: str) -> list[dict[str, object]]:
        streams = {"s": stream(x, x, x, 5.0), "t": stream(x)}
        given = {name: source for name, source in streams.items() if f"{name} AS" in text}
        return el.query(text, streams=given).start(settings={"batch_rows": batch_rows}).to_arrow().to_pylist()

    groups = rows(f"SELECT pow(a.x, {power}) AS p, COUNT(*) AS n FROM s AS a GROUP BY pow(a.x, {power})")
    assert sorted(row["n"] for row in groups) == [1, 3]
    assert len(rows(f"SELECT a.x FROM s AS a, t AS b WHERE pow(a.x, {power}) = pow(b.x, {power})")) == 3


def test_a_decimal_with_too_many_digits_is_null_and_counted() -> None:
    widest = pa.decimal128(38, 0)
    data = pa.table(
        {"a": pa.array([Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal("9" * 37 + "4"), None], widest)}
    )
    rounded, failed = ours(call("round", [col(widest), lit(-1)]), data)
    rounded.validate(full=True)
    assert (rounded.to_pylist(), failed) == ([None, None, Decimal("9" * 37 + "0"), None], 2)


def test_rounding_up_gives_a_decimal_another_digit() -> None:
    data = pa.table({"a": pa.array([Decimal(95), Decimal(-99), Decimal(94)], pa.decimal128(2, 0))})
    rounded, failed = ours(call("round", [col(pa.decimal128(2, 0)), lit(-1)]), data)
    assert (rounded.to_pylist(), failed, str(rounded.type)) == ([100, -100, 90], 0, "decimal128(3, 0)")


def test_what_lies_below_a_null_is_no_failure() -> None:
    """Arrow leaves any bytes below a NULL."""
    type = pa.decimal128(38, 0)
    nines = pa.array([Decimal("9" * 38)] * 2, type)
    hidden = pa.Array.from_buffers(type, 2, [pa.array([False, False]).buffers()[1], nines.buffers()[1]])
    for name in ("+", "*"):
        assert ours(call(name, [col(type), col(type)]), pa.table({"a": hidden}))[1] == 0
