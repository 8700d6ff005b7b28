"""JSON in strings: values by path, written as DuckDB writes them.

A text is JSON as defined by RFC 8259; other texts cannot be computed. (DuckDB also accepts NaN and commas before a
closing bracket.) If a key occurs twice, the first counts. Each distinct text is parsed once for a call.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from eddyline.bound import types as t
from eddyline.bound.expr import Expr, Literal, Value
from eddyline.bound.functions.build import constant, count, make
from eddyline.bound.functions.distinct import NotComputable, by_distinct
from eddyline.bound.functions.strings import strings
from eddyline.bound.functions.table import Function, Resolve
from eddyline.bound.types import TypeMismatch
from eddyline.cql.places import shown

JsonStep = str | int
"""A key of an object, or an index into a list; a negative index counts from the end."""

_STEP = re.compile(r"""\.(?P<key>[^."\[\]*]+)|\."(?P<quoted>[^"]*)"|\[(?P<last>\#)?(?P<index>-?\d+)\]""", re.VERBOSE)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_MISSING = object()
_ESCAPES = {chr(code): f"\\u{code:04X}" for code in range(32)} | {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
}  # fmt: skip
_ESCAPED = re.compile(r'["\\\x00-\x1f]')


class _Raw(str):
    """A number that no type holds, as it is written."""


class _Pairs(list[tuple[str, Any]]):
    """An object in which a key occurs twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Pairs:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _Pairs(pairs)


def _float(text: str) -> float | _Raw:
    value = float(text)
    return _Raw(text) if math.isinf(value) else value


def _refuse(word: str) -> float:
    raise ValueError(word)


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_refuse)


def read(text: str) -> Any:
    """The value of a JSON text; NotComputable if the text is not JSON."""
    try:
        value = _DECODER.decode(text)
        if _SURROGATE.search(text):
            write(value).encode()  # fails for half of a surrogate pair
    except (ValueError, RecursionError) as error:
        raise NotComputable from error
    return value


def write(value: Any) -> str:
    """A value as JSON, without spaces."""
    if isinstance(value, _Raw):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return _written(value)
    if isinstance(value, dict | _Pairs):
        pairs = value.items() if isinstance(value, dict) else value
        return "{" + ",".join(f"{_quoted(key)}:{write(part)}" for key, part in pairs) + "}"
    return "[" + ",".join(map(write, value)) + "]" if isinstance(value, list) else str(value)


def _quoted(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda found: _ESCAPES[found[0]], text) + '"'


def _written(value: float) -> str:
    """The shortest digits of a number; with an exponent only below 1e-6 and from 1e21."""
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + int(exponent) if value else 1
    if not -6 < point <= 21:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        made = f"{text[0]}{fraction}e{point - 1}"
    elif point <= 0:
        made = f"0.{'0' * -point}{text}"
    else:
        made = f"{text[:point].ljust(point, '0')}.{text[point:] or '0'}"
    return f"-{made}" if sign else made


def find(value: Any, steps: Sequence[JsonStep]) -> Any:
    """The value at a path, _MISSING if there is none."""
    for step in steps:
        if isinstance(step, int):
            if not isinstance(value, list) or isinstance(value, _Pairs) or not -len(value) <= step < len(value):
                return _MISSING
            value = value[step]
        elif isinstance(value, dict):
            value = value.get(step, _MISSING)
        else:
            found = value if isinstance(value, _Pairs) else ()
            value = next((part for key, part in found if key == step), _MISSING)
    return value


def path_of(name: str, expr: Expr) -> list[JsonStep] | None:
    """The steps of a constant path: `$.a."b c"[0][#-1]`, a key, or an index into a list; None for NULL."""
    path = constant(name, expr, "the path")
    if path is None:
        return None
    if isinstance(path, int) and not isinstance(path, bool):
        return [path]
    if not isinstance(path, str):
        raise TypeMismatch(f"the path of {name} must be a string or a whole number")
    if not path.startswith(("$", "/")):
        return [path] if path else []
    steps: list[JsonStep] = []
    at = 1
    while found := _STEP.match(path, at):
        if found["index"] is not None and (found["last"] is None or found["index"].startswith("-")):
            steps.append(int(found["index"]))
        elif found["index"] is None:
            steps.append(found["key"] if found["key"] is not None else found["quoted"])
        else:
            break
        at = found.end()
    if at != len(path) or path.startswith("/"):
        raise TypeMismatch(f"{shown(path)} is no path; write it as in '$.a.b[0]', with one value at its end", path)
    return steps


def _extract(name: str, gives: pa.DataType, made: Callable[[Any], object], least: int = 2) -> Resolve:
    """A function of a text and a path."""

    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, least, 2)
        (text,) = strings(name, args[:1])
        steps = path_of(name, args[1]) if len(args) > 1 else []
        if steps is None:
            return Literal(None, gives)

        def value(text: str) -> object:
            found = find(read(text), steps)
            try:
                return None if found is _MISSING else made(found)
            except RecursionError:
                raise NotComputable from None

        def kernel(args: Sequence[Value], rows: int) -> Any:
            return by_distinct(args[0], gives, value)

        return make(name, [text], gives, kernel, repr(steps))

    return resolve


def _valid(args: tuple[Expr, ...], variant: str) -> Expr:
    count("json_valid", args, 1)

    def valid(text: str) -> bool:
        try:
            read(text)
        except NotComputable:
            return False
        return True

    def kernel(args: Sequence[Value], rows: int) -> Any:
        return by_distinct(args[0], t.BOOL, valid)

    return make("json_valid", strings("json_valid", args), t.BOOL, kernel)


def _text(value: Any) -> str | None:
    return None if value is None else value if isinstance(value, str) else write(value)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) and not isinstance(value, _Pairs) else 0


def _entry(name: str, takes: str, gives: str, doc: str, resolve: Resolve, *aliases: str) -> Function:
    return Function(name, "JSON", takes, gives, doc, resolve, dict.fromkeys(aliases, ""))


FUNCTIONS = (
    _entry(
        "json_extract_string",
        "a->>'path', json_extract_string(a, 'path')",
        "VARCHAR",
        "The value at a path of a JSON text as text: `CAST(a->>'$.order.amount' AS DOUBLE)`. A path is `$.key.\"a "
        'key"[0][#-1]`, one key, or a place in a list. NULL if there is no such value, or it is null. Constant.',
        _extract("json_extract_string", t.STRING, _text),
        "json_extract_path_text",
    ),
    _entry(
        "json_extract",
        "a->'path', json_extract(a, 'path')",
        "VARCHAR",
        "The same as JSON: strings in double quotes, null is `null`.",
        _extract("json_extract", t.STRING, write),
        "json_extract_path",
    ),
    _entry(
        "json_array_length",
        "json_array_length(a[, 'path'])",
        "UBIGINT",
        "The number of values in a JSON list; 0 for what is no list.",
        _extract("json_array_length", t.UINT64, _length, least=1),
    ),
    _entry("json_valid", "json_valid(a)", "BOOLEAN", "Whether a text is JSON.", _valid),
)
