"""Columns of results as tables of other systems can hold them.

A column becomes a type with the same values: no unsigned integers (the next larger type), times in microseconds, plain
strings. A column for whose values a system has no type is refused before the first row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from eddyline.bound.types import sql_type
from eddyline.cql.names import did_you_mean
from eddyline.errors import SettingError
from eddyline.runtime.values.arrow import convert

_WIDER = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}
_BYTE = pa.int8()
_T = pa.types
_SAME: tuple[Callable[[pa.DataType], bool], ...] = (
    *(_T.is_signed_integer, _T.is_float32, _T.is_float64, _T.is_boolean, _T.is_decimal32, _T.is_decimal64),
    *(_T.is_decimal128, _T.is_date32, _T.is_string, _T.is_binary),
)
_TEXTS = (_T.is_large_string, _T.is_string_view)
_BYTES = (_T.is_large_binary, _T.is_binary_view, _T.is_fixed_size_binary)
_INTERVALS = (_T.is_duration, _T.is_interval)
_LISTS = (_T.is_list, _T.is_large_list, _T.is_fixed_size_list, _T.is_list_view, _T.is_large_list_view)


@dataclass(frozen=True)
class TableTypes:
    """The types that the tables of one system can hold, beside those that all can hold."""

    system: str
    """Its name in messages."""
    times: bool = False
    """Whether there are times of day."""
    intervals: bool = False
    """Whether there are lengths of time."""
    smallest: pa.DataType = _BYTE
    """The smallest integer."""

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of a table for results with this schema; SettingError for a column that it cannot hold."""
        return pa.schema([pa.field(field.name, self._type(field.type, field.name)) for field in schema])

    def matched(self, table: str, mine: pa.Schema, there: pa.Schema, merge: bool) -> pa.Schema:
        """The columns of results with the types of a table that has the columns `there`. SettingError if the table has
        other columns, unless they are merged, or a type that cannot hold the values."""
        spelled = {name.lower(): name for name in there.names}
        columns = []
        for field in mine:
            if field.name not in there.names:
                if field.name.lower() in spelled:
                    raise SettingError(f"{table} has a column {spelled[field.name.lower()]}, not {field.name}")
                if not merge:
                    raise SettingError(
                        f"{table} has no column {field.name}; schema_evolution 'merge' adds it to the table"
                    )
                columns.append(field)
                continue
            type_ = self._type(there.field(field.name).type, field.name)
            if not widens(field.type, type_):
                wanted, has = map(sql_type, (type_, field.type))
                raise SettingError(f"column {field.name} is {wanted} in {table}, and {has} in the results")
            columns.append(pa.field(field.name, type_))
        missing = [name for name in there.names if name not in mine.names]
        if missing and not merge:
            raise SettingError(
                f"{table} has a column {missing[0]}, which the results lack; schema_evolution 'merge' leaves it NULL"
            )
        return pa.schema(columns)

    def _type(self, type_: pa.DataType, column: str) -> pa.DataType:
        nested = partial(self._type, column=column)
        if _T.is_dictionary(type_):
            return nested(type_.value_type)
        if type_ in _WIDER:
            return nested(_WIDER[type_])
        if _T.is_signed_integer(type_):
            return max(type_, self.smallest, key=lambda t: t.bit_width)
        if _T.is_timestamp(type_):
            return pa.timestamp("us", None if type_.tz is None else "UTC")
        if any(matches(type_) for matches in _SAME):
            return type_
        if _T.is_float16(type_):
            return pa.float32()
        if _T.is_date64(type_):
            return pa.date32()
        if any(matches(type_) for matches in _TEXTS):
            return pa.string()
        if any(matches(type_) for matches in _BYTES):
            return pa.binary()
        if _T.is_time(type_) and self.times:
            return pa.time64("us")
        if any(matches(type_) for matches in _INTERVALS) and self.intervals:
            return type_
        if any(matches(type_) for matches in _LISTS):
            return pa.list_(nested(type_.value_type))
        if _T.is_struct(type_):
            return pa.struct([pa.field(field.name, nested(field.type)) for field in type_])
        if _T.is_map(type_):
            return pa.map_(nested(type_.key_type), nested(type_.item_type))
        if _T.is_null(type_):
            raise SettingError(f"column {column} is always NULL and has no type; write CAST(NULL AS VARCHAR), say")
        raise SettingError(
            f"{self.system} cannot hold a column of type {sql_type(type_)}, as {column} is; write it as text with"
            f" CAST(... AS VARCHAR), or as a number"
        )


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with the columns of a table, in its order. Nanoseconds are rounded towards the past; any other loss is an
    ArrowInvalid."""
    columns = []
    for field in schema:
        column, bad = convert(batch.column(field.name), field.type)
        if bad is not None:
            raise pa.ArrowInvalid(f"column {field.name} has a value that is no {sql_type(field.type)}")
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def column_of(name: str, schema: pa.Schema) -> str:
    """The column of PARTITION BY, as the results spell it; SettingError if there is none."""
    for column in schema.names:
        if column.lower() == name.lower():
            return str(column)
    if not schema.names:
        return name  # only Spark will know the columns
    raise SettingError(f"PARTITION BY {name}: there is no such column{did_you_mean(name, schema.names)}")


def check_partitions(table: str, wanted: Sequence[str], there: Sequence[str]) -> None:
    """SettingError if PARTITION BY names other columns than those by which the table has its files."""
    if wanted and list(wanted) != list(there):
        by = f"PARTITION BY {', '.join(there)}" if there else "no PARTITION BY"
        raise SettingError(f"{table} has {by}; write the same")


def check_divisible(
    table: str, columns: Sequence[str], schema: pa.Schema, wrong: Callable[[pa.DataType], bool]
) -> None:
    """SettingError for a column whose type is wrong for PARTITION BY."""
    for name in columns:
        if name in schema.names and wrong(type_ := schema.field(name).type):
            raise SettingError(
                f"{table} cannot be divided by a column of type {sql_type(type_)}, as {name} is;"
                " divide it by a number of whole units, or by text"
            )


def widens(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Whether a column of one type holds all values of another.

    >>> widens(pa.int32(), pa.int64()), widens(pa.int64(), pa.int32()), widens(pa.int64(), pa.string())
    (True, False, False)
    """
    if _T.is_signed_integer(narrow) and _T.is_signed_integer(wide):
        return bool(narrow.bit_width <= wide.bit_width)
    if _T.is_floating(narrow) and _T.is_floating(wide):
        return bool(narrow.bit_width <= wide.bit_width)
    if _T.is_decimal(narrow) and _T.is_decimal(wide):
        return bool(narrow.scale <= wide.scale and narrow.precision - narrow.scale <= wide.precision - wide.scale)
    return bool(narrow.equals(wide))
