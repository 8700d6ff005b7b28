"""What travels from a split to a slot: rows of a stream, or what the split counted.

As bytes a parcel is one Arrow IPC stream. Rows have beside the columns of the stream a column of truth for each source
that builds only some of them, and one for those that the slot logs; what is true of all rows, and everything that was
counted, is JSON in the metadata of the schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from eddyline.engine.split import Shipment

_HEAD = b"eddyline"
_BUILD, _LOG = "\0build", "\0log"
NO_ROWS = pa.record_batch([pa.array([], pa.null())], names=["nothing"])


@dataclass(frozen=True)
class Parcel:
    """Rows of a stream to build, late rows, dead rows, or counts, by `kind`."""

    kind: str
    head: Mapping[str, Any]
    batch: pa.RecordBatch = field(default_factory=lambda: NO_ROWS)


def packed(parcel: Parcel) -> bytes:
    """A parcel as bytes."""
    metadata = {_HEAD: json.dumps({"kind": parcel.kind, **parcel.head}).encode()}
    batch = parcel.batch.replace_schema_metadata({**(parcel.batch.schema.metadata or {}), **metadata})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpacked(data: bytes | pa.Buffer) -> Parcel:
    """What `packed` made."""
    batch = pa.ipc.open_stream(data).read_next_batch()
    head = json.loads(batch.schema.metadata[_HEAD])
    return Parcel(head.pop("kind"), head, batch.replace_schema_metadata(None))


def of_shipment(shipment: Shipment) -> Parcel:
    """The rows of a shipment."""
    batch, build = shipment.batch, {}
    for source, which in (shipment.build or {}).items():
        build[str(source)] = which is None
        if which is not None:
            batch = batch.append_column(f"{_BUILD}{source}", pa.array(which))
    if shipment.log is not None and not shipment.log.here.all():
        batch = batch.append_column(_LOG, pa.array(shipment.log.here))
    head = {"stream": shipment.stream, "build": None if shipment.build is None else build}
    return Parcel("rows", head, batch)


def as_shipment(parcel: Parcel, slot: int) -> tuple[Shipment, pa.RecordBatch]:
    """The shipment, and those of its rows that the slot logs."""
    batch, build = parcel.batch, parcel.head["build"]
    which = None
    if build is not None:
        which = {
            int(s): None if all_ else batch.column(f"{_BUILD}{s}").to_numpy(zero_copy_only=False)
            for s, all_ in build.items()
        }
    log = batch.filter(batch.column(_LOG)) if _LOG in batch.schema.names else batch
    names = [name for name in batch.schema.names if not name.startswith("\0")]
    return Shipment(parcel.head["stream"], slot, batch.select(names), which), log.select(names)
