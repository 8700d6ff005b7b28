"""Objects of Python as columns of the declared types: lists, dictionaries and what a decoder or a client puts in them.

Values of one class are converted together, as a column of Arrow of their own type, so a column may mix classes, and a
value that does not fit is refused with its own row only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from eddyline.bound.nested import Bad, Result, either, in_lists, in_maps, in_structs
from eddyline.bound.types import is_list
from eddyline.runtime.values.arrow import convert

Leaf = Callable[[Sequence[Any], pa.DataType], Result]
_INT64 = 2**63


def from_python(values: Sequence[Any], type_: pa.DataType, leaf: Leaf | None = None) -> Result:
    """Values as an array of a type, NULL where a value does not fit, and the mask of those rows (None: all fit).
    Structs and maps are dictionaries; `leaf` converts values of all other types.

    >>> from_python([[1, 2.0], [1.5], None, "x"], pa.list_(pa.int64()))[1]
    array([False,  True, False,  True])
    """
    leaf = leaf or plain
    t = pa.types
    if is_list(type_):
        given, wrong = _of_class(values, list)
        inner = from_python(list(chain.from_iterable(v for v in given if v)), type_.value_type, leaf)
        return _and(in_lists(_lengths(given), _valid(given), inner, type_), wrong)
    if t.is_map(type_):
        given, wrong = _of_class(values, dict)
        keys = leaf([key for v in given if v for key in v], type_.key_type)
        items = from_python([item for v in given if v for item in v.values()], type_.item_type, leaf)
        missing = keys[0].is_null().to_numpy(zero_copy_only=False) if keys[0].null_count else None
        keys = keys[0], either(keys[1], missing)
        return _and(in_maps(_lengths(given), _valid(given), keys, items, type_), wrong)
    if t.is_struct(type_):
        given, wrong = _of_class(values, dict)
        fields = [from_python([None if v is None else v.get(f.name) for v in given], f.type, leaf) for f in type_]
        return _and(in_structs(len(given), _valid(given), fields, type_), wrong)
    return leaf(values, type_)


def plain(values: Sequence[Any], type_: pa.DataType) -> Result:
    """Values that are not nested, each class of them by the rules of its own type."""
    numbers = {kind: number for number, kind in enumerate(set(map(type, values)) - {type(None)})}
    if len(numbers) <= 1:
        return _of_one_class(values, type_)
    kinds = np.array([numbers.get(type(value), -1) for value in values])
    bad, parts, rows = np.zeros(len(values), np.bool_), [], []
    for kind in np.unique(kinds):
        some = np.flatnonzero(kinds == kind)
        part, wrong = _of_one_class([values[row] for row in some.tolist()], type_)
        if wrong is not None:
            bad[some] = wrong
        parts.append(part)
        rows.append(some)
    order = np.argsort(np.concatenate(rows))
    return pa.concat_arrays(parts).take(pa.array(order)), bad if bad.any() else None


def _of_one_class(values: Sequence[Any], type_: pa.DataType) -> Result:
    try:
        return convert(_as_arrow(values), type_)
    except pa.ArrowNotImplementedError:  # no value of this class is one of the type
        return pa.nulls(len(values), type_), np.array([value is not None for value in values])
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        pass
    if len(values) > 1:  # a number too large for Arrow, say, or text that is none: the others may fit
        ones = [_of_one_class([value], type_) for value in values]
        bad = np.array([wrong is not None for _, wrong in ones])
        return pa.concat_arrays([one for one, _ in ones]), bad if bad.any() else None
    return pa.nulls(len(values), type_), np.array([value is not None for value in values])


def _as_arrow(values: Sequence[Any]) -> pa.Array:
    """Values of one class as Arrow has them."""
    first = next((value for value in values if value is not None), None)
    if isinstance(first, bool | float | str | bytes):
        return pa.array(values)
    if isinstance(first, int):
        large = any(value is not None and not -_INT64 <= value < _INT64 for value in values)
        return pa.array(values, pa.decimal128(38, 0) if large else pa.int64())
    if isinstance(first, UUID):
        return pa.array([value if value is None else str(value) for value in values])
    array = pa.array(values)
    if pa.types.is_nested(array.type):
        raise TypeError("no plain value")
    return array


def _of_class(values: Sequence[Any], kind: type) -> tuple[Sequence[Any], Bad | None]:
    """The values, None in place of those of another class, and the mask of those."""
    if set(map(type, values)) <= {kind, type(None)}:
        return values, None
    wrong = [value is not None and not isinstance(value, kind) for value in values]
    return [None if w else v for v, w in zip(values, wrong, strict=True)], np.array(wrong) if any(wrong) else None


def _lengths(values: Sequence[Any]) -> Any:
    return np.fromiter((0 if v is None else len(v) for v in values), np.int64, len(values))


def _valid(values: Sequence[Any]) -> Bad:
    return np.fromiter((v is not None for v in values), np.bool_, len(values))


def _and(result: Result, wrong: Bad | None) -> Result:
    return result[0], either(result[1], wrong)
