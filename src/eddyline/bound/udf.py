"""User functions: vectorised Python functions that scripts call by name.

They must be deterministic: a row may be evaluated again, alone or with others, and must give the same value. A function
that raises is run again on fewer rows until each failing row is alone; failing rows are NULL and counted, like any
value that cannot be computed, and the first error message is kept. A function that returns a wrong array (wrong length,
wrong type) stops the job with an error.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import types as t
from eddyline.bound.expr import Call, Expr, Value
from eddyline.bound.functions import names
from eddyline.bound.functions.table import USER, Function
from eddyline.errors import JobError, SettingError, shown

F = TypeVar("F", bound=Callable[..., Any])
_LONGEST = 200
"""The most characters that are kept of a function's error message."""


@dataclass(frozen=True)
class Udf:
    """A registered function, and the kind of arrays that it takes."""

    name: str
    returns: pa.DataType
    arrays: str
    function: Callable[..., Any]

    def resolve(self, args: tuple[Expr, ...], variant: str) -> Expr:
        """A call of the function; only the number of arguments is checked."""
        try:
            inspect.signature(self.function).bind(*args)
        except TypeError as error:
            raise t.TypeMismatch(f"the user function {self.name} does not take {len(args)} arguments") from error
        return Call(self.name.lower(), args, self.returns, self.kernel, expensive=True)

    def kernel(self, args: Sequence[Value], rows: int) -> pa.Array:
        """The function over whole arrays; ValueError, with a line for the user, if it raises or its result does not
        fit."""
        columns = [pa.repeat(a, rows) if isinstance(a, pa.Scalar) else a for a in args]
        if self.arrays == "arrow":
            return self._checked(self._call(columns), rows)
        valid = None
        for column in columns:
            if column.null_count:
                valid = column.is_valid() if valid is None else pc.and_(valid, column.is_valid())
        if valid is None:
            return self._checked(self._call([_to_numpy(c) for c in columns]), rows)
        known = np.flatnonzero(valid.to_numpy(zero_copy_only=False))
        if not len(known):
            return pa.nulls(rows, t.physical(self.returns))
        given = self._checked(self._call([_to_numpy(c.filter(valid)) for c in columns]), len(known))
        place = np.zeros(rows, np.int64)
        place[known] = np.arange(len(known))
        return given.take(pa.array(place, mask=~valid.to_numpy(zero_copy_only=False)))

    def _call(self, columns: Sequence[Any]) -> Any:
        try:
            return self.function(*columns)
        except Exception as error:
            raise self._failed(f"{type(error).__name__}: {error}") from error

    def _failed(self, said: str) -> ValueError:
        line = f"{self.name}: {said.strip().partition(chr(10))[0]}"
        return ValueError(line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "...")

    def _checked(self, result: Any, rows: int) -> pa.Array:
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        got = _described(result)
        if got != f"{rows} values":
            raise JobError(
                f"the user function {self.name} gave {got} for {rows} rows: it must give an array of that length"
            )
        try:
            array = result if isinstance(result, pa.Array) else pa.array(result)
            wanted = t.physical(self.returns)
            return array if array.type == wanted else t.decode(array).cast(wanted)
        except (pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise JobError(f"the user function {self.name} did not give {t.sql_type(self.returns)}: {error}") from error
        except (ValueError, ArithmeticError) as error:
            raise self._failed(f"its result is no {t.sql_type(self.returns)}: {error}") from error


def _described(result: Any) -> str:
    if isinstance(result, np.ndarray) and result.ndim != 1:
        return f"an array of {result.ndim} dimensions"
    return f"{len(result)} values" if isinstance(result, (pa.Array, np.ndarray, list)) else type(result).__name__


def _to_numpy(array: pa.Array) -> np.ndarray[Any, Any]:
    values: np.ndarray[Any, Any] = array.to_numpy(zero_copy_only=False)
    return values


_REGISTERED: dict[str, Udf] = {}


def udf(*, returns: str | pa.DataType, name: str | None = None, arrays: str = "numpy") -> Callable[[F], F]:
    """Register a function under its own name, or `name`; scripts may then call it.

    With `arrays="numpy"` it gets NumPy arrays (times as datetime64 and timedelta64, strings and decimals as objects) of
    the rows in which no argument is NULL; the other rows are NULL. With `arrays="arrow"` it gets pyarrow arrays of all
    rows, NULLs as they are. It gives an array of the same length, NumPy or pyarrow, that is cast to `returns`.

    >>> import numpy as np
    >>> @udf(returns="DOUBLE")
    ... def distance(x, y):
    ...     return np.hypot(x, y)
    >>> float(distance(3.0, 4.0))
    5.0
    >>> registered()["distance"].returns
    DataType(double)
    """
    if not isinstance(arrays, str) or arrays not in ("numpy", "arrow"):
        raise SettingError(f"a user function takes 'numpy' or 'arrow' arrays, not {shown(arrays)}")
    if not isinstance(returns, str | pa.DataType):
        raise SettingError(f"returns is a type of SQL or of pyarrow, not {shown(returns)}")
    try:
        type = t.logical(t.arrow_type(returns) if isinstance(returns, str) else returns)
    except t.TypeMismatch as error:
        raise SettingError(f"returns={returns!r}: {error}") from error

    def register(function: F) -> F:
        known = name or function.__name__
        if not known.isidentifier():
            raise SettingError(
                f"{known!r} is no name for a function: letters, digits and _ make one; give one with name=..."
            )
        if known.lower() in names():
            raise SettingError(f"{known} is a function of Eddyline already: give yours another name")
        made = Udf(known, type, arrays, function)
        _REGISTERED[known.lower()] = made
        doc = (inspect.getdoc(function) or "").partition("\n")[0]
        USER[known.lower()] = Function(known, "User functions", f"{known}(...)", t.sql_type(type), doc, made.resolve)
        return function

    return register


def called(text: str) -> list[Udf]:
    """The user functions whose names occur in a script."""
    words = set(re.findall(r"\w+", text.lower()))
    return [function for name, function in _REGISTERED.items() if name in words]


def registered() -> Mapping[str, Udf]:
    """Every user function, by lower-case name."""
    return MappingProxyType(_REGISTERED)
