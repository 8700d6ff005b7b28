"""Whether the first line of a csv file is a header, and whether it names the declared columns.

A header is matched by name, in any case. A file whose header lacks a declared column is refused: its columns are never
taken by position, which would read one column as another. Only `header 'false'` means position.

With `header 'auto'` the line is a header if it names every declared column. Otherwise it is data, unless it looks like
a header of other columns: then every field at the place of a column that is not text is a word, and not a value of that
column's type. (A number or a date in another notation is not a word: such a line is a dead row with a reason, as any
other.) If all columns are text, one field that is the name of a declared column makes the line a header.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from eddyline.bound.types import sql_type
from eddyline.runtime.values.text import cast_text, is_text


def is_header(fields: Sequence[str], declared: pa.Schema) -> bool:
    """Whether a line reads as a header, of these columns or of others.

    >>> declared = pa.schema([("ts", pa.timestamp("us")), ("name", pa.string())])
    >>> [is_header(fields, declared) for fields in (["time", "nm"], ["2026-01-01", "x"], ["1.2.26", "x"])]
    [True, False, False]
    """
    if not missing(fields, declared.names):
        return True
    typed = [(f, c.type) for f, c in zip(fields, declared, strict=False) if f and not is_text(c.type)]
    if not any(not is_text(column.type) for column in declared):
        return len(missing(fields, declared.names)) < len(declared)
    return bool(typed) and all(_is_word(f) and not _reads(f, type_) for f, type_ in typed)


def missing(fields: Sequence[str], names: Sequence[str]) -> list[str]:
    """The columns that a header does not name."""
    found = {field.lower() for field in fields}
    return [name for name in names if name.lower() not in found]


def places(fields: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """The name of each column in a header: the same name, else one in another case; "" if the header does not name
    it."""
    by_name = {field.lower(): field for field in reversed(fields)}
    return {name: name if name in fields else by_name.get(name.lower(), "") for name in names}


def twice(fields: Sequence[str], names: Sequence[str]) -> str:
    """A column that a header names more than once; "" if there is none. A name in the same case is preferred to others.

    >>> twice(["id", "ID"], ["id"]), twice(["id", "ID"], ["Id"]), twice(["id", "id"], ["id"])
    ('', 'Id', 'id')
    """
    lower = [field.lower() for field in fields]
    return next((n for n in names if fields.count(n) > 1 or (n not in fields and lower.count(n.lower()) > 1)), "")


def misfit(fields: Sequence[str], schema: pa.Schema, certain: bool) -> str:
    """Why a header is refused, as text that follows the name of the file. `certain` says that every file must have a
    header: the script says so, or the columns were taken from the header of the first file."""
    line, lacks = ", ".join(fields), ", ".join(missing(fields, schema.names))
    if certain and not is_header(fields, schema):
        columns = ", ".join(f"{column.name} {sql_type(column.type)}" for column in schema)
        return (
            f"begins with {line}, which is no header with {lacks}; if that is data, declare the columns,"
            f" ({columns}), with header 'auto'"
        )
    sep = separator(line, len(schema)) if len(fields) == 1 else ""
    how = (
        f"if {sep} stands between its columns, set sep '{sep}'"
        if sep
        else (
            "Columns are found by name: declare them as every file names them"
            + ("" if certain else ", or set header 'false' if its first line is data")
        )
    )
    return (
        f"{'has' if certain else 'seems to have'} the header {line}, which lacks {lacks}; the columns are"
        f" {', '.join(schema.names)}. {how}"
    )


def separator(line: str, columns: int) -> str:
    """The usual separator that divides a line into `columns` columns, as the option `sep` is written; "" if none does.

    >>> separator("ts;id", 2), separator("ts\\tid", 2), separator("a;b", 3)
    (';', '\\\\t', '')
    """
    found = next((sep for sep in ",;\t|" if line.count(sep) == columns - 1 > 0), "")
    return "\\t" if found == "\t" else found


def _is_word(field: str) -> bool:
    return field[0].isalpha() or field[0] == "_"


def _reads(field: str, type_: pa.DataType) -> bool:
    return cast_text(pa.array([field]), type_)[1] is None
