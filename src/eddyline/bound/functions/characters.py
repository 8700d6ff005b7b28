"""Characters, their Unicode numbers and their bytes. A batch has few distinct characters: each is looked up once."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import types as t
from eddyline.bound.expr import Expr, Partial, Value
from eddyline.bound.functions.build import coerce, count, is_null, make, refuse
from eddyline.bound.functions.strings import entry, strings
from eddyline.bound.functions.writing import decoded


def _ascii(args: tuple[Expr, ...], variant: str) -> Expr:
    count("ascii", args, 1)

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        codes = pc.utf8_slice_codeunits(args[0], 0, 1).dictionary_encode()
        known = [ord(char) if char else 0 for char in codes.dictionary.to_pylist()]
        return pa.array(known, t.INT32).take(codes.indices)

    return make("ascii", strings("ascii", args), t.INT32, kernel)


def _chr(args: tuple[Expr, ...], variant: str) -> Expr:
    count("chr", args, 1)
    type = t.logical(args[0].type)
    if not (t.is_integer(type) and t.holds(t.INT32, type)) and not is_null(args[0]):
        raise refuse("chr", args, "an INTEGER: write a CAST")

    def kernel(args: Sequence[Value], rows: int) -> pa.Array | Partial:
        codes = args[0].dictionary_encode()
        known = [chr(code) if _is_character(code) else None for code in codes.dictionary.to_pylist()]
        made = pa.array(known, t.STRING).take(codes.indices)
        failed = made.null_count - args[0].null_count
        return Partial(made, failed) if failed else made

    return make("chr", [coerce(args[0], t.INT32)], t.STRING, kernel)


def _is_character(code: int) -> bool:
    return 0 <= code < 0x110000 and not 0xD800 <= code < 0xE000


def _decode(args: tuple[Expr, ...], variant: str) -> Expr:
    count("decode", args, 1)
    if t.logical(args[0].type) != t.BINARY and not is_null(args[0]):
        raise refuse("decode", args, "a BLOB")
    return make("decode", [coerce(args[0], t.BINARY)], t.STRING, decoded)


def _encode(args: tuple[Expr, ...], variant: str) -> Expr:
    count("encode", args, 1)
    return make("encode", strings("encode", args), t.BINARY, lambda args, rows: args[0].cast(t.BINARY))


FUNCTIONS = (
    entry("ascii", "ascii(a)", "The number of the first character in Unicode; 0 if there is none.", _ascii, "INTEGER"),
    entry("chr", "chr(n)", "The character of a number in Unicode.", _chr),
    entry("decode", "decode(a)", "The text that the bytes of a BLOB are in UTF-8.", _decode),
    entry("encode", "encode(a)", "The bytes of a text in UTF-8.", _encode, "BLOB"),
)
