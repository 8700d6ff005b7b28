"""Parcels: unpacking returns what was packed, also from bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.counts import Counts, StreamCounts
from eddyline.engine.split import Logged, Shipment
from eddyline.engine.tally import FilePlace, Span
from eddyline.protocol.outlet import Outlet
from eddyline.protocol.parcel import (
    CellsHead,
    CountsHead,
    Parcel,
    RecordHead,
    RejectedHead,
    RowsHead,
    as_shipment,
    of_shipment,
    packed,
    unpacked,
)
from eddyline.protocol.record import Record
from tests.support.properties import examples

ROWS = pa.record_batch({"k": pa.array([1, 2, 3]), "s": pa.array(["a", None, "c"]).dictionary_encode()})

COUNTS = Counts({"s": StreamCounts(used=3, reason="no")}, 1)


@pytest.mark.parametrize(
    "parcel",
    [
        Parcel(CountsHead({"s": -5}, COUNTS, {"s": (Span(FilePlace((b"\xff",), 1), 2, 3),)})),
        Parcel(CountsHead({})),
        Parcel(RejectedHead(Outlet("late", "s")), ROWS),
        Parcel(RowsHead("s", None), ROWS.slice(1)),
        Parcel(RowsHead("s", {3: True, 0: False}), ROWS.slice(0, 0)),
        Parcel(CellsHead(), ROWS),
        Parcel(RecordHead(Record(7, COUNTS))),
    ],
)
def test_a_parcel_as_bytes(parcel: Parcel) -> None:
    for data in (packed(parcel), pa.py_buffer(packed(parcel))):
        again = unpacked(data)
        assert again.head == parcel.head
        assert again.batch.to_pylist() == parcel.batch.to_pylist() and again.batch.schema == parcel.batch.schema


def test_metadata_of_a_schema_does_not_come_along() -> None:
    with_metadata = ROWS.replace_schema_metadata({b"pandas": b"whatever"})
    again = unpacked(packed(Parcel(RejectedHead(Outlet("late", "s")), with_metadata)))
    assert again.batch.schema.metadata is None and again.batch.to_pylist() == ROWS.to_pylist()


def there_and_back(shipment: Shipment) -> tuple[Shipment, pa.RecordBatch]:
    parcel = unpacked(packed(of_shipment(shipment)))
    assert isinstance(parcel.head, RowsHead)
    return as_shipment(parcel.head, parcel.batch, shipment.slot)


def test_one_slot_builds_and_logs_everything() -> None:
    shipment, log = there_and_back(Shipment("s", 0, ROWS, None))
    assert shipment.build is None and shipment.batch.equals(log) and log.to_pylist() == ROWS.to_pylist()


@examples(60)
@given(
    st.integers(0, 6).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.dictionaries(st.integers(0, 9), st.none() | st.lists(st.booleans(), min_size=n, max_size=n), max_size=3),
            st.none() | st.lists(st.booleans(), min_size=n, max_size=n),
        )
    )
)
def test_rows_that_are_built_and_rows_that_are_logged(
    drawn: tuple[int, dict[int, list[bool] | None], list[bool] | None],
) -> None:
    rows, build, here = drawn
    batch = pa.record_batch({"k": pa.array(range(rows), pa.int64()), "log": pa.array([None] * rows, pa.string())})
    which = {source: None if some is None else np.array(some, np.bool_) for source, some in build.items()}
    log = None if here is None else Logged(np.zeros(rows, np.int64), np.array(here, np.bool_))
    again, logged = there_and_back(Shipment("s", 2, batch, which, log))
    assert (again.stream, again.slot) == ("s", 2) and again.batch.equals(batch)
    assert again.build is not None
    assert {s: None if w is None else w.tolist() for s, w in again.build.items()} == build
    assert logged.column("k").to_pylist() == [k for k in range(rows) if here is None or here[k]]
