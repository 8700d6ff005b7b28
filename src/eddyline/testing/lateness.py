"""Which rows of a cut into batches are dead, late or used, by the definition of SEMANTICS, for the oracle.

A stream's watermark after a batch is the largest time of its readable rows so far minus its lateness; the query's is
the least over its streams, ended ones counting as infinity. A row is late if its time is below one of the two as they
stood before its batch. (Late rows cannot raise a maximum, so whether they count for it does not matter.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.testing.case import Batch

NEVER = -(2**63)
FOREVER = 2**63 - 1


@dataclass(frozen=True)
class SortedOut:
    """The used rows of a stream and their times in microseconds, the numbers of late and dead rows, and the newest
    readable time."""

    used: pa.Table
    times: NDArray[np.int64]
    late: int
    dead: int
    newest: int


def micros(times: pa.Array) -> pa.Array:
    """Timestamps in microseconds, those in nanoseconds rounded towards the past."""
    if times.type.unit == "ns":
        times = pc.floor_temporal(times, unit="microsecond")
    return times.cast(pa.timestamp("us", times.type.tz))


def sort_out(
    streams: Mapping[str, tuple[str, int]], schemas: Mapping[str, pa.Schema], batches: Sequence[Batch]
) -> dict[str, SortedOut]:
    """Sort the rows of a query's streams (name -> time column, lateness) into used, late and dead ones."""
    tables, times, known = {}, {}, {}
    cuts = {name: [0] for name in streams}
    for name, (column, _) in streams.items():
        parts = []
        for batch in batches:
            here = [rows for stream, rows in batch.rows if stream == name]
            parts += here
            cuts[name].append(cuts[name][-1] + sum(rows.num_rows for rows in here))
        tables[name] = pa.Table.from_batches(parts, schemas[name])
        at = tables[name].column(column).combine_chunks()
        known[name] = np.asarray(at.is_valid())
        times[name] = np.asarray(micros(at).cast(pa.int64()).fill_null(NEVER))
    used = {name: np.zeros(len(times[name]), dtype=bool) for name in streams}
    newest = dict.fromkeys(streams, NEVER)
    ended: set[str] = set()
    query_mark = NEVER
    for i, batch in enumerate(batches):
        for name, (_, lateness) in streams.items():
            part = slice(cuts[name][i], cuts[name][i + 1])
            used[name][part] = known[name][part] & (times[name][part] >= max(_mark(newest[name], lateness), query_mark))
            newest[name] = max(newest[name], int(times[name][part].max(initial=NEVER)))
        ended.update(batch.ended)
        marks = [_mark(newest[name], lateness) for name, (_, lateness) in streams.items() if name not in ended]
        query_mark = max(query_mark, min(marks, default=FOREVER))
    return {
        name: SortedOut(
            tables[name] if used[name].all() else tables[name].filter(pa.array(used[name])),
            times[name][used[name]],
            int(known[name].sum() - used[name].sum()),
            int((~known[name]).sum()),
            newest[name],
        )
        for name in streams
    }


def _mark(newest: int, lateness: int) -> int:
    return NEVER if newest == NEVER else newest - lateness
