"""Lists: their elements, `l[1]`, and their number. Places count from 1, as in DuckDB, and from the end if they are
negative."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import types as t
from eddyline.bound.expr import Expr, Value
from eddyline.bound.functions.arrays import to_numpy, truth
from eddyline.bound.functions.build import coerce, count, is_null, make
from eddyline.bound.functions.table import Function
from eddyline.bound.nested import entries, valid_rows
from eddyline.bound.types import TypeMismatch, sql_type


def _list_extract(args: tuple[Expr, ...], variant: str) -> Expr:
    count("list_extract", args, 2)
    whole, place = args
    if not t.is_list(whole.type):
        raise TypeMismatch(f"{sql_type(whole.type)} is no list, so it has no elements{_instead(whole)}")
    if not (t.is_integer(t.logical(place.type)) or is_null(place)) or t.logical(place.type) == t.UINT64:
        raise TypeMismatch(f"the place in a list is a whole number, as in x[1], not {sql_type(place.type)}")
    return make("list_extract", [whole, coerce(place, t.INT64)], t.logical(whole.type.value_type), _kernel)


def _instead(value: Expr) -> str:
    if t.logical(value.type) == t.STRING:
        return "; of a text write substring(x, 1, 1), of JSON in it x->'$[0]'"
    return "; of a struct write x.field" if pa.types.is_struct(value.type) else ""


def _kernel(args: Sequence[Value], rows: int) -> pa.Array:
    """The element of each list at its place; NULL if the list has no such element."""
    lists, place = args
    if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):  # of fixed size
        lists = lists.cast(pa.list_(lists.type.value_type))
    offsets = to_numpy(lists.offsets).astype(np.int64)
    length = np.where(truth(lists.is_valid()), offsets[1:] - offsets[:-1], 0)
    array = pa.repeat(place, rows) if isinstance(place, pa.Scalar) else place
    at = to_numpy(array)
    at = np.where(at < 0, at + length, at - 1)
    there = (at >= 0) & (at < length) & truth(array.is_valid())
    found = pa.array(np.where(there, offsets[:-1] + at, 0), mask=~there)
    return t.decode(pc.take(lists.values, found))


def size(args: tuple[Expr, ...], variant: str = "") -> Expr:
    """The number of elements of a list, or of entries of a map."""
    count("array_length", args, 1)
    (whole,) = args
    if not (t.is_list(whole.type) or pa.types.is_map(whole.type) or is_null(whole)):
        raise TypeMismatch(f"{sql_type(whole.type)} is no list; length(x) counts the characters of a text")
    return make("array_length", [whole], t.INT64, _size)


def _size(args: Sequence[Value], rows: int) -> pa.Array:
    lengths, _ = entries(args[0])
    valid = valid_rows(args[0])
    return pa.array(lengths, mask=None if valid is None else ~valid)


FUNCTIONS = (
    Function(
        "list_extract",
        "Nested values",
        "l[1], list_extract(l, 1)",
        "the type of the elements",
        "An element of a list: `o.items[1]` is the first, `o.items[-1]` the last, `o.items[1].price` a field of the"
        " first. NULL where the list has no such element.",
        _list_extract,
        aliases={"array_extract": "", "list_element": ""},
    ),
    Function(
        "array_length",
        "Nested values",
        "array_length(l), length(l)",
        "BIGINT",
        "The number of elements of a list, or of entries of a map.",
        size,
        aliases={"cardinality": ""},
    ),
)
