"""Columns of Arrow as the declared types, where a value that the type cannot hold is refused with its own row only.

A cast is exact: 1.0 is the BIGINT 1, and 1.5 is none. Three things are rounded. A number becomes the nearest DOUBLE or
FLOAT, of two the even one. A float becomes the DECIMAL that its shortest text writes. A time in nanoseconds is rounded
towards the past, because the engine knows microseconds. Numbers are no times, and times no numbers: such a column is
refused whole.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound.as_text import as_text
from eddyline.bound.functions.writing import writer
from eddyline.bound.kept_types import as_kept
from eddyline.bound.nested import Bad, Result, is_alike, rebuilt
from eddyline.bound.types import MONTHS, STRING, decode, floored, is_moment, is_zoned, physical, sql_type
from eddyline.runtime.staged_types import months
from eddyline.runtime.values.text import cast_or_null, cast_text

FromText = Callable[[pa.Array, pa.DataType], Result]


def convert(values: pa.Array, type_: pa.DataType, from_text: FromText = cast_text) -> Result:
    """An array as `type_`, NULL where a value does not fit, and the mask of those rows (None: all fit). Strings are
    read by `from_text`. ArrowNotImplementedError if no value of the array's type can be one of `type_`.

    >>> convert(pa.array([[1.0], [1.5], None]), pa.list_(pa.int64()))[1]
    array([False,  True, False])
    """
    if values.type == type_:
        return values, None
    if pa.types.is_dictionary(type_):
        plain, bad = convert(values, type_.value_type, from_text)
        return pc.cast(plain.dictionary_encode(), type_), bad
    values = as_kept(values)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.type == type_:
        return values, None
    if is_alike(values.type, type_):
        return rebuilt(values, type_, lambda inner, wanted: convert(inner, wanted, from_text))
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return from_text(values, type_)
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), type_), None
    return _plain(values, type_)


def _plain(values: pa.Array, type_: pa.DataType) -> Result:
    """Values that are neither nested nor text."""
    t, here = pa.types, values.type
    if type_ == MONTHS and t.is_fixed_size_binary(here):
        return months(values), None
    if _kind(here) != _kind(type_) and not (t.is_string(type_) or t.is_large_string(type_)):
        raise pa.ArrowNotImplementedError(f"no {sql_type(here)} is a {sql_type(type_)}")
    if _kind(here) == "bytes":
        return cast_or_null(lambda some: pc.cast(some, type_), values)
    if t.is_string(type_) or t.is_large_string(type_):
        return _written(values).cast(type_), None
    if t.is_decimal(type_) and t.is_integer(here):
        values = pc.cast(values, pa.decimal128(20, 0))
    elif t.is_decimal(type_) and t.is_floating(here):
        return cast_text(pc.cast(values, STRING), type_)
    elif t.is_decimal(type_) and t.is_boolean(here):
        values = pc.cast(pc.cast(values, pa.int8()), pa.decimal128(3, 0))
    elif t.is_boolean(type_):
        whole, bad = cast_or_null(lambda some: pc.cast(some, pa.int8()), values)
        other = pc.invert(pc.is_in(whole, pa.array([0, 1, None], pa.int8()))).to_numpy(zero_copy_only=False)
        return _without(pc.cast(whole, type_), other if bad is None else bad | other)
    elif t.is_floating(type_) and t.is_integer(here):
        return pc.cast(values, type_, safe=False), None
    elif t.is_floating(type_) and t.is_decimal(here):  # a cast of Arrow gives a neighbour of the nearest
        values = pc.cast(values, STRING)
    elif t.is_floating(type_) and t.is_floating(here):
        cast = pc.cast(values, type_)
        return _without(cast, _mask(pc.and_(pc.is_inf(cast), pc.is_finite(values))))
    elif t.is_date(type_) and is_moment(here):
        days = pc.floor_temporal(values.cast(pa.timestamp(here.unit)), unit="day")
        cast = days.cast(type_, safe=False)
        return _without(cast, _mask(pc.not_equal(days, values.cast(pa.timestamp(here.unit)))))
    elif getattr(here, "unit", "") == "ns" and getattr(type_, "unit", "ns") != "ns":
        values = floored(values)
    return cast_or_null(lambda some: pc.cast(some, type_), values)


def _kind(type_: pa.DataType) -> object:
    """The values that can be cast into each other."""
    t = pa.types
    if t.is_boolean(type_) or t.is_integer(type_) or t.is_floating(type_) or t.is_decimal(type_):
        return "number"
    if t.is_binary(type_) or t.is_large_binary(type_) or t.is_fixed_size_binary(type_):
        return "bytes"
    if t.is_date(type_) or is_moment(type_):
        return "date"
    return "time" if t.is_time(type_) else "length" if t.is_duration(type_) else type_


def _written(values: pa.Array) -> pa.Array:
    """The texts that CAST gives."""
    if getattr(values.type, "unit", "") == "ns":
        return as_text(values)
    kernel = writer(values.type if is_zoned(values.type) else physical(values.type))
    if kernel is None or pa.types.is_nested(values.type):
        if pa.types.is_nested(values.type):
            raise pa.ArrowNotImplementedError(f"no {sql_type(values.type)} is text")
        return as_text(values)
    return kernel([decode(values)], len(values))


def _mask(found: pa.Array) -> Bad:
    mask: Bad = found.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def _without(values: pa.Array, bad: Bad) -> Result:
    """The values, NULL in some rows."""
    if not bad.any():
        return values, None
    return pc.if_else(pa.array(bad), pa.scalar(None, values.type), values), bad
