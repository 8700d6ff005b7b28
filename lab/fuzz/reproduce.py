"""A case as a Python file that runs it again and prints the difference. A failing fuzz run writes such files."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from eddyline.testing.case import Batch, Case, Rows, StreamDecl
from lab.fuzz.domains import make

_HEAD = '''"""{title}"""

import sys
from decimal import Decimal

import pyarrow as pa

from eddyline.testing.case import Batch, Case, FromPart, SelectParts, StreamDecl
from eddyline.testing.oracle import Oracle
from lab.fuzz.reproduce import rows_of
from lab.fuzz.run import check, expected_of, run

inf, nan = float("inf"), float("nan")
'''
_TAIL = """
if __name__ == "__main__":
    oracle = Oracle()
    wanted = expected_of(case, oracle)
    sys.stdout.write(case.script + "\\n\\n" + wanted.sql + "\\n\\nexpected:\\n" + str(wanted.table.to_pylist()) + "\\n")
    sys.stdout.write("engine:\\n" + str(run(case).table.to_pylist()) + "\\n")
    wrong = check(case, oracle)
    sys.stdout.write((wrong or "no difference") + "\\n")
    sys.exit(wrong is not None)
"""


def reproduce(case: Case, title: str = "A case for Eddyline.") -> str:
    """The text of a Python file that runs the case beside the oracle; its exit status is 1 if they differ."""
    lines = [_HEAD.format(title=title.replace('"""', "'''").replace("\\", "\\\\"))]
    names = {}
    for stream in case.streams:
        names[stream.name] = f"schema_{stream.name}"
        lines.append(f"{names[stream.name]} = {schema_text(stream.schema)}")

    def batch_text(rows: Rows) -> str:
        return "(" + "".join(f"({n!r}, {_rows_text(b, names[n])}), " for n, b in rows) + ")"

    lines.append("case = Case(")
    lines.append(
        "    streams=(" + "".join(f"\n        {_stream_text(s, names[s.name])}," for s in case.streams) + "\n    ),"
    )
    lines.append(f"    select={case.select!r},")
    lines.append(
        "    batches=(" + "".join(f"\n        {_batch_text(b, batch_text)}," for b in case.batches) + "\n    ),"
    )
    tables = "".join(f"\n        {n!r}: {_rows_text(b, names[n])}," for n, b in case.tables.items())
    lines.append("    tables={" + tables + "},")
    lines.append(f"    settings={dict(case.settings)!r},")
    lines.append(")")
    return "\n".join(lines) + "\n" + _TAIL


def rows_of(schema: pa.Schema, columns: list[list[object]]) -> pa.RecordBatch:
    """A record batch from plain values, as `reproduce` writes them: instants in microseconds, dates in days."""
    arrays = [make(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def schema_text(schema: pa.Schema) -> str:
    """A schema as Python source."""
    return "pa.schema([" + ", ".join(f"({f.name!r}, {type_text(f.type)})" for f in schema) + "])"


def type_text(type_: pa.DataType) -> str:
    """An Arrow type as Python source.

    >>> type_text(pa.dictionary(pa.int32(), pa.list_(pa.decimal128(9, 2))))
    'pa.dictionary(pa.int32(), pa.list_(pa.decimal128(9, 2)))'
    """
    if pa.types.is_dictionary(type_):
        return f"pa.dictionary({type_text(type_.index_type)}, {type_text(type_.value_type)})"
    if pa.types.is_timestamp(type_):
        return f"pa.timestamp({type_.unit!r}, {type_.tz!r})" if type_.tz else f"pa.timestamp({type_.unit!r})"
    if pa.types.is_decimal(type_):
        return f"pa.decimal128({type_.precision}, {type_.scale})"
    if pa.types.is_list(type_):
        return f"pa.list_({type_text(type_.value_type)})"
    if pa.types.is_struct(type_):
        return "pa.struct([" + ", ".join(f"({f.name!r}, {type_text(f.type)})" for f in type_) + "])"
    names = {"bool": "bool_", "float": "float32", "double": "float64", "date32[day]": "date32"}
    return f"pa.{names.get(str(type_), str(type_))}()"


def _stream_text(stream: StreamDecl, schema: str) -> str:
    return f"StreamDecl({stream.name!r}, {schema}, {stream.time!r}, {stream.lateness}, {stream.listed})"


def _batch_text(batch: Batch, text: Callable[[Rows], str]) -> str:
    undone = "" if batch.undone is None else f", undone={text(batch.undone)}"
    return f"Batch({text(batch.rows)}, {batch.ended!r}{undone})"


def _rows_text(batch: pa.RecordBatch, schema: str) -> str:
    return f"rows_of({schema}, [{', '.join(_column_text(c) for c in batch.columns)}])"


def _column_text(column: pa.Array) -> str:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    elif pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    return repr(column.to_pylist())
