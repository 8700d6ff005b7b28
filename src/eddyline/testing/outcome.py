"""What was made of a case, however it was run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from eddyline.counts import Counts
from eddyline.query.model import Query, WindowKind


@dataclass(frozen=True)
class Outcome:
    """Rows and counts. Rows "held_back" came only at the end though nothing waits for a watermark."""

    table: pa.Table
    counts: dict[str, int]


def counted(counts: Counts) -> dict[str, int]:
    """The totals that an outcome has; how many errors there are depends on the routes."""
    return {name: total for name, total in counts.totals.items() if name != "expression_errors"}


def held_back(query: Query, last: Sequence[pa.RecordBatch]) -> int:
    """How many of the rows that the end gave should have come before."""
    waits = query.group is not None or any(s.window.kind is WindowKind.ROWS for s in query.sources)
    return 0 if waits else sum(batch.num_rows for batch in last)
