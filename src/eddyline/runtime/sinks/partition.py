"""PARTITION BY: rows in folders `column=value`, named as Spark names them.

NULL is `__HIVE_DEFAULT_PARTITION__`, and so is an empty text, as with Spark: readers take both for NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound.as_text import as_text
from eddyline.bound.types import sql_type
from eddyline.cql.names import did_you_mean
from eddyline.errors import SettingError
from eddyline.runtime.sources.folders import NO_VALUE

_ESCAPED = frozenset([*map(chr, range(0x20)), *"\"#%'*/:=?\\\x7f{[]^"])
"""The characters that Spark escapes in the name of a folder, and NUL, which no name can hold."""
_TYPES = (
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_decimal,
)


class Partition:
    """Divides rows into folders by some of their columns; without columns all rows are in the sink's folder itself."""

    def __init__(self, columns: Sequence[str], schema: pa.Schema) -> None:
        """SettingError for columns by which rows cannot be divided."""
        self._columns = [_found(name, schema) for name in columns]
        for name in self._columns:
            if not name or name.startswith((".", "_")):
                raise SettingError(
                    f'PARTITION BY "{name}": many readers skip folders whose name begins with . or _ or =;'
                    " give the column another name with AS"
                )
            type_ = schema.field(name).type
            type_ = type_.value_type if pa.types.is_dictionary(type_) else type_
            if not any(allowed(type_) for allowed in _TYPES):
                raise SettingError(
                    f"PARTITION BY {name}: a column of type {sql_type(type_)} cannot name folders;"
                    " a whole number, text, a date, a time or a boolean can"
                )
        self.rest = pa.schema([field for field in schema if field.name not in self._columns])
        """The columns of the files: all but those that name folders."""
        if not self.rest.names and schema.names:
            raise SettingError("PARTITION BY names all columns; leave one for the files")

    @property
    def of_nothing(self) -> str:
        """The folder of a file without rows."""
        return "/".join(_folder(name, "") for name in self._columns)

    def split(self, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """The rows of each folder, without the columns that name it."""
        if not self._columns or not table.num_rows:
            yield "", table
            return
        codes = np.zeros(table.num_rows, np.int64)
        encoded = []
        for name in self._columns:
            values = pc.dictionary_encode(_text(pa.concat_arrays(table.column(name).chunks)))
            number = values.indices.to_numpy()
            encoded.append((number, [_folder(name, value) for value in values.dictionary.to_pylist()]))
            codes = np.unique(codes * len(values.dictionary) + number, return_inverse=True)[1]
        order = np.argsort(codes, kind="stable")
        sorted_ = table.select(self.rest.names).take(pa.array(order))
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            folder = "/".join(folders[number[order[start]]] for number, folders in encoded)
            yield folder, sorted_.slice(start, end - start)


def _found(name: str, schema: pa.Schema) -> str:
    for column in schema.names:
        if column.lower() == name.lower():
            return str(column)
    raise SettingError(f"PARTITION BY {name}: there is no such column{did_you_mean(name, schema.names)}")


def _text(values: pa.Array) -> pa.Array:
    """Each value as text for the name of a folder, NULL as an empty text; times without zeros at their ends."""
    text = as_text(values)
    if pa.types.is_timestamp(values.type):
        text = pc.replace_substring_regex(text, r"\.?0*(Z?)$", r"\1") if values.type.unit != "s" else text
    return pc.coalesce(text, "")


def _folder(name: str, value: str) -> str:
    """The name of a folder.

    >>> _folder("at", "10:30 %"), _folder("at", "")
    ('at=10%3A30 %25', 'at=__HIVE_DEFAULT_PARTITION__')
    """
    return f"{_escaped(name)}={_escaped(value) or NO_VALUE}"


def _escaped(text: str) -> str:
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in text)
