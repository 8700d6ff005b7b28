"""The types of columns that are not declared, from the first block of a file of csv or json.

Formats infer times differently, so these columns are read again as text, and one rule decides their types. If one value
makes a column of numbers or times text, the field says which (bound/inferred_text.py).
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound.inferred_text import TextNote, noted
from eddyline.bound.time_format import formats_of
from eddyline.bound.types import sql_type
from eddyline.runtime.values.text import cast_text, has_zone

_ZONED = pa.timestamp("us", "UTC")
_LIKELY = (pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us"))
_DIGIT_FIRST = r"^\s*[-+.]?[0-9]"


def inferred(
    table: pa.Table, as_texts: Callable[[list[str]], pa.Table], where: Callable[[int], str], csv: bool
) -> pa.Schema:
    """The schema of a first block: numbers, booleans and nested values as the format inferred them. `as_texts` reads
    the block again with these columns as text; `where` is the place of a row in the file."""
    times = [field.name for field in table.schema if pa.types.is_temporal(field.type)]
    texts = as_texts(times) if times else table
    fields = []
    for field in table.schema:
        if field.name in times or pa.types.is_string(field.type):
            fields.append(_of_texts(field.name, texts.column(field.name).combine_chunks(), where, csv))
        else:
            fields.append(pa.field(field.name, pa.string() if pa.types.is_null(field.type) else field.type))
    return pa.schema(fields)


def _of_texts(name: str, texts: pa.Array, where: Callable[[int], str], csv: bool) -> pa.Field:
    """The field of a column of texts: days, timestamps with a zone (if at least one has a zone), timestamps without, or
    just text."""
    given = texts.drop_null()
    for type_ in (pa.date32(), pa.timestamp("us")):
        if len(given) and cast_text(given, type_)[1] is None:
            return pa.field(name, _ZONED if type_ != pa.date32() and has_zone(given) else type_)
    field = pa.field(name, pa.string())
    if odd := _odd_one(texts):
        type_, row = odd
        return noted(field, TextNote(sql_type(type_), texts[row].as_py(), where(row), csv))
    formats = formats_of(given)
    return noted(field, TextNote(csv=csv, formats=formats)) if formats else field


def _odd_one(texts: pa.Array) -> tuple[pa.DataType, int] | None:
    """The type of most of these texts, and the first row of another type; None if most are just text."""
    known = len(texts) - texts.null_count
    digits = pc.sum(pc.match_substring_regex(texts, _DIGIT_FIRST)).as_py() or 0
    if 2 * digits < known or not known:
        return None
    masks = [(type_, cast_text(texts, type_)[1]) for type_ in _LIKELY]
    type_, bad = min(((type_, bad) for type_, bad in masks if bad is not None), key=lambda found: found[1].sum())
    if 2 * bad.sum() > known:
        return None
    return _ZONED if type_ == pa.timestamp("us") and has_zone(texts) else type_, int(bad.argmax())
