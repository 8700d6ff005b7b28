"""What happens to a row before it counts: unreadable rows are dead, old ones are late, the rest have a time.

rows_in = rows_used + rows_late + rows_dead holds because every row leaves here by exactly one of the three doors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.errors import JobError
from eddyline.query.model import Stream
from eddyline.query.types import as_kept

LARGEST_TIME = 1 << 60
"""Event times further than this from the epoch, in microseconds (36,500 years), are not readable."""


@dataclass(frozen=True)
class Intake:
    """The rows of one batch of one stream, by the door they left through."""

    used: pa.RecordBatch
    late: pa.RecordBatch
    dead: pa.RecordBatch
    newest: int | None
    """The largest event time of any readable row, late ones included."""


def take_in(stream: Stream, batch: pa.RecordBatch, late_before: int | None) -> Intake:
    """Sort the rows of a batch: those without a usable time are dead, those older than `late_before` are late."""
    assert stream.time is not None
    times = columns_for(stream, batch, [stream.time]).column(0)
    micros = event_times(times)
    readable = (micros >= -LARGEST_TIME) & (micros <= LARGEST_TIME)
    if times.null_count:
        readable &= pc.is_valid(times).to_numpy(zero_copy_only=False)
    late = readable & (micros < late_before) if late_before is not None else np.zeros(len(times), np.bool_)
    newest = int(micros[readable].max()) if readable.any() else None
    return Intake(_only(batch, readable & ~late), _only(batch, late), _only(batch, ~readable), newest)


_UNREADABLE = np.iinfo(np.int64).max
_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}


def event_times(times: pa.Array) -> NDArray[np.int64]:
    """Event times in microseconds, ns rounded towards the past; beyond LARGEST_TIME where too large, any where NULL."""
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
    """A batch whose columns can be filtered, sorted and kept."""
    arrays = [as_kept(column) for column in batch.columns]
    if all(new is old for new, old in zip(arrays, batch.columns, strict=True)):
        return batch
    fields = [field.with_type(a.type) for field, a in zip(batch.schema, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def columns_for(stream: Stream, batch: pa.RecordBatch, names: Iterable[str]) -> pa.RecordBatch:
    """Only the columns that are needed, in the types that were declared."""
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
                    f"stream {stream.name}: column {name!r} is {array.type}, not {field.type} as declared"
                ) from error
        arrays.append(array)
        fields.append(field)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _only(batch: pa.RecordBatch, which: NDArray[np.bool_]) -> pa.RecordBatch:
    if which.all():
        return batch
    return batch.filter(pa.array(which)) if which.any() else batch.slice(0, 0)
