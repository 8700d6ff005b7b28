"""Comparisons. In every one of them NaN is the greatest float and equal to itself, and -0.0 equals 0.0.

Arrow compares floats by IEEE, where NaN is unequal to everything. With a constant other than NaN one kernel is enough
(`x > c` is `not x <= c`); between columns the NaNs of both sides are handled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import types as t
from eddyline.bound.expr import Call, Expr, Kernel, Literal, Value
from eddyline.bound.functions.build import count, make, unify
from eddyline.bound.functions.table import Function, Resolve
from eddyline.cql.limits import PARTS

Compare = Callable[[Value, Value], pa.Array]

EXACT: dict[str, Compare] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_SWAPPED = {">": "<", ">=": "<="}


def compare(name: str, type: pa.DataType) -> Compare:
    """The comparison `name` of two values of a type, at least one of them an array; NULL where one is NULL."""
    return _FLOAT[name] if type in t.FLOATS else EXACT[name]


def _is_nan(value: Value) -> bool:
    return isinstance(value, pa.Scalar) and value.is_valid and value.as_py() != value.as_py()


def _float_equal(a: Value, b: Value) -> pa.Array:
    if isinstance(a, pa.Scalar):
        a, b = b, a
    if isinstance(b, pa.Scalar):
        return pc.is_nan(a) if _is_nan(b) else pc.equal(a, b)
    return pc.or_(pc.equal(a, b), pc.and_(pc.is_nan(a), pc.is_nan(b)))


def _float_less(a: Value, b: Value) -> pa.Array:
    """a < b: b is not at most a, and a is no NaN."""
    if isinstance(b, pa.Scalar) and not _is_nan(b):
        return pc.less(a, b)
    above = pc.invert(pc.less_equal(b, a))
    return above if isinstance(a, pa.Scalar) and not _is_nan(a) else pc.and_(above, pc.invert(pc.is_nan(a)))


def _float_at_most(a: Value, b: Value) -> pa.Array:
    """a <= b: by IEEE, or b is NaN."""
    if isinstance(b, pa.Scalar) and not _is_nan(b):
        return pc.less_equal(a, b)
    if isinstance(a, pa.Scalar) and not _is_nan(a):
        return pc.invert(pc.less(b, a))
    return pc.or_(pc.less_equal(a, b), pc.and_(pc.is_nan(b), pc.or_(pc.is_nan(a), pc.invert(pc.is_nan(a)))))


_FLOAT: dict[str, Compare] = {
    "=": _float_equal,
    "<>": lambda a, b: pc.invert(_float_equal(a, b)),
    "<": _float_less,
    "<=": _float_at_most,
    ">": lambda a, b: _float_less(b, a),
    ">=": lambda a, b: _float_at_most(b, a),
}


def _resolve(name: str) -> Resolve:
    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 2)
        sides, type = unify(name, args, huge=True)
        test = compare(name, type)
        return make(name, sides, t.BOOL, lambda args, rows: test(*args))

    return resolve


def distinct(test: Compare) -> Kernel:
    """IS DISTINCT FROM, made of an equality."""

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        a, b = args
        different = pc.invert(test(a, b)).fill_null(True)
        return pc.and_not(different, pc.and_(pc.is_null(a), pc.is_null(b)))

    return kernel


def _resolve_distinct(name: str) -> Resolve:
    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 2)
        sides, type = unify(name, args, huge=True)
        kernel = distinct(compare("=", type))
        if name == "is distinct from":
            return Call(name, tuple(sides), t.BOOL, kernel)
        return Call(name, tuple(sides), t.BOOL, lambda args, rows: pc.invert(kernel(args, rows)))

    return resolve


def _between(args: tuple[Expr, ...], variant: str) -> Expr:
    count("between", args, 3)
    sides, type = unify("between", args, huge=True)
    low, high = compare(">=", type), compare("<=", type)

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        return pc.and_kleene(_against(low, args[0], args[1]), _against(high, args[0], args[2]))

    return Call("between", tuple(sides), t.BOOL, kernel)


def _against(test: Compare, a: Value, b: Value) -> pa.Array:
    """A comparison that may also be one of two constants."""
    if isinstance(a, pa.Scalar) and isinstance(b, pa.Scalar):
        return test(pa.repeat(a, 1), b)[0]
    return test(a, b)


def _in(args: tuple[Expr, ...], variant: str) -> Expr:
    """The constants are no arguments of the call: they are looked up at once, however many there are."""
    count("in", args, 2, PARTS.most)
    (x, *sides), type = unify("in", args, huge=True)
    equal = compare("=", type)
    values = dict.fromkeys(side.value for side in sides if isinstance(side, Literal))
    others = [side for side in sides if not isinstance(side, Literal)]
    known = _comparable(pa.array([v for v in values if v is not None], t.physical(type)))

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        found = _looked_up(args[0], known, None in values)
        for other in args[1:]:
            found = pc.or_kleene(found, _against(equal, args[0], other))
        return found

    return Call("in", (x, *others), t.BOOL, kernel, ", ".join(map(repr, values)))


def _looked_up(values: Value, known: pa.Array, absent: bool) -> Value:
    """Whether each value is among the known ones; NULL if it is not, and one of them is NULL."""
    if isinstance(values, pa.Scalar):
        return _looked_up(pa.repeat(values, 1), known, absent)[0]
    found = pc.is_in(_comparable(values), known)
    return pc.if_else(found if absent else values.is_valid(), found, pa.scalar(None, t.BOOL))


def _comparable(values: pa.Array) -> pa.Array:
    """The same values, with equal bits where they are equal."""
    if values.type not in t.FLOATS:
        return values
    nan, zero = (pa.scalar(number, values.type) for number in (float("nan"), 0))
    return pc.if_else(pc.is_nan(values), nan, pc.add(values, zero))


def _entry(name: str, doc: str, takes: str = "") -> Function:
    resolve = _resolve_distinct(name) if name.endswith("from") else _resolve(name)
    return Function(name, "Comparison", takes or f"a {name} b", "BOOLEAN", doc, resolve, _ALIASES.get(name, {}))


_ALIASES = {"<>": {"!=": ""}, "=": {"==": ""}}

FUNCTIONS = (
    _entry("=", "Equal."),
    _entry("<>", "Not equal."),
    _entry("<", "Less."),
    _entry("<=", "Less or equal."),
    _entry(">", "Greater."),
    _entry(">=", "Greater or equal."),
    _entry("is distinct from", "Not equal, where NULL is a value like any other.", "a IS DISTINCT FROM b"),
    _entry("is not distinct from", "Equal, where NULL is a value like any other.", "a IS NOT DISTINCT FROM b"),
    Function("between", "Comparison", "a [NOT] BETWEEN low AND high", "BOOLEAN", "a >= low AND a <= high.", _between),
    Function(
        "in",
        "Comparison",
        "a [NOT] IN (b, c, ...)",
        "BOOLEAN",
        "Equal to one of them; NULL if not and one is NULL.",
        _in,
    ),
)
