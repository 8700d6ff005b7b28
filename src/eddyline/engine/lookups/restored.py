"""What a checkpoint has of the tables that are asked: answers are in the log, the rest is in the small state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from eddyline.engine.lookups.answers import Known, NewRows
from eddyline.engine.lookups.logged_answers import by_mark, keys_section, rows_section, without_slot
from eddyline.engine.lookups.table import KnownTable
from eddyline.plan.bounds import FOREVER

Batches = Sequence[tuple[str, pa.RecordBatch]]
"""Sections of the small state."""


def loaded(
    known: Known, tables: Mapping[str, KnownTable], batch: int, sections: Mapping[str, Sequence[pa.RecordBatch]]
) -> Iterator[tuple[str, NewRows]]:
    """Take what the log has of the answers that a slot got in a batch, unless they are forgotten; the rows by table."""
    for name, table in tables.items():
        if batch < known.forgotten.get(name, 0):
            continue
        for method, index in table.indexes.items():
            for keys in sections.get(keys_section(name, method), ()):
                index.cover(without_slot(keys))
        for mark, rows in (part for some in sections.get(rows_section(name), ()) for part in by_mark(some)):
            yield name, NewRows(rows, FOREVER, mark)
            if table.scan is not None and name not in known.complete:
                table.load(rows)


def small_state(known: Known, tables: Mapping[str, KnownTable]) -> list[tuple[str, pa.RecordBatch]]:
    """What cannot be rebuilt from rows: the keys that are asked, which scans have begun or ended, and which answers are
    forgotten."""
    found = known.small_state()
    for name, table in tables.items():
        for method, index in table.indexes.items():
            if (saved := index.asked.saved()).num_rows:
                found.append((keys_section(name, method), saved))
        if name in known.seeded:
            found.append((rows_section(name), pa.record_batch({"ended": [name in known.complete]})))
    return found


def restore_small_state(known: Known, tables: Mapping[str, KnownTable], batches: Batches) -> None:
    """Restore from the small state of a slot."""
    known.restore_small_state(batches)
    for name, table in tables.items():
        for section, batch in batches:
            if section == rows_section(name):
                known.seeded.add(name)
                if batch.column("ended")[0].as_py():
                    known.complete.add(name)
        for method, index in table.indexes.items():
            for section, batch in batches:
                if section == keys_section(name, method) and name not in known.complete:
                    index.asked.merge(batch)
