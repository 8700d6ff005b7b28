"""Fields of structs: `s.field`. Names are case-insensitive, as those of columns are; an exact spelling goes first."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import types as t
from eddyline.bound.expr import Expr, Value
from eddyline.bound.functions.build import constant, count, make
from eddyline.bound.functions.table import Function
from eddyline.bound.types import TypeMismatch, sql_type
from eddyline.cql.names import did_you_mean, same
from eddyline.cql.places import shown


def _struct_extract(args: tuple[Expr, ...], variant: str) -> Expr:
    count("struct_extract", args, 1 if variant else 2)
    name = variant or constant("struct_extract", args[1], "the name of the field")
    struct = args[0]
    if not isinstance(name, str):
        raise TypeMismatch("the name of the field of struct_extract must be a string")
    if not pa.types.is_struct(struct.type):
        hint = f"; if it holds JSON, write x->>{shown(name)}" if t.logical(struct.type) == t.STRING else ""
        raise TypeMismatch(f"{sql_type(struct.type)} has no fields, so no {shown(name)}{hint}")
    fields = [struct.type.field(i) for i in range(struct.type.num_fields)]
    found = [i for i, f in enumerate(fields) if f.name == name]
    found = found or [i for i, f in enumerate(fields) if same(f.name, name)]
    if len(found) != 1:
        hint = did_you_mean(name, [f.name for f in fields])
        raise TypeMismatch(f"this struct has no field {shown(name)}{hint}")
    at, field = found[0], fields[found[0]]

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        return t.decode(pc.struct_field(args[0], at))

    return make("struct_extract", [struct], t.logical(field.type), kernel, field.name)


FUNCTIONS = (
    Function(
        "struct_extract",
        "Nested values",
        "s.field, struct_extract(s, 'field')",
        "the type of the field",
        "A field of a struct, also of one in another: `o.payload.customer.id`. NULL where the struct is.",
        _struct_extract,
    ),
)
