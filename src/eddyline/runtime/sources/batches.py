"""Record batches from Python: an iterable of them, a table, a reader, or an object with Arrow's stream interface."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from eddyline.bound.kept_types import as_kept, kept
from eddyline.errors import JobError, SettingError, said, shown
from eddyline.runtime.sources.columns import chunk_of
from eddyline.runtime.sources.source import Chunk, Wanted

Batches: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable[pa.RecordBatch] | Any
"""The types that a program may give; Any stands for a DataFrame of pandas or polars and other objects with
`__arrow_c_stream__`."""

_PANDAS, _POLARS, _DUCKDB = "pandas.", "polars.", ("duckdb", "_duckdb")
_UNREADABLE = ("Object", "Int128", "UInt128")
"""Types of polars that Arrow does not have, as polars writes them."""
_COLUMN = re.compile(r"Conversion failed for column (.*) with type (.*)")


@runtime_checkable
class PandasFrame(Protocol):
    """The part of a pandas DataFrame that we use; pandas is not imported here."""

    index: Any
    columns: Any

    def reset_index(self, level: Any = None) -> Any: ...


@runtime_checkable
class HasArrowStream(Protocol):
    """An object with Arrow's stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class ArrowStream:
    """Wraps an object with Arrow's stream interface; each iteration reads it from its beginning."""

    def __init__(self, made_by: Any) -> None:
        self._made_by = made_by

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.reader())

    def reader(self) -> pa.RecordBatchReader:
        """A new reader of the batches, with their schema."""
        try:
            return pa.RecordBatchReader.from_stream(self._made_by)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise SettingError(f"{shown(self._made_by)} cannot be read as Arrow: {said(error)}") from None


def as_batches(given: Batches) -> pa.Table | pa.RecordBatch | ArrowStream | Iterable[pa.RecordBatch]:
    """Rows given by a program, as batches; SettingError if the object is of no supported kind."""
    if isinstance(given, pa.Table | pa.RecordBatch | list | tuple | Iterator):
        return given
    module = type(given).__module__
    if module.startswith(_PANDAS) and isinstance(given, PandasFrame):
        return _of_pandas(given)
    if module.startswith(_POLARS):
        _check_polars(given)
    if isinstance(given, HasArrowStream):
        # Relations of one connection cannot be read side by side, so each is read here.
        return ArrowStream(given).reader().read_all() if module.startswith(_DUCKDB) else ArrowStream(given)
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | dict) or module.startswith(_PANDAS):
        raise SettingError(
            "a stream or a table is a pyarrow table, a DataFrame of pandas, polars or Spark, a relation of DuckDB, or"
            f" an iterable of pyarrow record batches, not {shown(given)}"
        )
    return given


def _of_pandas(frame: Any) -> pa.Table:
    """A pandas DataFrame as a table: its columns, and the levels of its index that have names."""
    named = [name for name in frame.index.names if name is not None]
    try:
        frame = frame.reset_index(named) if named else frame
        for at, type_ in enumerate(frame.dtypes):
            if str(type_).startswith("period["):
                raise SettingError(f"column {frame.columns[at]} has periods; use its .dt.to_timestamp()")
        _check_names([str(name) for name in frame.columns])
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError) as error:
        for found in (_COLUMN.fullmatch(str(arg)) for arg in error.args):
            if found is not None:
                raise SettingError(
                    f"column {found[1]} of the DataFrame of pandas, with values of type {found[2]}, cannot be read as"
                    f" Arrow: {error.args[0]}"
                ) from None
        raise SettingError(f"the DataFrame of pandas cannot be read as Arrow: {said(error)}") from None


def _check_polars(given: Any) -> None:
    """SettingError for a frame of polars that has no rows yet, or columns that Arrow cannot have."""
    if type(given).__name__ == "LazyFrame":
        raise SettingError("a LazyFrame of polars has no rows yet; use its .collect()")
    for name, type_ in getattr(given, "schema", {}).items():
        if str(type_) in _UNREADABLE:
            raise SettingError(f"column {name} of the DataFrame of polars has type {type_}, which Arrow has not")


def _check_names(names: Sequence[str]) -> None:
    """SettingError if two columns have the same name."""
    for at, name in enumerate(names):
        if name in names[:at]:
            raise SettingError(f"there are two columns {name}; give one of them another name")


class BatchSource:
    """A source of record batches. An iterable is read lazily, once; only its first batch is read when the source is
    made, for its schema."""

    endless = False

    def __init__(self, batches: Batches, schema: pa.Schema | None = None) -> None:
        batches = as_batches(batches)
        if isinstance(batches, pa.RecordBatch):
            batches = pa.Table.from_batches([batches])
        if isinstance(batches, ArrowStream):
            batches = batches.reader()
        known = getattr(batches, "schema", None)
        if schema is None and isinstance(known, pa.Schema):
            schema = known
        if isinstance(batches, pa.Table):
            self._batches: Iterator[pa.RecordBatch] = iter(batches.to_batches(65536))
        else:
            self._batches = iter(batches)
        if schema is None:
            first = next(self._batches, None)
            if first is None:
                raise SettingError("a stream without batches needs its columns: el.stream(..., schema=pa.schema(...))")
            if not isinstance(first, pa.RecordBatch):
                raise SettingError(f"a stream yields pyarrow record batches, not {type(first).__name__}")
            schema = first.schema
            self._batches = itertools.chain([first], self._batches)
        _check_names(schema.names)
        for field in schema:
            if _has_union(field.type):
                raise SettingError(f"column {field.name} has type {field.type}, which a query cannot read")
        self.schema = pa.schema([pa.field(field.name, kept(field.type)) for field in schema])

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        """The batches, each with the wanted columns in the types of the schema."""
        for batch in self.raw(wanted):
            yield chunk_of_batch(self.schema, wanted, batch)

    def raw(self, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """The batches, each with the wanted columns in the batch's own types, laid out as the engine keeps them."""
        for batch in self._batches:
            if not isinstance(batch, pa.RecordBatch):
                raise JobError(f"a stream yields pyarrow record batches, not {type(batch).__name__}")
            missing = [name for name in wanted.columns if name not in batch.schema.names]
            if missing:
                raise JobError(f"a batch has no column {missing[0]}; it has {', '.join(batch.schema.names)}")
            arrays = [as_kept(batch.column(name)) for name in wanted.columns]
            yield pa.RecordBatch.from_arrays(arrays, list(wanted.columns))


def chunk_of_batch(schema: pa.Schema, wanted: Wanted, batch: pa.RecordBatch) -> Chunk:
    """A batch with the wanted columns, in the types of the schema."""
    return chunk_of(schema, wanted, dict(zip(wanted.columns, batch.columns, strict=True)), batch.num_rows)


def _has_union(type_: pa.DataType) -> bool:
    """Whether there is a union in a type."""
    if isinstance(type_, pa.BaseExtensionType):
        return _has_union(type_.storage_type)
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return _has_union(type_.value_type)
    inner = [type_.field(at).type for at in range(type_.num_fields)] if pa.types.is_nested(type_) else []
    return bool(pa.types.is_union(type_)) or any(map(_has_union, inner))
