"""Rows that a Python program hands over to a job on Spark: parquet files in its checkpoint, which tasks read.

The files are written before the job reads them, keep the types of the rows, and never change: a job that continues
finds the rows that it read before under the same names. If a stream is handed over again, the rows after those already
written are new, and get files of their own. The rows of a frame are ordered by their times in each file. The local
engine treats such a stream in the same way.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.errors import JobError
from eddyline.os_errors import why
from eddyline.runtime.running.job import JobInput
from eddyline.runtime.running.time_order import by_time, is_frame
from eddyline.runtime.sources.python_source import PythonSource
from eddyline.runtime.staged_types import storable
from eddyline.state.log.private import FILE, make_folder
from eddyline.state.log.store import as_name

GROUP_ROWS = 1 << 16
"""Rows of a row group. One task reads one row group."""


def folder_of(checkpoint: str, name: str) -> str:
    """The folder with the rows of a stream or table."""
    return f"{checkpoint}/given/{as_name(name)}"


def hand_over(checkpoint: str, stream: JobInput, anew: bool) -> None:
    """Writes the rows that are not written yet; all of them if the job begins `anew`."""
    assert isinstance(stream.source, PythonSource)
    folder = Path(folder_of(checkpoint, stream.name))
    try:
        if anew:
            shutil.rmtree(folder, ignore_errors=True)
        elif stream.time is None:
            return  # a table was read whole when the job began
        make_folder(str(folder), checkpoint)
        there = sorted(folder.glob("[!.]*.parquet"))  # a killed run may have left an unfinished file
        rows = _after(stream, sum(pq.read_metadata(file).num_rows for file in there))
        rows = iter(by_time(stream, list(rows))) if is_frame(stream) else rows
        for number, (schema, alike) in enumerate(itertools.groupby(rows, lambda batch: batch.schema), len(there)):
            fresh, file = folder / f".{number:05}.parquet", folder / f"{number:05}.parquet"
            pq.write_table(storable(pa.Table.from_batches(list(alike), schema)), fresh, row_group_size=GROUP_ROWS)
            fresh.chmod(FILE)
            fresh.rename(file)
    except (pa.ArrowException, OSError) as error:
        raise JobError(f"the rows of {stream.name} cannot be handed over to Spark: {why(error)}") from None


def _after(stream: JobInput, written: int) -> Iterator[pa.RecordBatch]:
    """The rows after the first `written` ones."""
    assert isinstance(stream.source, PythonSource)
    for batch in stream.source.raw(stream.wanted):
        few = min(written, batch.num_rows)
        written -= few
        if few < batch.num_rows:
            yield batch.slice(few)
    if written:
        raise JobError(f"{stream.name} has fewer rows than the job has already read: those must stay")
