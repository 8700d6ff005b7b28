"""Rows as Avro records without a header, each a message of its own: readers must know the schema.

The schema follows from the columns: a record `row` with a nullable field for each column. fastavro writes the records.
"""

from __future__ import annotations

import io
import re
from typing import Any

import pyarrow as pa

from eddyline.bound.nested import is_alike, rebuilt
from eddyline.bound.types import decode, sql_type
from eddyline.errors import SettingError
from eddyline.extras import install

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MICROS = {"tz": "timestamp-micros", "": "local-timestamp-micros"}


def record_schema(schema: pa.Schema) -> dict[str, Any]:
    """The Avro schema of rows; SettingError for a column that Avro cannot hold, or if fastavro is missing."""
    try:
        import fastavro
        from fastavro.schema import SchemaParseException
    except ModuleNotFoundError as error:
        raise SettingError(f"avro needs fastavro ({error}); type: {install('kafka')}") from None
    try:
        parsed: Any = fastavro.parse_schema(_record("row", list(schema)))
    except SchemaParseException as error:  # two records of one name, for example
        raise SettingError(
            f"avro cannot hold these columns ({error}); give one of them another name with AS, or another type"
        ) from None
    return dict(parsed)


def records(batch: pa.RecordBatch, schema: Any) -> list[bytes]:
    """One record for each row, as bytes."""
    import fastavro

    found, out = [], io.BytesIO()
    numbered = pa.record_batch([_numbered(column) for column in batch.columns], batch.schema.names)
    for row in numbered.to_pylist():
        out.seek(0)
        out.truncate()
        filled = {field.name: _filled(row[field.name], field.type) for field in numbered.schema}
        fastavro.schemaless_writer(out, schema, filled)
        found.append(out.getvalue())
    return found


def _numbered(column: pa.Array) -> pa.Array:
    """Dates and times as the numbers that Avro writes: Python has none before the year 1 or after 9999."""
    return rebuilt(column, _number(column.type), _as_numbers)[0]


def _number(type_: pa.DataType) -> pa.DataType:
    t = pa.types
    if t.is_dictionary(type_):
        return _number(type_.value_type)
    if t.is_struct(type_):
        return pa.struct([pa.field(f.name, _number(f.type)) for f in type_])
    if t.is_map(type_):
        return pa.map_(_number(type_.key_type), _number(type_.item_type))
    if t.is_list(type_) or t.is_large_list(type_):
        return pa.list_(_number(type_.value_type))
    return pa.int32() if t.is_date(type_) else pa.int64() if t.is_timestamp(type_) else type_


def _as_numbers(values: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, None]:
    if is_alike(values.type, wanted):
        return rebuilt(values, wanted, _as_numbers)[0], None
    if pa.types.is_dictionary(values.type):
        return _as_numbers(values.dictionary_decode(), wanted)
    if pa.types.is_date(values.type):
        return values.cast(pa.date32()).cast(pa.int32()), None
    return (decode(values).cast(pa.int64()) if pa.types.is_timestamp(values.type) else values), None


def _filled(value: Any, type_: pa.DataType) -> Any:
    """Maps of Arrow are lists of pairs; fastavro wants dictionaries."""
    if value is None:
        return None
    if pa.types.is_map(type_):
        return {key: _filled(item, type_.item_type) for key, item in value}
    if pa.types.is_struct(type_):
        return {field.name: _filled(value[field.name], field.type) for field in type_}
    return [_filled(item, type_.value_type) for item in value] if isinstance(value, list) else value


def _record(name: str, fields: list[pa.Field]) -> dict[str, Any]:
    made = []
    for field in fields:
        if not _NAME.fullmatch(field.name):
            raise SettingError(f'avro has no field named "{field.name}"; give the column another name with AS')
        made.append({"name": field.name, "type": ["null", _type(field.type, f"{name}_{field.name}")], "default": None})
    return {"type": "record", "name": name, "fields": made}


def _type(type_: pa.DataType, name: str) -> Any:
    t = pa.types
    if t.is_dictionary(type_):
        return _type(type_.value_type, name)
    if t.is_boolean(type_):
        return "boolean"
    if t.is_integer(type_) and type_ != pa.uint64():
        return "int" if type_.bit_width <= 16 or type_ == pa.int32() else "long"
    if t.is_floating(type_):
        return "double" if type_ == pa.float64() else "float"
    if t.is_string(type_) or t.is_large_string(type_):
        return "string"
    if t.is_binary(type_) or t.is_large_binary(type_) or t.is_fixed_size_binary(type_):
        return "bytes"
    if t.is_date(type_):
        return {"type": "int", "logicalType": "date"}
    if t.is_timestamp(type_):
        return {"type": "long", "logicalType": _MICROS["tz" if type_.tz else ""]}
    if t.is_decimal(type_):
        return {"type": "bytes", "logicalType": "decimal", "precision": type_.precision, "scale": type_.scale}
    if t.is_struct(type_):
        return _record(name, [type_.field(i) for i in range(type_.num_fields)])
    if t.is_list(type_) or t.is_large_list(type_):
        return {"type": "array", "items": ["null", _type(type_.value_type, name)]}
    if t.is_map(type_) and t.is_string(type_.key_type):
        return {"type": "map", "values": ["null", _type(type_.item_type, name)]}
    raise SettingError(f"avro cannot hold a column of type {sql_type(type_)}; use json")
