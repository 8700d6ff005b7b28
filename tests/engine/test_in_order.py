"""Rows wait for the watermark and leave sorted; rows of the same time leave together."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from eddyline.engine.in_order import InOrder
from eddyline.engine.intake import as_it_travels
from tests.support.jobs import TIME, batch_of, bound, schema

COLUMNS = "k s:string f:float"


def waiting() -> InOrder:
    return InOrder(bound("SELECT a.k, a.s, a.f FROM a [ROWS 3]", a=COLUMNS), 0)


def rows_of(batch: pa.RecordBatch | None) -> list[tuple]:
    rows = [] if batch is None else [tuple(r.values()) for r in batch.to_pylist()]
    return [(int(pa.scalar(r[0], TIME).value), *r[1:]) for r in rows]


def add(order: InOrder, *rows: tuple) -> None:
    order.add(batch_of(schema(COLUMNS), list(rows)))


def test_rows_at_the_watermark_wait() -> None:
    order = waiting()
    add(order, (3, 1, "", 0.0), (5, 2, "", 0.0), (4, 3, "", 0.0))
    assert rows_of(order.release(3)) == []
    assert [r[0] for r in rows_of(order.release(5))] == [3, 4]
    assert order.rows == 1
    assert [r[0] for r in rows_of(order.release(2**62))] == [5]
    assert order.rows == 0 and order.nbytes == 0


def test_ties_are_broken_by_the_values_used() -> None:
    """NULL is last, NaN before it; -0.0 and 0.0 are the same value, so the next column decides."""
    order = waiting()
    nan = float("nan")
    add(order, (1, None, "a", 0.0), (1, 2, None, 0.0), (1, 2, "b", nan), (1, 2, "b", None), (1, 2, "a", 1.0))
    add(order, (1, 1, "z", 0.0), (1, 2, "b", float("inf")), (0, 9, "z", 0.0))
    found = [repr(r) for r in rows_of(order.release(9))]
    assert found == [
        repr(r)
        for r in [
            (0, 9, "z", 0.0),
            (1, 1, "z", 0.0),
            (1, 2, "a", 1.0),
            (1, 2, "b", float("inf")),
            (1, 2, "b", nan),
            (1, 2, "b", None),
            (1, 2, None, 0.0),
            (1, None, "a", 0.0),
        ]
    ]


def test_the_two_zeros_are_one_value() -> None:
    order = InOrder(bound("SELECT a.f, a.s FROM a [ROWS 3]", a="f:float s:string"), 0)
    order.add(batch_of(schema("f:float s:string"), [(1, 0.0, "a"), (1, -0.0, "b"), (1, 0.0, "c"), (1, -0.0, "a")]))
    assert [r[2] for r in rows_of(order.release(9))] == ["a", "a", "b", "c"]


def test_whatever_the_cut_the_order_is_the_same() -> None:
    rng = random.Random(2)
    rows = [(rng.randrange(6), rng.choice([None, 1, 2]), rng.choice(["a", "b", None]), 0.5) for _ in range(60)]
    whole = waiting()
    add(whole, *rows)
    wanted = rows_of(whole.release(100))
    for _ in range(20):
        order, found, left = waiting(), [], sorted(rows, key=lambda r: r[0] + rng.random() * 3)
        while left:
            n = rng.randrange(1, 20)
            add(order, *left[:n])
            left = left[n:]
            found += rows_of(order.release(min((r[0] for r in left), default=100)))
        assert found == wanted


def test_wind_back() -> None:
    order = waiting()
    add(order, (1, 1, "", 0.0), (5, 1, "", 0.0))
    order.commit()
    add(order, (2, 2, "", 0.0))
    assert len(rows_of(order.release(4))) == 2
    order.wind_back()
    assert order.rows == 2
    add(order, (3, 3, "", 0.0))
    assert [r[0] for r in rows_of(order.release(4))] == [1, 3]
    order.commit()
    assert [r[0] for r in rows_of(order.release(9))] == [5]


def test_what_waits_in_pieces_of_a_large_batch_is_not_counted_whole() -> None:
    order = waiting()
    big = batch_of(schema(COLUMNS), [(i, i, "x" * 100, 0.0) for i in range(1000)])
    order.add(big.slice(990))
    assert order.rows == 10
    assert order.nbytes < big.nbytes / 20


@pytest.mark.parametrize(
    "type_",
    [
        pa.decimal128(38, 2),
        pa.decimal256(50, 2),
        pa.dictionary(pa.int8(), pa.string()),
        pa.bool_(),
        pa.binary(),
        pa.binary(3),
        pa.large_string(),
        pa.date32(),
        pa.duration("s"),
        pa.null(),
        pa.list_(pa.int64()),
        pa.struct([("a", pa.string())]),
        pa.float16(),
        pa.month_day_nano_interval(),
        pa.string_view(),
        pa.uuid(),
    ],
    ids=str,
)
def test_rows_of_every_type_can_wait(type_: pa.DataType) -> None:
    columns = pa.schema([("ts", TIME), ("v", type_)])
    order = InOrder(bound("SELECT a.v FROM a [ROWS 3]", a=columns), 0)
    order.add(as_it_travels(pa.record_batch([pa.array([2, 1, 1], TIME), pa.nulls(3, type_)], schema=columns)))
    released = order.release(9)
    assert released is not None and released.num_rows == 3


def test_dictionaries_of_different_batches() -> None:
    words = pa.dictionary(pa.int8(), pa.string())
    columns = pa.schema([("ts", TIME), ("w", words)])
    order = InOrder(bound("SELECT a.w FROM a [ROWS 3]", a=columns), 0)
    for i in range(2):
        texts = pa.array([f"{i} {j}" for j in range(100)]).dictionary_encode().cast(words)
        order.add(as_it_travels(pa.record_batch([pa.array(range(100), TIME), texts], schema=columns)))
    released = order.release(200)
    assert released is not None and released.num_rows == 200
