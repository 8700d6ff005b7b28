"""The lookups of a job: its tables, opened as they are declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from eddyline.bound.model import BoundQuery
from eddyline.cql.declaration import Declaration
from eddyline.engine.lookups.look_up import Lookups
from eddyline.errors import SettingError
from eddyline.runtime.access.tables import AccessTable, open_table


def lookups_of(query: BoundQuery, declarations: Iterable[Declaration]) -> Callable[[], Lookups] | None:
    """Makes what asks the tables of a query for one slot; None if it has no table that is asked."""
    declared = {d.name.lower(): d for d in declarations}
    tables: dict[str, AccessTable] = {}
    for number, source in enumerate(query.sources):
        stream = source.stream
        if stream.is_asked:
            used = {*query.columns_of_source(number), *(c for method in stream.methods for c in method.columns)}
            used |= set(tables[stream.name].columns) if stream.name in tables else set()
            declaration = declared[stream.name.lower()]
            columns = [name for name in stream.schema.names if name in used] or stream.schema.names[:1]
            tables[stream.name] = open_table(declaration, pa.schema(declaration.columns), columns)
    if not tables:
        return None
    limits = {name: (table.options.ttl, table.options.cache_rows) for name, table in tables.items()}
    forgets = [name for name, limit in limits.items() if limit != (None, None)]
    for stream in (source.stream for source in query.sources):
        if stream.name in forgets and any(method.is_scan for method in stream.methods):
            raise SettingError(f"table {stream.name}: rows of a SCAN are kept; leave out ttl and cache_rows, or SCAN")

    def make() -> Lookups:
        from eddyline.runtime.access.asking import Asking

        return Asking(tables)

    return make
