"""The columns of a reader as the rows of a chunk, in the declared types; rows with an unreadable value are dead.

Shared by all readers: each passes the columns in the kind of its format, or values that are converted already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.as_text import as_text
from eddyline.bound.kept_types import as_kept
from eddyline.bound.nested import Bad, Result
from eddyline.bound.types import sql_type
from eddyline.runtime.sources.beside import Beside
from eddyline.runtime.sources.source import Chunk, Wanted, dead_rows
from eddyline.runtime.values.arrow import convert


@dataclass(frozen=True)
class Converted:
    """A column in its declared type. `bad` are the rows whose value could not be read; `texts` are the values of rows
    for people."""

    values: pa.Array
    bad: Bad | None
    texts: Callable[[NDArray[np.int64]], pa.Array]


def chunk_of(
    schema: pa.Schema,
    wanted: Wanted,
    raw: Mapping[str, pa.Array | Converted],
    rows: int,
    convert: Callable[[pa.Array, pa.DataType], Result] = convert,
    beside: Beside | None = None,
) -> Chunk:
    """The chunk of `raw` columns, one for each wanted one, in the format's own types. Columns in `beside` have their
    declared types already."""
    if beside is not None:
        raw = {**raw, **beside.columns}
    columns = {name: _converted(raw[name], schema.field(name).type, convert) for name in wanted.columns}
    bad = bad_rows(columns, wanted.needed, rows)
    fields = [pa.field(name, schema.field(name).type) for name in wanted.columns]
    batch = pa.RecordBatch.from_arrays([column.values for column in columns.values()], schema=pa.schema(fields))
    if bad is None:
        return Chunk(batch)
    texts, why = told(columns, schema, wanted.needed, bad)
    why = why if beside is None else beside.take(np.flatnonzero(bad)).told(why)
    return Chunk(batch.filter(pa.array(~bad)), dead_rows(schema, texts, why))


def bad_rows(columns: Mapping[str, Converted], needed: Iterable[str], rows: int) -> Bad | None:
    """The rows with a needed value that could not be read; None if there is none."""
    bad: Bad = np.zeros(rows, dtype=np.bool_)
    for name in needed:
        wrong = columns[name].bad
        if wrong is not None:
            bad |= wrong
    return bad if bad.any() else None


def told(
    columns: Mapping[str, Converted], schema: pa.Schema, needed: Iterable[str], bad: Bad
) -> tuple[pa.RecordBatch, pa.Array]:
    """These rows as text, and why each is dead."""
    picked = np.flatnonzero(bad)
    texts = pa.RecordBatch.from_pydict({name: column.texts(picked) for name, column in columns.items()})
    why = pa.nulls(len(picked), pa.string())
    for name in needed:
        if (wrong := columns[name].bad) is not None:
            why = pc.coalesce(why, _reasons(name, texts.column(name), schema.field(name).type, wrong[picked]))
    return texts, why


def _converted(
    raw: pa.Array | Converted, type_: pa.DataType, convert: Callable[[pa.Array, pa.DataType], Result]
) -> Converted:
    if isinstance(raw, Converted):
        return raw
    values, bad = (raw, None) if raw.type == type_ else convert(raw, type_)
    return Converted(values, bad, lambda rows: as_text(as_kept(raw).take(pa.array(rows))))


def _reasons(name: str, texts: pa.Array, type_: pa.DataType, bad: Bad) -> pa.Array:
    """The reasons of rows whose value of this column could not be read; NULL for the others."""
    before, after = f"column {name}: '", f"' is not a value of type {sql_type(type_)}"
    told = pc.binary_join_element_wise(before, texts, after, "")
    return pc.if_else(pa.array(bad), told, pa.scalar(None, pa.string()))
