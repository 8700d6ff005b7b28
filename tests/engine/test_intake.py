"""The intake puts every row into exactly one class: used, late or dead."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.bound.model import BoundStream
from eddyline.engine.intake import LARGEST_TIME, classify, columns_for, event_times
from eddyline.errors import JobError
from tests.support.properties import examples

MICROS = pa.timestamp("us")
SCHEMA = pa.schema([("ts", MICROS), ("k", pa.int64())])
STREAM = BoundStream("s", SCHEMA, "ts")


def batch_of(times: list[int | None], type_: pa.DataType = MICROS) -> pa.RecordBatch:
    return pa.record_batch({"ts": pa.array(times, type_), "k": pa.array(range(len(times)), pa.int64())})


def doors(batch: pa.RecordBatch, late_before: int | None, stream: BoundStream = STREAM) -> tuple[list[int], ...]:
    found = classify(stream, batch, late_before)
    return tuple(part.column("k").to_pylist() for part in (found.used, found.late, found.dead))


TIMES = st.none() | st.integers(-20, 20) | st.sampled_from([LARGEST_TIME, -LARGEST_TIME, LARGEST_TIME + 1, -(2**63)])


@examples(200)
@given(st.lists(TIMES, max_size=8), st.none() | st.integers(-21, 21), st.integers(0, 3))
def test_by_one_door_each(times: list[int | None], late_before: int | None, cut: int) -> None:
    batch = batch_of(times).slice(cut)
    used, late, dead = [], [], []
    for i, time in list(enumerate(times))[cut:]:
        readable = time is not None and abs(time) <= LARGEST_TIME
        is_late = readable and late_before is not None and time < late_before
        (late if is_late else used if readable else dead).append(i)
    assert doors(batch, late_before) == (used, late, dead)
    readable_times = [t for t in times[cut:] if t is not None and abs(t) <= LARGEST_TIME]
    assert classify(STREAM, batch, late_before).newest == max(readable_times, default=None)


def test_rows_keep_all_their_columns_through_every_door() -> None:
    batch = batch_of([1, 2, None]).append_column("extra", pa.array(["a", "b", "c"]))
    found = classify(STREAM, batch, 2)
    rows = [part.to_pylist()[0]["extra"] for part in (found.used, found.late, found.dead)]
    assert rows == ["b", "a", "c"]


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
@pytest.mark.parametrize(
    ("unit", "values", "micros"),
    [
        ("s", [1, -1, 2**33], [10**6, -(10**6), 2**33 * 10**6]),
        ("ms", [1, -1, 2**43], [10**3, -(10**3), 2**43 * 10**3]),
        ("us", [1, -1, 2**60], [1, -1, 2**60]),
        ("ns", [1999, -1, -1000], [1, -1, -1]),
    ],
)
def test_event_times_are_microseconds_rounded_to_the_past(
    zone: str | None, unit: str, values: list[int], micros: list[int]
) -> None:
    array = pa.array([*values, None], pa.timestamp(unit, zone))
    assert event_times(array)[:-1].tolist() == micros
    assert event_times(array.slice(1, 1)).tolist() == micros[1:2]
    assert event_times(array).dtype == np.int64


@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize("value", [2**62, -(2**62), 2**63 - 1, -(2**63), 2**58])
def test_a_time_that_does_not_fit_is_dead_and_does_not_wrap_round(unit: str, value: int) -> None:
    stream = BoundStream("s", pa.schema([("ts", pa.timestamp(unit)), ("k", pa.int64())]), "ts")
    assert doors(batch_of([value, 1], pa.timestamp(unit)), None, stream) == ([1], [], [0])


def test_a_batch_without_the_time_is_refused_in_a_sentence() -> None:
    with pytest.raises(JobError, match="no column 'ts'"):
        classify(STREAM, pa.record_batch({"k": [1]}), None)
    with pytest.raises(JobError, match=r"'ts' is BIGINT\[\], not TIMESTAMP"):
        classify(STREAM, pa.record_batch({"ts": [[1]], "k": [1]}), None)


def test_columns_are_chosen_and_cast_to_what_was_declared() -> None:
    wide = pa.record_batch({"x": ["a"], "k": pa.array([7], pa.int8()), "ts": pa.array([1], pa.timestamp("s"))})
    found = columns_for(STREAM, wide, ["ts", "k"])
    assert found.schema == SCHEMA and found.to_pydict()["k"] == [7]
    with pytest.raises(JobError, match="no column 'y'"):
        columns_for(BoundStream("s", pa.schema([("y", pa.int64())]), None), wide, ["y"])
    with pytest.raises(JobError, match="'x' is VARCHAR, not BIGINT"):
        columns_for(BoundStream("s", pa.schema([("x", pa.int64())]), None), wide, ["x"])
