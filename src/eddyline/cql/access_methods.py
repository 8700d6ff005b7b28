"""The grammar of access methods: `SCAN` and `INDEX ON (column, ...)` behind CREATE TABLE, each with OPTIONS or without.

Several indexes on the same columns are replicas: each must be asked with other options than the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from eddyline.cql.column_list import read_column_list
from eddyline.cql.declaration import DeclaredMethod, place_of_method, place_of_option
from eddyline.cql.option_list import read_options
from eddyline.cql.places import Place, shown
from eddyline.cql.tokens import Cursor, is_word

_FORM = "INDEX ON (id)"


def begins_method(cursor: Cursor) -> bool:
    """Whether the next word begins an access method."""
    return is_word(cursor.token, "SCAN", "INDEX")


def read_method(
    cursor: Cursor,
    kind: str,
    of_table: Mapping[str, str],
    known: Sequence[DeclaredMethod],
    places: dict[str, Place],
    spelled: dict[str, str],
) -> DeclaredMethod:
    """Read one access method behind the `known` methods of a table with these options. `places` gets the places of the
    method, its options and its index columns (`place_of_column`), and `spelled` how the options are written."""
    if kind != "TABLE":
        words = "SCAN" if is_word(cursor.token, "SCAN") else "INDEX ON"
        cursor.fail(f"a {kind.lower()} cannot have {words}; it belongs to a table")
    at, number = cursor.at, len(known)
    places[place_of_method(number)] = cursor.place()
    columns = () if cursor.match("SCAN") else _read_index(cursor, number, places)
    same = [other for other in known if _folded(other.columns) == _folded(columns)]
    if same and not columns:
        cursor.at = at
        cursor.fail("SCAN is said twice; leave one out")
    own = read_options(cursor, places, spelled, partial(place_of_option, number))
    if any({**of_table, **other.options} == {**of_table, **own} for other in same):
        cursor.at = at
        names = ", ".join(shown(column)[1:-1] for column in columns)
        cursor.fail(f"there is an index on ({names}) already; leave one out, or give this one OPTIONS of another place")
    return DeclaredMethod(same[0].columns if same else columns, own)


def _read_index(cursor: Cursor, number: int, places: dict[str, Place]) -> tuple[str, ...]:
    cursor.take()
    if not cursor.match("ON"):
        cursor.expected(f"ON and the columns of the index, as in {_FORM}")
    empty = "this index has no column; name the columns that must be bound, or write SCAN"
    listed = read_column_list(cursor, _FORM, "in this index", empty)
    for at, (_, place) in enumerate(listed):
        places[place_of_column(number, at)] = place
    return tuple(name for name, _ in listed)


def _folded(columns: Sequence[str]) -> set[str]:
    return {column.lower() for column in columns}


def place_of_column(method: int, column: int) -> str:
    """The key of an index column in `Declaration.places`."""
    return f"method {method} column {column}"
