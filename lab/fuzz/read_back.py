"""Results of a job compared with what they should be: as they come, and read back from a sink by another reader."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import eddyline as el
from eddyline.bound.types import is_list
from eddyline.errors import EddylineError, InternalError
from lab.fuzz.file_values import PLAIN
from lab.fuzz.value_law import held_in, of_text, of_value, same

Wrong = Callable[[str], None]
"""Takes what is wrong."""


def compare(good: dict[int, list[Any]], names: list[str], found: pa.Table, wrong: Wrong, where: str) -> None:
    """Rows by number, and those that came."""
    keys = found.column("k").to_pylist()
    if sorted(keys) != sorted(good):
        wrong(f"{where}rows {sorted(set(good) ^ set(keys))} are dead or not, and should not be")
        return
    for at, name in enumerate(names):
        for k, value in zip(keys, held_in(found.column(name).combine_chunks()), strict=True):
            if not same(value, good[k][at]):
                wrong(
                    f"{where}row {k}, column {name} {found.schema.field(name).type}: {good[k][at]!r}, found {value!r}"
                )
                return


def through_sink(sink: str, out: Path, rows: pa.Table, wrong: Wrong) -> None:
    """Rows written by a sink of files, and read back by another reader."""
    script = f"CREATE SINK o USING {sink} OPTIONS (path '{out}'); INSERT INTO o SELECT * FROM t"
    try:
        el.query(script, streams={"t": el.stream(rows, time="ts")}).start().wait()
    except InternalError as error:
        wrong(f"{sink}: internal error: {error}")
        return
    except EddylineError as error:
        if "cannot hold" not in str(error):
            wrong(f"{sink} refused: {error}")
        return
    (file,) = out.glob("part-*")
    if sink == "parquet":
        back = pq.read_table(file)  # with times in another unit, perhaps
        types = [(rows.schema.field(name).type, back.schema.field(name).type) for name in rows.schema.names]
        held = {
            k: [v if t.equals(u) else of_value(v, t, u) for v, (t, u) in zip(row, types, strict=True)]
            for k, row in _held(rows).items()
        }
        compare(held, rows.schema.names, back, wrong, "parquet sink: ")
    elif sink == "json":
        for row in map(_parsed, file.read_text("utf-8").splitlines()):
            _compare_json(row, rows, wrong)
    else:
        _compare_csv(file, rows, wrong)


def _parsed(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line, parse_float=Decimal)
    return found


def _held(rows: pa.Table) -> dict[int, list[Any]]:
    columns = [held_in(rows.column(name).combine_chunks()) for name in rows.schema.names]
    return {k: [column[at] for column in columns] for at, k in enumerate(rows.column("k").to_pylist())}


def _compare_json(row: dict[str, Any], rows: pa.Table, wrong: Wrong) -> None:
    expected = _held(rows)[row["k"]]
    for name, value in zip(rows.schema.names, expected, strict=True):
        type_ = rows.schema.field(name).type
        if not _is_in_json(row[name], value, type_):
            wrong(f"json sink: row {row['k']}, column {name} {type_}: {value!r}, found {row[name]!r}")


def _is_in_json(found: Any, value: Any, type_: pa.DataType) -> bool:
    """Whether what a line has is this value."""
    t = pa.types
    type_ = type_.value_type if t.is_dictionary(type_) else type_
    if value is None or found is None:
        return value is found
    if is_list(type_):
        return len(found) == len(value) and all(
            _is_in_json(f, v, type_.value_type) for f, v in zip(found, value, strict=True)
        )
    if t.is_map(type_):
        return bool(found.keys() == value.keys()) and all(
            _is_in_json(found[n], value[n], type_.item_type) for n in value
        )
    if t.is_struct(type_):
        return all(_is_in_json(found[field.name], value[field.name], field.type) for field in type_)
    if t.is_binary(type_) or t.is_large_binary(type_):
        return same(base64.b64decode(found), value)
    if t.is_floating(type_):
        held = float(found)
        return same(float(np.float32(held)) if t.is_float32(type_) else held, value)
    if t.is_date(type_) or t.is_timestamp(type_):
        text = str(found)
        return len(text.split("-")[0]) != 4 or "BC" in text or same(of_text(text, type_), value)
    return bool(found == value)


def _compare_csv(file: Path, rows: pa.Table, wrong: Wrong) -> None:
    known = {v: k for k, v in PLAIN.items() if k not in ("BLOB", "TIMESTAMP_MS", "TIMESTAMP_NS", "FLOAT")}
    types = {name: known.get(rows.schema.field(name).type, "VARCHAR") for name in rows.schema.names}
    times = [field.name for field in rows.schema if pa.types.is_date(field.type) or pa.types.is_timestamp(field.type)]
    types.update(dict.fromkeys(times, "VARCHAR"))
    columns = ", ".join(f"'{name}': '{type_}'" for name, type_ in types.items())
    with duckdb.connect() as connection:
        layout = "header=true, delim=',', quote='\"', escape='\"', auto_detect=false, allow_quoted_nulls=false"
        read = f"FROM read_csv('{file}', columns={{{columns}}}, {layout})"
        back = connection.sql(read).to_arrow_table()
    expected = _held(rows)
    for row in back.to_pylist():
        for at, name in enumerate(rows.schema.names):
            type_, value = rows.schema.field(name).type, expected[row["k"]][at]
            type_ = type_.value_type if pa.types.is_dictionary(type_) else type_
            found = row[name]
            is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_)
            if types[name] == "VARCHAR" and not is_text and found is not None:
                far = name in times and (len(found.split("-")[0]) != 4 or "BC" in found)
                found = value if far else of_text(found, type_)
            if not same(found, value):
                wrong(f"csv sink: row {row['k']}, column {name} {type_}: {value!r}, found {row[name]!r}")
