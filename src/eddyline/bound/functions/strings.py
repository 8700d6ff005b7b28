"""Functions of strings. Positions and lengths count Unicode code points.

`reverse` is left out, because DuckDB reverses grapheme clusters instead of code points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound import types as t
from eddyline.bound.expr import Call, Expr, Literal, Value
from eddyline.bound.functions import lists
from eddyline.bound.functions.build import coerce, constant, count, is_null, make, refuse
from eddyline.bound.functions.table import Function, Resolve
from eddyline.bound.types import TypeMismatch

_BLANKS = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""The characters that trim removes: the space separators of Unicode, but no tabs and no line ends."""


def strings(name: str, args: Sequence[Expr]) -> list[Expr]:
    """Arguments that must be strings."""
    if any(t.logical(a.type) != t.STRING and not is_null(a) for a in args):
        raise refuse(name, args, "strings: write a CAST")
    return [coerce(a, t.STRING) for a in args]


def whole(name: str, arg: Expr, what: str) -> int | None:
    """The value of an argument that must be a whole number written in the text."""
    value = constant(name, arg, what)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise TypeMismatch(f"{what} of {name} must be a whole number")
    return value


def _one(name: str, kernel: Callable[[Value], pa.Array], gives: pa.DataType = t.STRING) -> Resolve:
    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 1)
        return make(name, strings(name, args), gives, lambda args, rows: kernel(args[0]))

    return resolve


def _trim(name: str, kernel: Callable[..., pa.Array]) -> Resolve:
    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 1, 2)
        text, *rest = strings(name, args)
        chars = constant(name, rest[0], "the characters") if rest else _BLANKS
        if chars is None:
            return Literal(None, t.STRING)
        if not chars:
            return text
        return make(name, [text], t.STRING, lambda args, rows: kernel(args[0], characters=chars), str(chars))

    return resolve


def _slice(name: str, text: Expr, start: int, stop: int | None) -> Expr:
    """Code points from `start` to `stop`; negative ones count from the end."""
    (text,) = strings(name, [text])

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        return pc.utf8_slice_codeunits(args[0], start, stop)

    return make(name, [text], t.STRING, kernel, f"{start}:{stop}")


def _substring(args: tuple[Expr, ...], variant: str) -> Expr:
    count("substring", args, 2, 3)
    start = whole("substring", args[1], "the start")
    length = whole("substring", args[2], "the length") if len(args) == 3 else 2**31
    if start is None or length is None:
        return Literal(None, t.STRING)
    begin = start - 1 if start >= 0 else start
    low, high = (begin, begin + length) if length >= 0 else (begin + length, begin)
    if start < 0:
        return _slice("substring", args[0], low, high if high < 0 else None)
    return _slice("substring", args[0], max(low, 0), max(high, 0))


def _left(args: tuple[Expr, ...], variant: str) -> Expr:
    count("left", args, 2)
    size = whole("left", args[1], "the length")
    return Literal(None, t.STRING) if size is None else _slice("left", args[0], 0, size)


def _right(args: tuple[Expr, ...], variant: str) -> Expr:
    count("right", args, 2)
    size = whole("right", args[1], "the length")
    if size is None:
        return Literal(None, t.STRING)
    return _slice("right", args[0], 0, 0) if size == 0 else _slice("right", args[0], -size, None)


def _replace(args: tuple[Expr, ...], variant: str) -> Expr:
    count("replace", args, 3)
    text, old, new = strings("replace", args)
    before, after = constant("replace", old, "the text to find"), constant("replace", new, "the new text")
    if before is None or after is None:
        return Literal(None, t.STRING)
    if before == "":
        return text

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        return pc.replace_substring(args[0], before, after)

    return make("replace", [text], t.STRING, kernel, f"{before}\0{after}")


def _numpy_strings(value: Value) -> NDArray[Any]:
    array = pa.repeat(value, 1) if isinstance(value, pa.Scalar) else value
    text: NDArray[Any] = array.fill_null("").to_numpy(zero_copy_only=False).astype(np.dtypes.StringDType())
    return text


