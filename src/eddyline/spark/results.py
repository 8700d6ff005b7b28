"""Results as DataFrames of Spark: in types that Spark has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from eddyline.bound.as_text import as_text
from eddyline.bound.kept_types import as_kept, kept
from eddyline.bound.types import MONTHS, decode
from eddyline.runtime.running.schemas import schema_of, schema_text
from eddyline.runtime.staged_types import restored
from eddyline.spark.names import numbers

SparkFrame: TypeAlias = DataFrame
"""For the layers above, which do not import pyspark."""

_WIDER = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}


def spark_type(type_: pa.DataType) -> pa.DataType:
    """The type of a column in a DataFrame of Spark. Unsigned numbers get a wider type, times have microseconds, and
    intervals with months are text.

    >>> spark_type(pa.uint32()), spark_type(pa.timestamp("ns")), spark_type(pa.list_(pa.uint8()))
    (DataType(int64), TimestampType(timestamp[us]), ListType(list<item: int16>))
    """
    t, known = pa.types, kept(type_)
    if t.is_dictionary(known):
        return spark_type(known.value_type)
    if known in _WIDER:
        return _WIDER[known]
    if t.is_timestamp(known):
        return pa.timestamp("us", None if known.tz is None else "UTC")
    if t.is_struct(known):
        return pa.struct([field.with_type(spark_type(field.type)) for field in known])
    if t.is_map(known):
        return pa.map_(spark_type(known.key_type), spark_type(known.item_type))
    if t.is_list(known) or t.is_large_list(known) or t.is_fixed_size_list(known):
        return pa.list_(known.value_field.with_type(spark_type(known.value_type)))
    if t.is_decimal(known):
        return pa.decimal128(known.precision, known.scale)
    if t.is_time(known):
        return pa.time64("ns")  # the only one that Spark takes from tasks
    simple = {MONTHS: pa.string(), pa.float16(): pa.float32(), pa.date64(): pa.date32()}
    return pa.duration("us") if t.is_duration(known) else simple.get(known, known)


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of results in a DataFrame of Spark."""
    return pa.schema([pa.field(field.name, spark_type(field.type)) for field in schema])


def as_spark_has(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Results in the types of `spark_schema`; nanoseconds are rounded down."""
    schema = spark_schema(batch.schema)
    arrays = [_column(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if column.type == type_:
        return column
    if column.type == MONTHS:
        return as_text(column)
    if pa.types.is_timestamp(column.type):
        return decode(column).cast(type_)
    column = as_kept(column)
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return column.cast(type_, safe=False)


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A table as a DataFrame."""
    schema = spark_schema(table.schema)
    fitting = pa.Table.from_batches([as_spark_has(batch) for batch in table.to_batches()], schema)
    return spark.createDataFrame(fitting, from_arrow_schema(schema))


def reads_as_it_is(schema: pa.Schema) -> bool:
    """Whether Spark's own reader of parquet gives these columns in the types of `spark_schema`."""
    return all(
        spark_type(field.type) == field.type
        and not pa.types.is_nested(field.type)
        and not pa.types.is_duration(field.type)
        and not pa.types.is_time(field.type)
        and not pa.types.is_null(field.type)
        for field in schema
    )


def frame_of_files(spark: SparkSession, files: Sequence[str], schema: pa.Schema) -> DataFrame:
    """The rows of files of staged results (runtime/staged_types.py) as a DataFrame; tasks read them."""
    known, of = schema_text(schema), from_arrow_schema(spark_schema(schema))
    names = numbers(len(of))
    for field, name in zip(of, names, strict=True):
        field.name = name

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file in batch.column(0).to_pylist():
                for rows in restored(pq.read_table(file), schema_of(known)).to_batches():
                    yield as_spark_has(rows).rename_columns(names)

    paths = spark.createDataFrame([(file,) for file in files], "file string").repartition(len(files))
    return paths.mapInArrow(read, of).toDF(*schema.names)
