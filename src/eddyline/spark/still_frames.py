"""A DataFrame that is not streaming, as a stream: its rows are all there.

Before the job begins, Spark writes the rows to parquet files in the checkpoint, in the order of their times, and the
job then reads them as it reads rows of Python (runtime/running/handed_over.py). So no row is late, a run that continues
reads the rows that were there when the job began, and the rows never pass through the driver.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from eddyline.errors import InternalError, JobError
from eddyline.runtime.running.handed_over import GROUP_ROWS, folder_of
from eddyline.runtime.running.job import JobInput
from eddyline.runtime.running.schemas import schema_of, schema_text
from eddyline.runtime.running.time_order import times_in
from eddyline.runtime.sources.source import Chunk, Wanted
from eddyline.spark.functions import home_in_task
from eddyline.spark.names import named, numbered
from eddyline.spark.tasks import Task
from eddyline.state.log.private import FILE, make_folder

_TIME = "eddyline_time"


class StillFrame:
    """The DataFrame as a source: its columns are known, and its rows are read from the checkpoint."""

    endless = False

    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame
        self.schema: pa.Schema = to_arrow_schema(frame.schema, timezone="UTC")

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        raise InternalError("rows of a DataFrame are read from the checkpoint")


def hand_over_frame(checkpoint: str, stream: JobInput, spec: str, anew: bool) -> None:
    """Writes the rows if the job begins `anew`; else JobError if there are more rows or fewer than then. `spec` is the
    text for tasks."""
    assert isinstance(stream.source, StillFrame)
    folder = folder_of(checkpoint, stream.name)
    columns = stream.wanted.columns
    frame = numbered(stream.source.frame, columns)
    if not anew:
        if not os.path.isdir(folder):
            raise JobError(f"the checkpoint is damaged: {os.path.relpath(folder, checkpoint)} is missing")
        rows, then = frame.count(), _rows_in(folder)
        if rows != then:
            raise JobError(
                f"{stream.name} has {rows:,} rows, and had {then:,} when the job began; a DataFrame that is not"
                " streaming cannot change: use spark.readStream for rows that come later"
            )
        return
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(folder, checkpoint)
    schema = pa.schema([stream.source.schema.field(name) for name in columns])
    if stream.stream.computed is None:
        ordered = frame.orderBy(f"c{columns.index(stream.stream.time or '')}")
    else:
        with_times = StructType([*frame.schema.fields, StructField(_TIME, LongType())])
        ordered = frame.mapInArrow(_time_task(spec, stream.name, columns), with_times).orderBy(_TIME)
    told = ordered.mapInArrow(_write_task(folder, schema_text(schema)), "rows bigint").collect()
    if sum(row.rows for row in told) != _rows_in(folder):
        raise JobError(
            f"rows of {stream.name} are missing in {folder}: the checkpoint must be a folder that all hosts have"
        )


def _rows_in(folder: str) -> int:
    return sum(pq.read_metadata(file).num_rows for file in Path(folder).glob("[!.]*.parquet"))


def _time_task(spec: str, name: str, columns: Sequence[str]) -> Task:
    """A task that adds event times, in microseconds, where they are computed from columns."""

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        query = home_in_task(spec)[1].query
        stream = next(source.stream for source in query.sources if source.stream.name == name)
        for batch in batches:
            yield batch.append_column(_TIME, pa.array(times_in(stream, stream.schema, named(batch, columns))))

    return add


def _write_task(folder: str, schema: str) -> Task:
    """A task that writes the rows of its partition to a file, which appears whole or not at all, and gives their
    number."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        known, number, rows = schema_of(schema), context.partitionId(), 0
        fresh = f"{folder}/.{number:05}-{uuid.uuid4().hex[:8]}.parquet"
        held: list[pa.RecordBatch] = []
        writer: pq.ParquetWriter | None = None
        try:
            for last, batch in _with_end(batches):
                held += [] if batch is None else [named(batch, known.names)]
                many = sum(part.num_rows for part in held)
                if many >= GROUP_ROWS or (last and many):
                    writer = writer or pq.ParquetWriter(fresh, known)
                    writer.write_table(pa.Table.from_batches(held).cast(known), row_group_size=GROUP_ROWS)
                    rows, held = rows + many, []
        finally:
            if writer is not None:
                writer.close()
        if rows:
            os.chmod(fresh, FILE)
            os.replace(fresh, f"{folder}/{number:05}.parquet")
            yield pa.record_batch({"rows": [rows]})

    return write


def _with_end(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[bool, pa.RecordBatch | None]]:
    """The batches, and a last None."""
    for batch in batches:
        yield False, batch
    yield True, None