def _pairs(text: Value, part: Value, numpy: Callable[..., NDArray[Any]], python: Callable[..., Any]) -> NDArray[Any]:
    """NumPy's function of two strings, or Python's if a string ends with NULs, which NumPy takes for padding."""
    sides = _numpy_strings(text), _numpy_strings(part)
    if not any(pc.any(pc.match_substring(side, "\0"), min_count=0).as_py() for side in (text, part)):
        return numpy(*sides)
    left, right = np.broadcast_arrays(*(side.astype(object) for side in sides))
    return np.array([python(a, b) for a, b in zip(left, right, strict=True)])


def _search(
    name: str, arrow: Callable[..., pa.Array], numpy: Callable[..., NDArray[Any]], python: Callable[..., bool]
) -> Resolve:
    """A test of a text for another: Arrow's kernel when the other is a constant, NumPy's when it is a column."""

    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 2)

        def kernel(args: Sequence[Value], rows: int) -> pa.Array:
            text, part = args
            if isinstance(part, pa.Scalar) and isinstance(text, pa.Array) and part.is_valid:
                return arrow(text, part.as_py())
            found = np.broadcast_to(_pairs(text, part, numpy, python), rows)
            return _null_like(pa.array(found), args)

        return make(name, strings(name, args), t.BOOL, kernel)

    return resolve


def _null_like(values: pa.Array, args: Sequence[Value]) -> pa.Array:
    for arg in args:
        valid = pc.is_valid(arg)
        values = pc.if_else(valid, values, pa.scalar(None, values.type))
    return values


def _strpos(args: tuple[Expr, ...], variant: str) -> Expr:
    count("strpos", args, 2)

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        text, part = args
        if isinstance(part, pa.Scalar) and part.is_valid and isinstance(text, pa.Array):
            if part.as_py() == "":
                return _null_like(pa.repeat(pa.scalar(1, t.INT64), rows), args)
            if pc.all(pc.string_is_ascii(text), min_count=0).as_py():
                return pc.add(pc.find_substring(text, part.as_py()).cast(t.INT64), 1)
        found = _pairs(text, part, np.strings.find, str.find).astype(np.int64) + 1
        return _null_like(pa.array(np.broadcast_to(found, rows)), args)

    return make("strpos", strings("strpos", args), t.INT64, kernel)


def _split_part(args: tuple[Expr, ...], variant: str) -> Expr:
    count("split_part", args, 3)
    text, by = strings("split_part", args[:2])
    separator, index = constant("split_part", by, "the separator"), whole("split_part", args[2], "the number")
    if separator is None or index is None:
        return Literal(None, t.STRING)
    if separator == "" or index < 1:
        raise TypeMismatch("split_part takes a separator that is not empty and a number from 1")

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        parts = pc.split_pattern(args[0], separator)
        return pc.binary_join(pc.list_slice(parts, index - 1, index), "")

    return make("split_part", [text], t.STRING, kernel, f"{index} {separator}")


def _text(name: str, arg: Expr) -> Expr:
    """The argument as a string; TypeMismatch if its type cannot be cast to one."""
    if t.logical(arg.type) == t.BINARY:
        raise refuse(name, [arg], "values that can be written as strings")
    return coerce(arg, t.STRING)


def _concatenate(args: tuple[Expr, ...], variant: str) -> Expr:
    count("||", args, 2)
    parts = [_text("||", a) for a in args]
    return make("||", parts, t.STRING, lambda args, rows: pc.binary_join_element_wise(*args, ""))


def _concat(args: tuple[Expr, ...], variant: str) -> Expr:
    count("concat", args, 1, 10_000)

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        return pc.binary_join_element_wise(*args, "", null_handling="replace", null_replacement="")

    return Call("concat", tuple(_text("concat", a) for a in args), t.STRING, kernel)


