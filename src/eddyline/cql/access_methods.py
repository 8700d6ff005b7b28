"""The grammar of access methods: `SCAN` and `INDEX ON (column, ...)` behind CREATE TABLE.

A method is the tuple of its index columns as they are written; a scan has none.
"""

from __future__ import annotations

from eddyline.cql.column_list import read_column_list
from eddyline.cql.places import Place, shown
from eddyline.cql.tokens import Cursor, is_word

Methods = tuple[tuple[str, ...], ...]

_FORM = "INDEX ON (id)"


def begins_method(cursor: Cursor) -> bool:
    """Whether the next word begins an access method."""
    return is_word(cursor.token, "SCAN", "INDEX")


def read_method(cursor: Cursor, kind: str, known: Methods, places: dict[str, Place]) -> tuple[str, ...]:
    """Read one access method behind the `known` methods. `places` gets the place of each index column
    (`place_of_column`)."""
    if kind != "TABLE":
        words = "SCAN" if is_word(cursor.token, "SCAN") else "INDEX ON"
        cursor.fail(f"a {kind.lower()} cannot have {words}; it belongs to a table")
    at = cursor.at
    if cursor.match("SCAN"):
        if () in known:
            cursor.at = at
            cursor.fail("SCAN is said twice; leave one out")
        return ()
    cursor.take()
    if not cursor.match("ON"):
        cursor.expected(f"ON and the columns of the index, as in {_FORM}")
    empty = "this index has no column; name the columns that must be bound, or write SCAN"
    listed = read_column_list(cursor, _FORM, "in this index", empty)
    for number, (_, place) in enumerate(listed):
        places[place_of_column(len(known), number)] = place
    columns = tuple(name for name, _ in listed)
    if {column.lower() for column in columns} in [{column.lower() for column in other} for other in known]:
        cursor.at = at
        names = ", ".join(shown(column)[1:-1] for column in columns)
        cursor.fail(f"there is an index on ({names}) already; leave one out")
    return columns


def place_of_column(method: int, column: int) -> str:
    """The key of an index column in `Declaration.places`."""
    return f"method {method} column {column}"
