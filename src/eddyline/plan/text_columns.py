"""Warnings about inferred columns that are text only because of a spelling of a missing value, such as `n/a`.

Nothing fails if such a column is only selected, compared or counted, but its values are then compared as text. A column
that is only cast, or from which the event time is computed, is as the user wants it.
"""

from __future__ import annotations

from collections.abc import Iterator

from eddyline.bound.expr import Aggregate, Call, Expr, SourceColumn
from eddyline.bound.inferred_text import note_of
from eddyline.bound.model import BoundQuery
from eddyline.cql.quoting import quoted


def text_columns(query: BoundQuery) -> list[str]:
    """A warning for each such column that the query uses as text."""
    told = []
    used = {column for expr in query.expressions for column in _outside_casts(expr)}
    for column in sorted(used, key=lambda column: (column.source, column.name)):
        stream = query.sources[column.source].stream
        note = note_of(stream.schema.field(column.name))
        is_time = stream.computed is not None and column.name in stream.computed.reads
        if note is not None and note.is_missing and not is_time:
            name = quoted(column.name)
            told.append(f"{name} of {stream.name} {note.because}; {note.remedy(name, name)}")
    return list(dict.fromkeys(told))


def _outside_casts(expr: Expr) -> Iterator[SourceColumn]:
    """The source columns of an expression that are not the argument of a cast."""
    if isinstance(expr, SourceColumn) and expr.source >= 0:
        yield expr
    elif isinstance(expr, Aggregate) and expr.arg is not None:
        yield from _outside_casts(expr.arg)
    elif isinstance(expr, Call) and expr.name not in ("cast", "try_cast"):
        for arg in expr.args:
            yield from _outside_casts(arg)
