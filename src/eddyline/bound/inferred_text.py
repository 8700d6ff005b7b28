"""Why an inferred column is text: the first value that is not of the type of most others, and the formats of its times.

A reader notes this in the metadata of the column's field when it infers types, and the file in that of the schema. The
binder reads it for error messages, and a run for its warnings. Two fields that differ only in metadata are equal, so a
note never changes what is computed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from eddyline.cql.places import shown

MISSING = ("", "na", "n/a", "nan", "null", "nil", "none", "-", "--", "?", "\\n", "missing", "unknown")
"""Common spellings of a missing value, in lower case."""
_KEY, _FILE = b"eddyline.text", b"eddyline.file"


@dataclass(frozen=True)
class TextNote:
    """`type` is the SQL type of most values, `value` the first value of another type, `place` says where it is. They
    are empty if most values are text. `formats` are the formats of strptime that read most values."""

    type: str = ""
    value: str = ""
    place: str = ""
    csv: bool = False
    formats: tuple[str, ...] = ()

    @property
    def is_missing(self) -> bool:
        """Whether the value stands for a missing one."""
        return bool(self.type) and self.value.strip().lower() in MISSING

    @property
    def because(self) -> str:
        """Why the column is text, to follow the name of the column."""
        return f"is text because of {shown(self.value)} ({self.place})"

    def remedy(self, column: str, written: str) -> str:
        """What to write, for a column that the query writes as `written`."""
        declare = f"declare the columns with {column} {self.type} and such rows are dead"
        if self.is_missing and self.csv:
            return f"set nullValue {shown(self.value)} and such values are NULL, or {declare}"
        return f"{declare}, or write CAST({written} AS {self.type}) and such values are NULL"


def noted(field: pa.Field, note: TextNote) -> pa.Field:
    """The field with a note.

    >>> note_of(noted(pa.field("km", pa.string()), TextNote("DOUBLE", "n/a", "a.csv, line 3"))).because
    "is text because of 'n/a' (a.csv, line 3)"
    """
    return field.with_metadata({_KEY: json.dumps(asdict(note))})


def note_of(field: pa.Field) -> TextNote | None:
    """The note of a field, if it has one."""
    text = (field.metadata or {}).get(_KEY)
    if text is None:
        return None
    known = json.loads(text)
    return TextNote(**{**known, "formats": tuple(known["formats"])})


def from_file(schema: pa.Schema, path: Path) -> pa.Schema:
    """The schema with the file from which it was inferred."""
    return schema.with_metadata({_FILE: str(path)})


def file_of(schema: pa.Schema) -> str:
    """The file from which a schema was inferred; "" if it was not."""
    return str((schema.metadata or {}).get(_FILE, b""), "utf-8")


def with_file_of(schema: pa.Schema, other: pa.Schema) -> pa.Schema:
    """The schema with the file from which another one was inferred."""
    path = file_of(other)
    return from_file(schema, Path(path)) if path else schema
