"""Strings made longer by constants: lpad, rpad, repeat."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import types as t
from eddyline.bound.expr import Expr, Literal, Partial, Value
from eddyline.bound.functions.arrays import without
from eddyline.bound.functions.build import constant, count, make
from eddyline.bound.functions.strings import entry, strings, whole
from eddyline.bound.functions.table import Resolve
from eddyline.bound.types import TypeMismatch

_MOST = 10_000
"""The greatest length of lpad and rpad, and number of repeats: a batch of such strings fits into one Arrow array."""
_ROOM = 2**31 - 1


def _size(name: str, arg: Expr, what: str) -> int | None:
    size = whole(name, arg, what)
    if size is not None and size > _MOST:
        raise TypeMismatch(f"{what} of {name} must be at most {_MOST}, not {size}")
    return size if size is None else max(size, 0)


def _pad(name: str) -> Resolve:
    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 3)
        size = _size(name, args[1], "the length")
        text, by = strings(name, [args[0], args[2]])
        padding = constant(name, by, "the padding")
        if size is None or padding is None:
            return Literal(None, t.STRING)
        fill = (str(padding) * size)[:size]

        def kernel(args: Sequence[Value], rows: int) -> pa.Array | Partial:
            cut = pc.utf8_slice_codeunits(args[0], 0, size)
            missing = pc.subtract(size, pc.utf8_length(cut))
            if not fill:  # there is nothing to pad with
                return without(cut, pc.greater(missing, 0))
            codes = missing.dictionary_encode()
            known = pa.array([fill[:length] for length in codes.dictionary.to_pylist()], t.STRING)
            filling = known.take(codes.indices)
            return pc.binary_join_element_wise(*((filling, cut) if name == "lpad" else (cut, filling)), "")

        return make(name, [text], t.STRING, kernel, f"{size}{padding}")

    return resolve


def _repeat(args: tuple[Expr, ...], variant: str) -> Expr:
    count("repeat", args, 2)
    times = _size("repeat", args[1], "the number")
    (text,) = strings("repeat", args[:1])
    if times is None:
        return Literal(None, t.STRING)

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        if (pc.sum(pc.binary_length(args[0])).as_py() or 0) * times > _ROOM:
            raise pa.ArrowCapacityError("too long for one array")
        return pc.binary_repeat(args[0], times)

    return make("repeat", [text], t.STRING, kernel, f"{times}")


FUNCTIONS = (
    entry(
        "lpad",
        "lpad(a, n, 'pad')",
        f"Filled up at the left to n characters, or cut to n. Constants, n at most {_MOST}.",
        _pad("lpad"),
    ),
    entry(
        "rpad",
        "rpad(a, n, 'pad')",
        f"Filled up at the right to n characters, or cut to n. Constants, n at most {_MOST}.",
        _pad("rpad"),
    ),
    entry("repeat", "repeat(a, n)", f"n times a; n is a constant, at most {_MOST}.", _repeat),
)
