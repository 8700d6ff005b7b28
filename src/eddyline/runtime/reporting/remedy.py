"""The remedy for a dead row: what to write in the script, or to change in the data, so that such rows can be read."""

from __future__ import annotations

import re

import pyarrow as pa

from eddyline.bound.inferred_text import MISSING
from eddyline.bound.time_format import guessed
from eddyline.bound.types import sql_type
from eddyline.cql.quoting import quoted
from eddyline.runtime.sources.csv_header import separator

_NO_VALUE = re.compile(r"column (.*?): '(.*)' is not a value of type ([A-Z]+)(.*)", re.DOTALL)
_NO_TIME = re.compile(r"the event time .* is NULL or out of range for ([^=]+) = '(.*)'", re.DOTALL)
_NULL_TIME = re.compile(r"the event time .*is NULL or out of range(?:: (.*) is| for ([^=]+) =) NULL", re.DOTALL)
_COLUMNS = re.compile(r"1 column where (\d+) were expected: (.*)", re.DOTALL)
_NO_OBJECT = "not a JSON object of this stream"
_EPOCHS = ((11, "to_timestamp"), (14, "epoch_ms"))
"""Functions that turn a number into a time, each with the most digits that it is for; `make_timestamp` is for longer
numbers."""
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MOST_LISTED = 12
_FALLBACK = "as in '%d.%m.%Y %H:%M:%S'"


def remedy(reason: str, declared: str = "", columns: pa.Schema | None = None) -> str:
    """The remedy for a reason; "" if the reason does not tell enough. It has the whole declaration of a stream whose
    `columns` are known and not too many; `declared` is what it declares, such as `STREAM s`.

    >>> remedy("column x: '2.5' is not a value of type BIGINT")
    'declare x DOUBLE'
    >>> columns = pa.schema({"ts": pa.date32(), "x": pa.int64()})
    >>> remedy("column x: '2.5' is not a value of type BIGINT", "STREAM s", columns)
    'declare the columns, with x as DOUBLE: CREATE STREAM s (ts DATE, x DOUBLE)'
    >>> remedy("column ts: '16.11.2026 10:00' is not a value of type TIMESTAMP")
    "declare ts VARCHAR and write TIMESTAMP BY strptime(ts, '%d.%m.%Y %H:%M')"
    """
    if found := _NO_VALUE.fullmatch(reason):
        column, value, type_, _ = found.groups()
        if value.strip().lower() in MISSING:
            return f"if '{value.strip()}' stands for NULL in a csv file, set the option nullValue '{value.strip()}'"
        of = _of_time if type_ in ("TIMESTAMP", "DATE") else _of_value
        type_, more = of(quoted(column), value.strip(), type_)
        return _declared(column, type_, declared, columns) + more
    if (found := _NO_TIME.fullmatch(reason)) and (formats := guessed(found[2])):
        return f"write TIMESTAMP BY {_strptime(quoted(found[1]), formats)}"
    if found := _NULL_TIME.fullmatch(reason):
        return f"a row needs a time; fill {quoted(found[1] or found[2])}, or take the time from another column"
    if (found := _COLUMNS.fullmatch(reason)) and (sep := separator(found[2], int(found[1]))):
        return f"if {sep} stands between the columns, set sep '{sep}'"
    if "utf-8" in reason.lower():
        return "if the text is Latin-1 (Windows), convert the file, as in: iconv -f LATIN1 -t UTF-8 OLD > NEW"
    return "write one object a line, as jq -c does" if reason.startswith(_NO_OBJECT) else ""


def _declared(column: str, type_: str, declared: str, columns: pa.Schema | None) -> str:
    """How to declare a column as this type: with all others, because a declaration has all columns."""
    if columns is None:
        return f"declare {quoted(column)} {type_}"
    types = {field.name: type_ if field.name == column else sql_type(field.type) for field in columns}
    listed = ", ".join(f"{quoted(name)} {written}" for name, written in types.items())
    whole = f": CREATE {declared} ({listed})" if len(types) <= _MOST_LISTED else ""
    return f"declare the columns, with {quoted(column)} as {type_}{whole}"


def _of_time(name: str, value: str, type_: str) -> tuple[str, str]:
    """The type to declare for a column of times, and what to write besides."""
    formats = guessed(value)
    if value.isdecimal() and not formats:
        function = next((known for digits, known in _EPOCHS if len(value) <= digits), "make_timestamp")
        return "BIGINT", f" and write TIMESTAMP BY {function}({name})"
    if type_ == "DATE" and formats[:1] and formats[0].startswith("%Y-%m-%d"):
        return "TIMESTAMP", ""
    written = _strptime(name, formats) if formats else f"strptime({name}, FORMAT), {_FALLBACK}"
    return "VARCHAR", f" and write TIMESTAMP BY {written}"


def _of_value(name: str, value: str, type_: str) -> tuple[str, str]:
    """The type to declare for another column, and what to add."""
    if type_ in _WHOLE and _NUMBER.fullmatch(value):
        whole = value.lstrip("+-").isdecimal()
        wide = "BIGINT" if whole and abs(int(value)) < 1 << 63 else "DECIMAL(38, 0)"
        return wide if whole else "DOUBLE", ""
    return "VARCHAR", " if such values are right"


def _strptime(name: str, formats: tuple[str, ...]) -> str:
    more = f", or '{formats[1]}' if the month comes first" if len(formats) > 1 else ""
    return f"strptime({name}, '{formats[0]}'){more}"
