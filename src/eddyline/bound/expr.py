"""Typed expressions: the binder makes them from SQL, and the engine evaluates them.

An expression is a small immutable tree; its type is an Arrow type and is known before any row is read. Equal
expressions are equal objects (and hash alike), so an environment can map any sub-expression, a group key for example,
to its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import TypeAlias

import pyarrow as pa

Value: TypeAlias = pa.Array | pa.Scalar
"""The result of an evaluation: an array of values, or one value for all rows."""


@dataclass(frozen=True)
class Partial:
    """Values of which `failed` are NULL because they could not be computed."""

    values: pa.Array
    failed: int


Kernel = Callable[[Sequence[Value], int], "pa.Array | Partial"]
"""Vectorised implementation. It takes the arguments, at least one of them an array and the others constants, and the
number of rows; it returns an array of that length. A kernel that knows which rows cannot be computed makes them NULL
and returns their number (`Partial`). Another kernel raises ValueError or ArithmeticError (pa.ArrowInvalid is one), and
the evaluator finds these rows and makes them NULL. The error of a user function is one line for the user."""


@dataclass(frozen=True)
class SourceColumn:
    """A column of the query's source number `source` (its place in FROM)."""

    source: int
    name: str
    type: pa.DataType

    def __hash__(self) -> int:
        return hash((self.source, self.name))


@dataclass(frozen=True)
class Literal:
    """A constant; `value` is what `pa.scalar(value, type)` takes, None for NULL."""

    value: object
    type: pa.DataType


@dataclass(frozen=True, eq=False)
class Call:
    """A function applied to arguments that already have the types it takes (casts are calls of their own).

    A call knows its hash, and compares without recursion: plans look expressions up all the time, and they may be deep.
    """

    name: str
    args: tuple[Expr, ...]
    type: pa.DataType
    kernel: Kernel = field(repr=False)
    variant: str = ""
    """Distinguishes calls with the same name and arguments: the unit of date_trunc, the target of a cast."""
    expensive: bool = False
    """Whether it is a user function: a predicate with one is a step of its own in the eddy."""

    @cached_property
    def depth(self) -> int:
        """The calls on the longest way to a column or constant."""
        return 1 + max((arg.depth for arg in self.args if isinstance(arg, Call)), default=0)

    @cached_property
    def _own(self) -> tuple[object, ...]:
        """Everything but the arguments and the kernel, which follows from the rest."""
        return self.name, self.type, self.variant, self.expensive, len(self.args)

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.variant, self.args))

    def __repr__(self) -> str:
        return f"Call({self.name!r}, {self.args!r}, {self.type!r}, {self.variant!r}, {self.expensive!r})"

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        pairs: list[tuple[object, object]] = [(self, other)]
        while pairs:
            a, b = pairs.pop()
            if a is b:
                continue
            if isinstance(a, Call) and isinstance(b, Call):
                if a._hash != b._hash or a._own != b._own:
                    return False
                pairs += zip(a.args, b.args, strict=True)
            elif isinstance(a, Call) or isinstance(b, Call) or a != b:
                return False
        return True


@dataclass(frozen=True)
class Aggregate:
    """COUNT, SUM, MIN or another aggregate over the combinations of a group; `arg` is None for COUNT(*)."""

    name: str
    arg: Expr | None
    distinct: bool
    type: pa.DataType
    parameter: Decimal | str | None = None
    """The share of a quantile, the separator of string_agg."""


Expr = SourceColumn | Literal | Call | Aggregate

WINDOW_END = SourceColumn(-1, "window_end", pa.timestamp("us"))
"""`window_end()`: the slide boundary of an aggregate's row. Not a column of any source."""


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything in it, parents first."""
    left = [expr]
    while left:
        found = left.pop()
        yield found
        if isinstance(found, Call):
            left += reversed(found.args)
        elif isinstance(found, Aggregate) and found.arg is not None:
            left.append(found.arg)


@lru_cache(maxsize=1 << 16)
def columns_of(expr: Expr) -> frozenset[SourceColumn]:
    """The source columns an expression reads."""
    return frozenset(e for e in walk(expr) if isinstance(e, SourceColumn) and e.source >= 0)


@lru_cache(maxsize=1 << 16)
def sources_of(expr: Expr) -> frozenset[int]:
    """The sources (places in FROM) an expression reads."""
    return frozenset(c.source for c in columns_of(expr))


def of_source(expr: Expr, source: int) -> Expr:
    """The same expression over the columns of another source."""
    if isinstance(expr, SourceColumn):
        return replace(expr, source=source)
    return replace(expr, args=tuple(of_source(a, source) for a in expr.args)) if isinstance(expr, Call) else expr


def is_expensive(expr: Expr) -> bool:
    """Whether a user function is called anywhere in it."""
    return any(isinstance(e, Call) and e.expensive for e in walk(expr))
