"""The error message for a call whose arguments have wrong types.

It quotes the arguments and says what to write instead.

A column may be text only because of one value of its file. Then the message names that value.
"""

from __future__ import annotations

from sqlglot import exp

from eddyline.bound import types as t
from eddyline.bound.bind_names import NameScope
from eddyline.bound.inferred_text import note_of
from eddyline.bound.types import TypeMismatch, sql_type
from eddyline.cql.dialect import EDDYLINE
from eddyline.cql.places import shown
from eddyline.cql.quoting import quoted

_MOST_NAMED = 3


def mismatch(scope: NameScope, node: exp.Expr, error: TypeMismatch) -> str:
    """The message for a node whose call cannot be typed."""
    parts = list(node.iter_expressions())
    noted = [told for part in parts if isinstance(part, exp.Column) and (told := _why_text(scope, part))]
    message = _named(parts, error, cast=not noted) if error.unlike else str(error)
    if not noted and error.from_text:
        return f"{message}; if the text is one, write {node.name.upper()}(CAST({_text(parts[0])} AS DOUBLE))"
    return f"{message}; {noted[0]}" if noted else message


def _named(parts: list[exp.Expr], error: TypeMismatch, cast: bool) -> str:
    """The message of arguments of several types, with their texts if there are few."""
    if len(parts) != len(error.unlike) or len(parts) > _MOST_NAMED:
        return str(error)
    types = [t.logical(type) for type in error.unlike]
    told = [f"{_text(part)} is {sql_type(type)}" for part, type in zip(parts, types, strict=True)]
    message = f"{str(error).partition(', not (')[0]}, but {', '.join(told[:-1])} and {told[-1]}"
    if not cast:
        return message
    others = list(dict.fromkeys(type for type in types if type not in (t.STRING, t.NULL)))
    texts = [part for part, type in zip(parts, types, strict=True) if type == t.STRING]
    if not texts or len(others) != 1:
        return f"{message}; write a CAST"
    number = any(isinstance(part, exp.Literal) and not part.is_string for part in parts)  # 5 does not say: no fractions
    return f"{message}; write CAST({_text(texts[0])} AS {'DOUBLE' if number else sql_type(others[0])})"


def _why_text(scope: NameScope, part: exp.Column) -> str:
    """Why a column is text and what to write; empty if nothing is known."""
    column, fields = scope.column(part)
    if column is None or fields:
        return ""
    stream = scope.sources[column.source].stream
    note = note_of(stream.schema.field(column.name))
    if note is None or not note.type:
        return ""
    name = quoted(column.name)
    return f"{name} of {stream.name} {note.because}; {note.remedy(name, _text(part))}"


def _text(part: exp.Expr) -> str:
    return shown(part.sql(dialect=EDDYLINE))[1:-1]
