"""The intake classifies rows: rows without a readable time are dead, old rows are late, and the others are used.

rows_in = rows_used + rows_late + rows_dead holds because every row is in exactly one of the three classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.as_text import as_text
from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Expr, SourceColumn
from eddyline.bound.kept_types import as_kept
from eddyline.bound.model import BoundStream
from eddyline.bound.types import STRING, logical, sql_type
from eddyline.errors import JobError
from eddyline.kernels.disorder import behind

NO_TIME = "the event time is NULL or out of range"
"""The reason why a row is dead if its time is a column."""
_SHOWN = 60
"""The most characters of a value in a reason."""

LARGEST_TIME = 1 << 60
"""Event times further than this from the epoch, in microseconds (36,500 years), are not readable."""


@dataclass(frozen=True)
class Intake:
    """The rows of one batch of one stream, by class."""

    used: pa.RecordBatch
    late: pa.RecordBatch
    dead: pa.RecordBatch
    reasons: pa.Array
    """The reason for each dead row."""
    newest: int | None
    """The largest event time of any readable row, including late ones."""
    oldest: int | None
    """The smallest event time of them."""
    behind: int
    """The largest distance of one of them behind the newest row before it, in microseconds."""


def classify(stream: BoundStream, batch: pa.RecordBatch, late_before: int | None, newest: int | None = None) -> Intake:
    """Classify the rows of a batch: those without a usable time are dead, and those older than `late_before` are late.
    `newest` is the newest time of earlier rows."""
    assert stream.time is not None
    whole = with_time(stream, batch)
    batch = _without_time(stream, batch)
    times = columns_for(stream, whole, [stream.time]).column(0)
    micros = event_times(times)
    nothing, dead = batch.slice(0, 0), _unreadable(times, micros)
    known = micros if dead is None else micros[~dead]
    if not known.size:
        return Intake(whole.slice(0, 0), nothing, batch, _reasons(stream, batch), None, None, 0)
    oldest, last = int(known.min()), int(known.max())
    used, late = None if dead is None else ~dead, None
    if late_before is not None and oldest < late_before:
        late = micros < late_before if used is None else used & (micros < late_before)
        used = ~late if used is None else used & ~late
    without = nothing if dead is None else _only(batch, dead)
    return Intake(
        whole if used is None else _only(whole, used),
        nothing if late is None else _only(batch, late),
        without,
        _reasons(stream, without),
        last,
        oldest,
        _disorder(known, newest),
    )


def _unreadable(times: pa.Array, micros: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """The rows without a usable time; None if all have one."""
    if not times.null_count and micros.size and micros.min() >= -LARGEST_TIME and micros.max() <= LARGEST_TIME:
        return None
    missing: NDArray[np.bool_] = pc.is_null(times).to_numpy(zero_copy_only=False)
    return missing | (micros < -LARGEST_TIME) | (micros > LARGEST_TIME)


def _disorder(times: NDArray[np.int64], newest: int | None) -> int:
    """The largest distance of a time behind the newest time before it. Nearly all batches are in order, and are checked
    fast."""
    first = int(times[0]) if newest is None else newest
    if first <= times[0] and (times[1:] >= times[:-1]).all():
        return 0
    fixed = times.view()
    fixed.flags.writeable = False  # as in arrays from Arrow, so that the kernel is compiled for one type only
    return int(behind(fixed, first))


def with_time(stream: BoundStream, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with their event times; NULL where a time cannot be computed. Existing times are kept."""
    if stream.computed is None or stream.time in batch.schema.names:
        return batch
    inputs = columns_for(stream, as_it_travels(batch.select(_present(stream, batch))), stream.computed.reads)
    columns: dict[Expr, pa.Array] = {
        SourceColumn(0, field.name, field.type): inputs.column(field.name) for field in inputs.schema
    }
    times = evaluate(stream.computed.expr, columns, batch.num_rows, ErrorCount())
    return batch.append_column(pa.field(str(stream.time), times.type), times)


def _present(stream: BoundStream, batch: pa.RecordBatch) -> list[str]:
    """The columns in the batch that the time is computed from; `columns_for` reports missing ones."""
    return [n for n in batch.schema.names if stream.computed is not None and n in stream.computed.reads]


def _without_time(stream: BoundStream, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows as they were read, without a computed time."""
    if stream.computed is None or stream.time not in batch.schema.names:
        return batch
    return batch.drop_columns([stream.time])


def _reasons(stream: BoundStream, dead: pa.RecordBatch) -> pa.Array:
    """Reasons for rows without a usable time, with the values of the time column or of the columns that the time is
    computed from."""
    if not dead.num_rows:
        return pa.array([], pa.string())
    if stream.computed is None:
        times = columns_for(stream, dead, [str(stream.time)]).column(0)
        number = pc.cast(times.view(pa.int64()), pa.string())
        number = pc.binary_join_element_wise(number, f"{times.type.unit} since 1970", " ")
        return pc.binary_join_element_wise(f"{NO_TIME}: {stream.time} is ", pc.coalesce(number, pa.scalar("NULL")), "")
    parts: list[Any] = []
    for name in stream.computed.reads:
        values = dead.column(name)
        text = pc.utf8_slice_codeunits(as_text(values), 0, _SHOWN)
        quoted = pc.binary_join_element_wise("'", text, "'", "") if logical(values.type) == STRING else text
        parts += [", " if parts else "", f"{name} = ", pc.coalesce(quoted, pa.scalar("NULL"))]
    begin = f"the event time {stream.computed.written} is NULL or out of range for "
    return pc.binary_join_element_wise(begin, *parts, "")


_UNREADABLE = np.iinfo(np.int64).max
_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}


def event_times(times: pa.Array) -> NDArray[np.int64]:
    """Event times in microseconds, with ns rounded down. Where a time is too large the result is beyond LARGEST_TIME;
    where it is NULL the result is arbitrary."""
    raw: NDArray[np.int64] = np.asarray(
        times.view(pa.int64()).fill_null(_UNREADABLE) if times.null_count else times.view(pa.int64())
    )
    if times.type.unit == "ns":
        return raw // 1000
    factor = _PER_UNIT[times.type.unit]
    if factor == 1:
        return raw
    most = LARGEST_TIME // factor
    return np.where((raw >= -most) & (raw <= most), raw * factor, LARGEST_TIME + 1)


def as_it_travels(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose columns can be filtered, sorted and stored."""
    arrays = [as_kept(column) for column in batch.columns]
    if all(new is old for new, old in zip(arrays, batch.columns, strict=True)):
        return batch
    fields = [field.with_type(a.type) for field, a in zip(batch.schema, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def columns_for(stream: BoundStream, batch: pa.RecordBatch, names: Iterable[str]) -> pa.RecordBatch:
    """Only the named columns, in the declared types."""
    arrays, fields = [], []
    for name in names:
        at = batch.schema.get_field_index(name)
        if at < 0:
            raise JobError(
                f"stream {stream.name}: a batch has no column {name!r}, only {', '.join(batch.schema.names)}"
            )
        field, array = stream.schema.field(name), batch.column(at)
        if array.type != field.type:
            try:
                array = array.cast(field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise JobError(
                    f"stream {stream.name}: column {name!r} is {sql_type(array.type)},"
                    f" not {sql_type(field.type)} as declared"
                ) from error
        arrays.append(array)
        fields.append(field)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _only(batch: pa.RecordBatch, which: NDArray[np.bool_]) -> pa.RecordBatch:
    if which.all():
        return batch
    return batch.filter(pa.array(which)) if which.any() else batch.slice(0, 0)