def _concat_ws(args: tuple[Expr, ...], variant: str) -> Expr:
    count("concat_ws", args, 2, 10_000)
    separator = constant("concat_ws", strings("concat_ws", args[:1])[0], "the separator")
    if separator is None:
        return Literal(None, t.STRING)

    before = pa.scalar(str(separator))

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        # each value with the separator before it; Arrow's null_handling="skip" drops rows in which all are NULL
        parts = [pc.coalesce(pc.binary_join_element_wise(before, a, ""), "") for a in args]
        return pc.utf8_slice_codeunits(pc.binary_join_element_wise(*parts, ""), len(before.as_py()))

    return Call("concat_ws", tuple(_text("concat_ws", a) for a in args[1:]), t.STRING, kernel, str(separator))


def entry(
    name: str, takes: str, doc: str, resolve: Resolve, gives: str = "VARCHAR", aliases: Sequence[str] = ()
) -> Function:
    """An entry of the table."""
    return Function(name, "Strings", takes, gives, doc, resolve, dict.fromkeys(aliases, ""))


def _length(args: tuple[Expr, ...], variant: str) -> Expr:
    if args and t.is_list(args[0].type):
        return lists.size(args)
    return _one("length", lambda text: pc.utf8_length(text).cast(t.INT64), t.INT64)(args, variant)


FUNCTIONS = (
    entry("||", "a || b", "One after the other; other types are written as strings.", _concatenate),
    entry("concat", "concat(a, ...)", "One after the other, NULLs left out.", _concat),
    entry(
        "concat_ws",
        "concat_ws('sep', a, ...)",
        "One after the other with a constant between, NULLs left out.",
        _concat_ws,
    ),
    entry("upper", "upper(a)", "In capitals.", _one("upper", pc.utf8_upper), aliases=["ucase"]),
    entry("lower", "lower(a)", "In small letters.", _one("lower", pc.utf8_lower), aliases=["lcase"]),
    entry(
        "length",
        "length(a)",
        "The number of characters; of a list, of its elements.",
        _length,
        "BIGINT",
        ["len", "char_length", "character_length"],
    ),
    entry(
        "trim",
        "trim(a[, 'chars'])",
        "Without spaces, or the characters given, at both ends.",
        _trim("trim", pc.utf8_trim),
    ),
    entry("ltrim", "ltrim(a[, 'chars'])", "Without them at the start.", _trim("ltrim", pc.utf8_ltrim)),
    entry("rtrim", "rtrim(a[, 'chars'])", "Without them at the end.", _trim("rtrim", pc.utf8_rtrim)),
    entry(
        "substring",
        "substring(a, start[, length])",
        "A part; start counts from 1, below zero from the end. Constants.",
        _substring,
        aliases=["substr"],
    ),
    entry("left", "left(a, n)", "The first n characters; below zero: all but the last. n is a constant.", _left),
    entry("right", "right(a, n)", "The last n characters; below zero: all but the first. n is a constant.", _right),
    entry("replace", "replace(a, 'old', 'new')", "Every old replaced by new, both constants.", _replace),
    entry(
        "starts_with",
        "starts_with(a, b)",
        "Whether a starts with b.",
        _search("starts_with", pc.starts_with, np.strings.startswith, str.startswith),
        "BOOLEAN",
        ["prefix"],
    ),
    entry(
        "ends_with",
        "ends_with(a, b)",
        "Whether a ends with b.",
        _search("ends_with", pc.ends_with, np.strings.endswith, str.endswith),
        "BOOLEAN",
        ["suffix"],
    ),
    entry(
        "contains",
        "contains(a, b)",
        "Whether b is a part of a.",
        _search("contains", pc.match_substring, lambda a, b: np.strings.find(a, b) >= 0, str.__contains__),
        "BOOLEAN",
    ),
    entry(
        "strpos",
        "strpos(a, b), position(b IN a)",
        "Where b starts in a, from 1; 0 if nowhere.",
        _strpos,
        "BIGINT",
        ["instr", "position"],
    ),
    entry(
        "split_part",
        "split_part(a, 'sep', n)",
        "The n-th part of a, from 1; empty if there is none. Constants.",
        _split_part,
    ),
)
