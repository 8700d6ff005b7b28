"""Keys that are asked and not answered move forward when the preference changes, or when everything is asked again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from eddyline.engine.lookups.index import keys_of
from eddyline.engine.lookups.look_up import Request
from eddyline.engine.lookups.table import KnownTable
from eddyline.engine.preferred_rows import PreferredRows
from eddyline.plan.bindings import IndexBinding
from eddyline.routing.asker import Gather
from eddyline.routing.packet import Packet, in_parts, started
from eddyline.state.key_map import distinct
from eddyline.state.stem import SteM


def ranked_again(
    preferred: PreferredRows,
    ways: Sequence[IndexBinding],
    tables: Mapping[int, KnownTable],
    stems: Sequence[SteM],
    gather: Gather,
) -> Iterator[Request]:
    """Requests for the keys that preferred rows ask for, among those that are asked. `ways` are all ways to ask;
    `tables` and `stems` are by source. A key that only tuples of several sources ask for stays in its place."""
    for way in ways:
        table = tables[way.table]
        asked = table.indexes[way.method].asked
        if not asked or way.needs.bit_count() != 1:
            continue
        source = way.needs.bit_length() - 1
        rows = started(source, stems[source].rows.min_live, stems[source].built, 0)
        for keys in _first(preferred, way, rows, gather) if rows.size else ():
            keys = asked.among(distinct(keys))
            if keys.num_rows:
                yield Request(table.stream.name, way.method, keys, preferred.rank)


def _first(preferred: PreferredRows, way: IndexBinding, rows: Packet, gather: Gather) -> Iterator[pa.RecordBatch]:
    """The keys that the preferred ones of these rows ask for."""
    for rank, some in preferred.ranked(rows, gather):
        for keys, _ in in_parts(some, lambda some: keys_of(way, some, gather)) if rank else ():
            yield keys
