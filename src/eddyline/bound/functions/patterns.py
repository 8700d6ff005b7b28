r"""LIKE, ILIKE and regular expressions; the pattern is a constant.

A LIKE pattern is translated to RE2 once, or to a plain search when it is only a prefix, a suffix or a part. There is no
escape character unless ESCAPE names one. ILIKE lowers both sides first, as DuckDB does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import types as t
from eddyline.bound.expr import Expr, Value
from eddyline.bound.functions.build import constant, count, is_null, make, refuse
from eddyline.bound.functions.logic import negate
from eddyline.bound.functions.table import Function, Resolve
from eddyline.bound.types import TypeMismatch

PatternPart = str | None
"""A part of a LIKE pattern: characters that stand for themselves, or None for `%`; `_` is the piece '\\0_'."""
_ANY_ONE = "\0_"


def pieces(pattern: str, escape: str) -> list[PatternPart]:
    """A LIKE pattern taken apart; neighbouring `%` are one."""
    parts: list[PatternPart] = []
    plain = ""
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == escape:
            at += 1
            if at == len(pattern):
                raise TypeMismatch("a LIKE pattern must not end with its escape character")
            plain += pattern[at]
        elif char in "%_":
            if plain:
                parts.append(plain)
                plain = ""
            if char == "_":
                parts.append(_ANY_ONE)
            elif not parts or parts[-1] is not None:
                parts.append(None)
        else:
            plain += char
        at += 1
    return [*parts, plain] if plain else parts


def matcher(parts: Sequence[PatternPart]) -> Callable[[pa.Array], pa.Array]:
    """The quickest Arrow kernel that finds a pattern."""
    plain = [p for p in parts if p is not None and p != _ANY_ONE]
    if _ANY_ONE not in parts and len(plain) <= 1:
        word = plain[0] if plain else ""
        if None not in parts:
            return lambda text: pc.equal(text, word)
        if len(parts) == 1:
            return lambda text: pc.starts_with(text, "")
        if parts == [word, None]:
            return lambda text: pc.starts_with(text, word)
        if parts == [None, word]:
            return lambda text: pc.ends_with(text, word)
        return lambda text: pc.match_substring(text, word)
    inner = "".join(".*" if p is None else "." if p == _ANY_ONE else quote(p) for p in parts)
    expression = rf"(?s)\A(?:{inner})\z"
    return lambda text: pc.match_substring_regex(text, expression)


def quote(text: str) -> str:
    """The characters as they are, in RE2."""
    return "".join(c if c.isalnum() or ord(c) > 127 else f"\\x{{{ord(c):x}}}" for c in text)


def _like(name: str) -> Resolve:
    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 2, 3)
        if any(t.logical(a.type) != t.STRING and not is_null(a) for a in args):
            raise refuse(name, args, "strings")
        pattern = constant(name, args[1], "the pattern")
        escape = constant(name, args[2], "the escape character") if len(args) == 3 else ""
        if not isinstance(pattern, str) or not isinstance(escape, str):
            return make(name, args, t.BOOL, lambda args, rows: pa.nulls(rows, t.BOOL))
        if len(escape) > 1:
            raise TypeMismatch("the escape character of LIKE must be one character")
        fold = "ilike" in name
        if fold:
            pattern = pc.utf8_lower(pa.scalar(pattern)).as_py()
        match = matcher(pieces(pattern, escape))

        def kernel(args: Sequence[Value], rows: int) -> pa.Array:
            return match(pc.utf8_lower(args[0]) if fold else args[0])

        found = make(name.removeprefix("not "), args[:1], t.BOOL, kernel, f"{pattern}\0{escape}")
        return negate(found) if name.startswith("not ") else found

    return resolve


def _regexp(args: tuple[Expr, ...], variant: str) -> Expr:
    count("regexp_matches", args, 2)
    if any(t.logical(a.type) != t.STRING and not is_null(a) for a in args):
        raise refuse("regexp_matches", args, "strings")
    pattern = constant("regexp_matches", args[1], "the pattern")
    if not isinstance(pattern, str):
        return make("regexp_matches", args, t.BOOL, lambda args, rows: pa.nulls(rows, t.BOOL))
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        raise TypeMismatch(f"the pattern {pattern!r} is no regular expression of RE2") from error
    return make(
        "regexp_matches", args[:1], t.BOOL, lambda args, rows: pc.match_substring_regex(args[0], pattern), pattern
    )


_DOC = "Whether the text fits the pattern: % is any text, _ any one character; no escape unless ESCAPE names one."
_FOLD = "LIKE without looking at the case of letters."

FUNCTIONS = (
    Function("like", "Patterns", "a [NOT] LIKE 'pattern' [ESCAPE 'c']", "BOOLEAN", _DOC, _like("like")),
    Function(
        "not like",
        "Patterns",
        "a NOT LIKE 'pattern' [ESCAPE 'c']",
        "BOOLEAN",
        "The opposite of LIKE.",
        _like("not like"),
    ),
    Function("ilike", "Patterns", "a [NOT] ILIKE 'pattern' [ESCAPE 'c']", "BOOLEAN", _FOLD, _like("ilike")),
    Function(
        "not ilike",
        "Patterns",
        "a NOT ILIKE 'pattern' [ESCAPE 'c']",
        "BOOLEAN",
        "The opposite of ILIKE.",
        _like("not ilike"),
    ),
    Function(
        "regexp_matches",
        "Patterns",
        "regexp_matches(a, 'pattern')",
        "BOOLEAN",
        "Whether a part of the text fits a regular expression of RE2.",
        _regexp,
    ),
)
