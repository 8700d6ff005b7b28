"""The access methods of a table that is asked: index columns are resolved and their types checked.

An index is asked with values of its columns, so equal values must be equal there, too: nested values are not compared
at all, and times with nanoseconds are compared in microseconds, where several values of the column are equal.
"""

from __future__ import annotations

import pyarrow as pa

from eddyline.bound.model import AccessMethod
from eddyline.bound.types import is_opaque, sql_type
from eddyline.cql.access_methods import place_of_column
from eddyline.cql.declaration import Declaration, DeclaredMethod
from eddyline.cql.names import did_you_mean, same
from eddyline.cql.places import shown, wrong


def access_methods(text: str, declaration: Declaration, schema: pa.Schema) -> tuple[AccessMethod, ...]:
    """The access methods of a declaration, with column names as the schema spells them. Raises ScriptError for an index
    column that the table does not have or that cannot be asked for."""
    methods = []
    for number, method in enumerate(declaration.methods):
        found = []
        for at, written in enumerate(method.columns):
            place = declaration.places.get(place_of_column(number, at), declaration.place)
            name = next((name for name in schema.names if same(name, written)), None)
            if name is None:
                hint = did_you_mean(written, schema.names)
                raise wrong(
                    text, place, f"table {shown(declaration.name)} has no column {shown(written)} to index{hint}"
                )
            type = schema.field(name).type
            if pa.types.is_timestamp(type) and type.unit == "ns":
                message = f"an index cannot be on {shown(name)}: times are compared in microseconds; declare TIMESTAMP"
                raise wrong(text, place, message)
            if is_opaque(type):
                message = f"an index cannot be on {shown(name)}: values of type {sql_type(type)} cannot be compared"
                raise wrong(text, place, message)
            found.append(name)
        methods.append(AccessMethod(tuple(found), _options(method)))
    return tuple(methods)


def _options(method: DeclaredMethod) -> str:
    """The options of a method for display. What follows a question mark in a URL could be a secret."""
    return ", ".join(f"{key} {shown(value.partition('?')[0])}" for key, value in method.options.items())
