"""Text read as a time by a format, as DuckDB's strptime reads it.

The format becomes one regular expression, and the parts that it finds are combined column by column. DuckDB reads from
left to right without backtracking; a number takes as many digits as its code allows. So a number that is followed by
another digit in the format must have all its digits: then the expression cannot backtrack either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import types as t
from eddyline.bound.expr import Expr, Kernel, Literal, Partial, Value
from eddyline.bound.functions import calendar
from eddyline.bound.functions.arrays import AnyArray, Bools, from_numpy, to_numpy, truth
from eddyline.bound.functions.build import constant, count, is_null, make, refuse
from eddyline.bound.functions.casts import quiet
from eddyline.bound.functions.names import DAYS, MONTHS
from eddyline.bound.functions.reading import SPACE
from eddyline.bound.functions.table import Function, Resolve
from eddyline.bound.types import TypeMismatch


@dataclass(frozen=True)
class _Number:
    """A code for a number: the part of the time that it is, its digits, and the values it may have."""

    part: str
    digits: int
    least: int
    most: int


_NUMBERS = {
    "Y": _Number("year", 4, 0, 9999),
    "y": _Number("year", 2, 0, 99),
    "m": _Number("month", 2, 1, 12),
    "d": _Number("day", 2, 1, 31),
    "H": _Number("hour", 2, 0, 23),
    "I": _Number("hour", 2, 1, 12),
    "M": _Number("minute", 2, 0, 59),
    "S": _Number("second", 2, 0, 59),
    "g": _Number("fraction", 3, 0, 999),
    "f": _Number("fraction", 6, 0, 999_999),
    "n": _Number("fraction", 9, 0, 999_999_999),
}
_WORDS = {"a": [d[:3] for d in DAYS], "A": DAYS, "b": [m[:3] for m in MONTHS], "B": MONTHS, "p": ("AM", "PM")}
_PART_OF_WORD = {"a": "weekday", "A": "weekday", "b": "month", "B": "month", "p": "half"}
_OFFSET = r"(?P<sign>[+-])(?P<ahead>[0-9]{2})(?::?(?P<ahead_min>[0-9]{2})(?::(?P<ahead_sec>[0-9]{2}))?)?"
_CODES = (*_NUMBERS, *_WORDS, "T", "z")
_SPACES = f"[{SPACE}]"
_CODE = re.compile(r"%-?(.?)", re.DOTALL)


@dataclass(frozen=True)
class _Format:
    """A format as a regular expression whose groups are named by the parts of a time, and the code of each part."""

    pattern: str
    codes: Mapping[str, str]


def _read(form: str) -> _Format:
    form = form.replace("%T", "%H:%M:%S")
    pattern, codes = "^", dict[str, str]()
    at = 0
    while at < len(form):
        found = _CODE.match(form, at)
        if found is None:
            pattern += f"{_SPACES}+" if form[at] in SPACE else re.escape(form[at])
            at += len(form[at:]) - len(form[at:].lstrip(SPACE)) if form[at] in SPACE else 1
            continue
        code, at = found[1], found.end()
        if code == "%" and found[0] == "%%":
            pattern += "%"
            continue
        part = "offset" if code == "z" else _NUMBERS[code].part if code in _NUMBERS else _PART_OF_WORD.get(code, "")
        if not part or (found[0][1] == "-" and code not in _NUMBERS):
            raise TypeMismatch(f"strptime has no code {found[0]}: it has {' '.join('%' + c for c in _CODES)} %%", form)
        if part in codes:
            raise TypeMismatch(f"the format of strptime has the {part} twice; leave one out", form)
        codes[part] = code
        pattern += _OFFSET if code == "z" else f"(?P<{part}>{_group(code, form[at : at + 2])})"
    return _Format(f"{pattern}{_SPACES}*$", codes)


def _group(code: str, after: str) -> str:
    if code in _WORDS:
        return f"(?i:{'|'.join(_WORDS[code])})"
    digits = _NUMBERS[code].digits
    number_follows = after[:1].isdigit() or (after[:1] == "%" and (after[1:] == "-" or after[1:] in _NUMBERS))
    return f"[0-9]{{{digits}}}" if number_follows else f"[0-9]{{1,{digits}}}"


def _kernel(form: _Format) -> Kernel:
    def kernel(args: Sequence[Value], rows: int) -> pa.Array | Partial:
        text = pc.utf8_ltrim(args[0], SPACE)
        found = pc.extract_regex(text, form.pattern)
        matched = truth(found.is_valid())
        parts = {found.type[i].name: found.field(i) for i in range(found.type.num_fields)}
        moments, bad = _moments(form, parts, rows)
        bad |= ~matched
        given = truth(text.is_valid())
        failed = int(np.count_nonzero(bad & given))
        values = from_numpy(np.where(bad, 0, moments), t.TIMESTAMP, bad | ~given)
        return Partial(values, failed) if failed else values

    return kernel


def _moments(form: _Format, parts: Mapping[str, pa.Array], rows: int) -> tuple[AnyArray, Bools]:
    """Microseconds since 1970, and which rows have no such time."""
    bad = np.zeros(rows, np.bool_)

    def number(part: str, default: int) -> AnyArray:
        return _whole(parts[part], default) if part in parts else np.full(rows, default, np.int64)

    for part, code in form.codes.items():
        if code in _NUMBERS:
            limits = _NUMBERS[code]
            bad |= (number(part, limits.least) < limits.least) | (number(part, limits.least) > limits.most)
    year = number("year", 1900)
    if form.codes.get("year") == "y":
        year = np.where(year < 69, year + 2000, year + 1900)
    month = _index(parts["month"], _WORDS[form.codes["month"]]) + 1 if form.codes.get("month") in ("b", "B") else None
    month = np.clip(number("month", 1) if month is None else month, 1, 12)
    first = calendar.days_of_months((year - 1970) * 12 + month - 1)
    day = number("day", 1)
    bad |= day > calendar.days_of_months((year - 1970) * 12 + month) - first
    hour = number("hour", 0)
    if "half" in parts:
        bad |= hour > 12
        hour = hour % 12 + 12 * _index(parts["half"], _WORDS["p"])
    clock = ((hour * 60 + number("minute", 0)) * 60 + number("second", 0)) * calendar.SECOND
    if "fraction" in parts:
        clock = clock + _micros(parts["fraction"])
    if "sign" in parts:
        ahead = (number("ahead", 0) * 60 + number("ahead_min", 0)) * 60 + number("ahead_sec", 0)
        behind = truth(pc.equal(parts["sign"], "-").fill_null(False))
        clock = clock - np.where(behind, -ahead, ahead) * calendar.SECOND
    return (first + day - 1) * calendar.DAY + clock, bad


def _whole(text: pa.Array, default: int) -> AnyArray:
    """Digits as numbers; `default` where there are none."""
    empty = pc.equal(text, "")
    return to_numpy(pc.if_else(empty, pa.scalar(None, t.STRING), text).cast(pa.int64()).fill_null(default))


def _index(text: pa.Array, words: Sequence[str]) -> AnyArray:
    """Which of the words each text is, in any case; 0 for none."""
    known = pa.array([word.lower() for word in words])
    return to_numpy(pc.index_in(pc.utf8_lower(text), known).fill_null(0)).astype(np.int64)


def _micros(digits: pa.Array) -> AnyArray:
    """Digits behind the point as microseconds, rounded."""
    nanos = _whole(pc.utf8_rpad(digits.fill_null("0"), 9, "0"), 0)
    return (nanos + 500) // 1000


def _strptime(name: str) -> Resolve:
    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 2)
        if t.logical(args[0].type) != t.STRING and not is_null(args[0]):
            raise refuse(name, args, "a text and a constant format, as in strptime(x, '%d.%m.%Y')")
        form = constant(name, args[1], "the format")
        if form is None:
            return Literal(None, t.TIMESTAMP)
        if not form:
            raise TypeMismatch(f"the format of {name} must not be empty")
        read = _read(str(form))
        zoned = "offset" in read.codes
        kernel = quiet(_kernel(read)) if name.startswith("try") else _kernel(read)
        return make(name, [args[0]], t.TIMESTAMPTZ if zoned else t.TIMESTAMP, kernel, str(form))

    return resolve


FUNCTIONS = (
    Function(
        "strptime",
        "Dates and times",
        "strptime(text, 'format')",
        "TIMESTAMP; with %z TIMESTAMPTZ",
        f"Text read by a constant format: {' '.join('%' + c for c in _CODES)} %%.",
        _strptime("strptime"),
    ),
    Function(
        "try_strptime",
        "Dates and times",
        "try_strptime(text, 'format')",
        "TIMESTAMP; with %z TIMESTAMPTZ",
        "As strptime, but NULL is no error.",
        _strptime("try_strptime"),
    ),
)
