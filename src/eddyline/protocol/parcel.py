"""A parcel: rows of a stream, or the counts of a split, on their way from a split to a slot.

As bytes, a parcel is one Arrow IPC stream. Beside the columns of the stream it has a Boolean column for each source
that builds only some of the rows, and one that marks the rows that the slot logs, if it does not log all. The head is
in the metadata of the schema: it tells the kind of parcel and everything that holds for all rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from eddyline import codec
from eddyline.balance.hot_key import KeyCount
from eddyline.counts import Counts
from eddyline.engine.split import Shipment
from eddyline.engine.tally import Spans
from eddyline.protocol.outlet import Outlet
from eddyline.protocol.record import Record

_HEAD = b"eddyline"
_BUILD, _LOG = "\0build", "\0log"
NO_ROWS = pa.record_batch([pa.array([], pa.null())], names=["nothing"])


class RowsHead(msgspec.Struct, frozen=True, tag="rows"):
    """Rows of a stream to build."""

    stream: str
    build: Mapping[int, bool] | None
    """By source, whether it builds all rows; if not, a column marks its rows. None: every source builds all rows."""


class RejectedHead(msgspec.Struct, frozen=True, tag="rejected"):
    """Late or dead rows of a stream."""

    outlet: Outlet


class CountsHead(msgspec.Struct, frozen=True, tag="counts"):
    """The counts of a split. All slots receive the newest times; one slot receives the rest."""

    newest: Mapping[str, int]
    counts: Counts = Counts()
    spans: Spans = {}
    keys: tuple[KeyCount, ...] = ()


class CellsHead(msgspec.Struct, frozen=True, tag="cells"):
    """Partial results of a turn."""


class RecordHead(msgspec.Struct, frozen=True, tag="record"):
    """The record of a turn that returned partial results."""

    record: Record


Head = RowsHead | RejectedHead | CountsHead | CellsHead | RecordHead


@dataclass(frozen=True)
class Parcel:
    """A head, and the rows that it describes. Within a process the head may be a shipment, which has its rows."""

    head: Head | Shipment
    batch: pa.RecordBatch = field(default_factory=lambda: NO_ROWS)


def packed(parcel: Parcel) -> bytes:
    """Serialise a parcel."""
    metadata = {_HEAD: codec.packed(parcel.head)}
    batch = parcel.batch.replace_schema_metadata({**(parcel.batch.schema.metadata or {}), **metadata})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpacked(data: bytes | pa.Buffer) -> Parcel:
    """Read a parcel that `packed` serialised."""
    batch = pa.ipc.open_stream(data).read_next_batch()
    head: Head = codec.unpacked(batch.schema.metadata[_HEAD], Head)  # type: ignore[arg-type]
    return Parcel(head, batch.replace_schema_metadata(None))


def of_shipment(shipment: Shipment) -> Parcel:
    """Pack the rows of a shipment."""
    batch, build = shipment.batch, dict[int, bool]()
    for source, which in (shipment.build or {}).items():
        build[source] = which is None
        if which is not None:
            batch = batch.append_column(f"{_BUILD}{source}", pa.array(which))
    if shipment.log is not None and not shipment.log.here.all():
        batch = batch.append_column(_LOG, pa.array(shipment.log.here))
    return Parcel(RowsHead(shipment.stream, None if shipment.build is None else build), batch)


def logged_rows(shipment: Shipment) -> pa.RecordBatch:
    """The rows of a shipment that its slot logs."""
    here = None if shipment.log is None else shipment.log.here
    return shipment.batch if here is None or here.all() else shipment.batch.filter(pa.array(here))


def as_shipment(head: RowsHead, batch: pa.RecordBatch, slot: int) -> tuple[Shipment, pa.RecordBatch]:
    """Unpack a shipment for a slot, and those of its rows that the slot logs."""
    which = None
    if head.build is not None:
        which = {
            source: None if all_ else batch.column(f"{_BUILD}{source}").to_numpy(zero_copy_only=False)
            for source, all_ in head.build.items()
        }
    log = batch.filter(batch.column(_LOG)) if _LOG in batch.schema.names else batch
    names = [name for name in batch.schema.names if not name.startswith("\0")]
    return Shipment(head.stream, slot, batch.select(names), which), log.select(names)
