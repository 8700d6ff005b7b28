"""What is certain about partial rows, whenever tables answer.

- Those that lack the same tables are among the combinations of the other rows, each at most as often as there is such a
  combination, with its key.
- A full row that came only at the end was given as a partial row before, with the same key, unless a ROWS window held
  its rows back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound.model import MATCH, MISSING, BoundQuery
from eddyline.testing.compare import difference
from lab.fuzz.outcome import PartialOutcome


def wrong_rows(
    query: BoundQuery, outcome: PartialOutcome, combinations: Callable[[Collection[str]], pa.Table]
) -> str | None:
    """None if all this holds, else a text about what does not. `combinations` are those of all rows but those of some
    tables, by alias."""
    rows = outcome.rows
    for missing in pc.unique(rows.column(MISSING)).to_pylist():
        some = rows.filter(pc.equal(rows.column(MISSING), missing)).drop_columns([MISSING])
        different = difference(some, combinations(missing.split(", ")), may_lack=True)
        if different is not None:
            return f"partial rows without {missing}: {different}"
    untold = outcome.last - {*rows.column(MATCH).to_pylist()}
    if untold and not query.counts_rows:
        return f"{len(untold)} keys of full rows that came at the end were not given before"
    return None
