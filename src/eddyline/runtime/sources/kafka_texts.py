"""The values of messages in JSON and csv: many messages are parsed at once, without a Python object for a value.

One message is one row, so a row must never be taken for that of another message. Messages that could be none or several
rows to Arrow (blank ones, and texts that do not begin and end as an object does) are therefore read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from eddyline.runtime.sources.beside import Beside
from eddyline.runtime.sources.columns import chunk_of
from eddyline.runtime.sources.csv_text import CsvOptions
from eddyline.runtime.sources.json_text import JsonText
from eddyline.runtime.sources.kafka_values import ValueReader, dead_messages, of_value
from eddyline.runtime.sources.source import Chunk, Wanted
from eddyline.runtime.values.text import cast_or_null

_SMALL = 16
_FIRST, _LAST = itemgetter(0), itemgetter(-1)


def json_values(schema: pa.Schema) -> ValueReader:
    """Reads values that are JSON objects."""
    text = JsonText(schema)

    def read(values: Sequence[bytes], wanted: Wanted, beside: Beside) -> Iterator[Chunk]:
        if len(values) == 1 or _are_objects(values):
            yield from text.chunks(values, wanted, beside)
            return
        plain = np.array([value[:1] == b"{" and value[-1:] == b"}" for value in values])
        stripped = [value.strip() for value in values]
        objects = np.array([value[:1] == b"{" and value[-1:] == b"}" for value in stripped]) | plain
        for rows in (np.flatnonzero(objects), *np.flatnonzero(~objects).reshape(-1, 1)):
            if len(rows):
                yield from text.chunks([stripped[row] or b" " for row in rows], wanted, beside.take(rows))

    return read


def _are_objects(values: Sequence[bytes]) -> bool:
    """Whether all texts begin and end as an object does; a compiled loop for many texts."""
    return all(values) and set(map(_FIRST, values)) == {ord("{")} and set(map(_LAST, values)) == {ord("}")}


def csv_values(layout: CsvOptions, schema: pa.Schema) -> ValueReader:
    """Reads values that are one row of csv each, with the columns in the order of the schema."""
    names = of_value(schema)

    def read(values: Sequence[bytes], wanted: Wanted, beside: Beside) -> Iterator[Chunk]:
        clean = b"" not in values and not any(b"\n" in value or b"\r" in value for value in values)
        table = _parsed(layout, values, names) if clean or len(values) == 1 else None
        if table is not None and table.num_rows == len(values):
            yield from _text_chunks(schema, wanted, {n: table.column(n).combine_chunks() for n in names}, beside)
        elif len(values) == 1:
            columns = f"{len(names)} column{'s' if len(names) != 1 else ''}"
            text = values[0].decode("utf-8", errors="replace")
            yield dead_messages(schema, wanted, [f"not one row of csv with {columns}: {text}"], beside)
        else:
            half = len(values) // 2 if len(values) > _SMALL else 1
            yield from read(values[:half], wanted, beside.slice(0, half))
            yield from read(values[half:], wanted, beside.slice(half, len(values) - half))

    return read


def _parsed(layout: CsvOptions, values: Sequence[bytes], names: list[str]) -> pa.Table | None:
    """The columns as bytes; None if Arrow refuses the text."""
    text = b"\n".join(values) + b"\n"
    if len(values) == 1 and layout.first_row(text) != len(text) and not layout.multi_line:
        return None  # a quote that is not closed, or several rows
    convert = pcsv.ConvertOptions(
        check_utf8=False,
        column_types=dict.fromkeys(names, pa.binary()),
        null_values=layout.null_values,
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    reading = pcsv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names)
    try:
        table = pcsv.read_csv(pa.BufferReader(text), reading, layout.parse_options(), convert)
    except pa.ArrowException:
        return None
    return table if layout.is_sound(text, table.num_rows) else None


def _text_chunks(schema: pa.Schema, wanted: Wanted, columns: Mapping[str, pa.Array], beside: Beside) -> Iterator[Chunk]:
    """The columns of bytes as text; rows that are not UTF-8 are dead."""
    rows = len(beside.rows)
    raw, broken = dict[str, pa.Array](), np.zeros(rows, np.bool_)
    for name in (name for name in wanted.columns if name in columns):
        raw[name], bad = cast_or_null(lambda part: part.cast(pa.string()), columns[name])
        if bad is not None and name in wanted.needed:
            broken |= bad
    if broken.any():
        dead, good = np.flatnonzero(broken), np.flatnonzero(~broken)
        yield dead_messages(schema, wanted, ["not text in UTF-8"] * len(dead), beside.take(dead))
        raw = {name: values.take(pa.array(good)) for name, values in raw.items()}
        beside, rows = beside.take(good), len(good)
    yield chunk_of(schema, wanted, raw, rows, beside=beside)
