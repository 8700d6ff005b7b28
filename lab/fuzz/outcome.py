"""The outcome of a case, the same type for every way to run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from eddyline.bound.model import MATCH, MISSING, BoundQuery, WindowKind
from eddyline.counts import Counts


@dataclass(frozen=True)
class CaseOutcome:
    """Result rows and counts. "held_back" counts rows that came only at the end although the query waits for no
    watermark."""

    table: pa.Table
    counts: dict[str, int]
    seen: frozenset[str] = frozenset()
    """What happened to groups in a simulated job (spill_coverage.py)."""
    failed: tuple[tuple[str, tuple[object, ...]], ...] = ()
    """The lookups that have failed: tables and keys. They are not among the counts."""
    last: pa.Table | None = None
    """The result rows that came with the end."""
    partial: PartialOutcome | None = None
    """For SELECT PARTIAL; the partial rows are not among the result rows, nor are the columns that it adds."""


@dataclass(frozen=True)
class PartialOutcome:
    """The partial rows."""

    rows: pa.Table
    last: frozenset[int]
    """The keys of the full rows that came with the end."""


def in_two(outcome: CaseOutcome, query: BoundQuery) -> CaseOutcome:
    """The outcome with partial rows on their own, if they are wanted."""
    if not query.partial or outcome.last is None:
        return outcome
    full = outcome.table.filter(outcome.table.column(MISSING).is_null())
    rows = outcome.table.filter(outcome.table.column(MISSING).is_valid())
    last = outcome.last.filter(outcome.last.column(MISSING).is_null())
    keys = frozenset(last.column(MATCH).to_pylist())
    counts = outcome.counts | {"rows_out": outcome.counts["rows_out"] - rows.num_rows}
    outputs = list(range(len(query.outputs)))
    return replace(outcome, table=full.select(outputs), counts=counts, partial=PartialOutcome(rows, keys))


def without_lookups(counts: Mapping[str, int], failed: int) -> dict[str, int]:
    """Counts without these lookups, which are counted as dead rows of their tables."""
    return {**counts, "rows_in": counts["rows_in"] - failed, "rows_dead": counts["rows_dead"] - failed}


def counted(counts: Counts) -> dict[str, int]:
    """The counts that an outcome has. The number of expression errors is not among them: it depends on the routes."""
    return {name: total for name, total in counts.totals.items() if name != "expression_errors"}


def held_back(query: BoundQuery, last: Sequence[pa.RecordBatch]) -> int:
    """How many of the rows that came only at the end should have come before."""
    waits = query.group is not None or any(s.window.kind is WindowKind.ROWS for s in query.sources)
    return 0 if waits else sum(batch.num_rows for batch in last)
