"""Guesses the strptime format of times from values of the data.

strptime itself tries every candidate, so a proposed format does read the value.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import functions
from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Literal, SourceColumn

_MONTH = r"[A-Za-z]{3}"
_DAYS = (
    (r"\d{4}([-/. ])\d{1,2}\1\d{1,2}", ("%Y{0}%m{0}%d",)),
    (r"\d{1,2}(\.)\d{1,2}\1\d{4}", ("%d{0}%m{0}%Y",)),
    (r"\d{1,2}(\.)\d{1,2}\1\d{2}", ("%d{0}%m{0}%y",)),
    (r"\d{1,2}([-/ ])\d{1,2}\1\d{4}", ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y")),
    (r"\d{1,2}([-/ ])\d{1,2}\1\d{2}", ("%d{0}%m{0}%y", "%m{0}%d{0}%y")),
    (rf"\d{{1,2}}([-/. ]){_MONTH}\1\d{{4}}", ("%d{0}%b{0}%Y",)),
    (r"\d{1,2}([-/. ])[A-Za-z]{4,9}\1\d{4}", ("%d{0}%B{0}%Y",)),
    (rf"{_MONTH} \d{{1,2}}(,? )\d{{4}}", ("%b %d{0}%Y",)),
    (r"[A-Za-z]{4,9} \d{1,2}(,? )\d{4}", ("%B %d{0}%Y",)),
    (r"\d{8}()", ("%Y%m%d",)),
)
"""Patterns of days, and the formats that each may have. The group matches the separator."""
_WEEKDAY = re.compile(r"(?i:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? ")
_CLOCK = re.compile(
    r"([ T:]*)(\d{1,2})(:?)(\d{2})(?:\3(\d{2})(?:([.,])(\d{1,9}))?)?( ?)([AaPp][Mm])?( ?)(Z|[+-]\d{2}:?\d{2})?"
)


_X = SourceColumn(0, "x", pa.string())
_GUESSED, _READ = 10, 1000
"""How many values formats are guessed from, and how many are read to choose one."""


def formats_of(values: pa.Array) -> tuple[str, ...]:
    """The formats that read most of these texts; none if the first ones do not look like times.

    >>> formats_of(pa.array(["03/04/2026", "03/14/2026"])), formats_of(pa.array(["1.2.26"]))
    (('%m/%d/%Y',), ('%d.%m.%y',))
    """
    found = dict.fromkeys(form for value in values[:_GUESSED].to_pylist() for form in guessed(value))
    read = {form: _count(form, values[:_READ]) for form in found}
    return tuple(form for form in read if read[form] == max(read.values()))


def guessed(value: str) -> tuple[str, ...]:
    """The formats that read a time; none if the value does not look like a time, several if day and month are
    ambiguous.

    >>> guessed("16.11.2026 10:00"), guessed("11/16/2026 9:05:00 PM"), guessed("yesterday")
    (('%d.%m.%Y %H:%M',), ('%m/%d/%Y %I:%M:%S %p',), ())
    >>> guessed("03/04/2026")
    ('%d/%m/%Y', '%m/%d/%Y')
    """
    value = value.strip()
    weekday = _WEEKDAY.match(value)
    before = "" if weekday is None else f"%a{weekday[0][3:]}"
    for pattern, formats in _DAYS:
        found = re.compile(pattern).match(value, 0 if weekday is None else weekday.end())
        if found is None or (clock := _clock(value[found.end() :])) is None:
            continue
        reads = tuple(form for f in formats if _reads(form := before + f.format(found[1]) + clock, value))
        if reads:
            return reads
    return ()


def _clock(text: str) -> str | None:
    """The format of the text after a day; None if that text is not a time of day."""
    if not text:
        return ""
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    before, _, colon, _, seconds, point, fraction, space, half, gap, zone = found.groups()
    form = f"{before}%{'I' if half else 'H'}{colon}%M"
    form += f"{colon}%S" if seconds else ""
    form += f"{point}%{'f' if len(fraction) <= 6 else 'n'}" if fraction else ""
    form += f"{space}%p" if half else space
    return form + gap + ("" if not zone else "Z" if zone == "Z" else "%z")


def _reads(form: str, value: str) -> bool:
    return _count(form, pa.array([value])) > 0


def _count(form: str, values: pa.Array) -> int:
    """How many values a format reads."""
    read = functions.call("try_strptime", [_X, Literal(form, pa.string())])
    return int(pc.count(evaluate(read, {_X: values}, len(values), ErrorCount())).as_py())
