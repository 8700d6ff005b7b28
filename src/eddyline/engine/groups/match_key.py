"""The key by which the partial rows and the full rows of one combination are matched: SELECT PARTIAL.

It is a hash of the event times and the values that the query uses, of all rows of the combination that are not asked
for. So it depends on these rows alone: not on slots, plans, row numbers and answers. Values of types that have no code
(lists, structures, intervals) are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.expr import Expr, SourceColumn
from eddyline.bound.model import BoundQuery
from eddyline.plan.partition_groups import row_codes
from eddyline.state.keys import combine


class MatchKey:
    """Computes the keys of combinations."""

    def __init__(self, query: BoundQuery) -> None:
        self._columns = {source: _columns(query, source) for source in query.given}

    def of(self, values: Mapping[Expr, pa.Array], times: Mapping[int, NDArray[np.int64]]) -> pa.Array:
        """The keys, given the columns of each source that is not asked for, and the times of the streams."""
        codes = (row_codes([values[c] for c in some], times.get(source)) for source, some in self._columns.items())
        return pa.array(combine([code for code in codes if code is not None]))


def _columns(query: BoundQuery, source: int) -> Sequence[SourceColumn]:
    schema = query.sources[source].stream.schema
    return [SourceColumn(source, name, schema.field(name).type) for name in query.columns_of_source(source)]
