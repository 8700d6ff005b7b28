"""The event time of a stream: a TIMESTAMP column, or an expression over its columns.

An expression becomes a column, the last one of the stream, so every stage after the intake sees a time column. The
query can name it only if the script named it (`TIMESTAMP BY epoch_ms(ms) AS ts`); the same expression in the query also
means that column.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count

import pyarrow as pa
from sqlglot import exp

from eddyline.bound import functions
from eddyline.bound import types as t
from eddyline.bound.bind_expr import Binder
from eddyline.bound.bind_hints import Clause
from eddyline.bound.bind_names import NameScope
from eddyline.bound.expr import Expr, SourceColumn, columns_of, is_expensive
from eddyline.bound.inferred_text import TextNote, file_of, note_of
from eddyline.bound.model import BoundSource, BoundStream, ComputedTime
from eddyline.cql.declaration import Declaration
from eddyline.cql.event_time import TimeClause, read_time
from eddyline.cql.names import did_you_mean, same
from eddyline.cql.places import Place, shown, wrong
from eddyline.cql.quoting import quoted
from eddyline.errors import ScriptError

_VALUE = re.compile(r"[-+.]?[0-9]")
"""The beginning of a number or of a time, which is not that of a column's name."""
_HIDDEN = "event time"
_CLAUSE = Clause("TIMESTAMP BY", window_end="it is known only for the rows of an aggregate with SLIDE")


def timed(text: str, declaration: Declaration, schema: pa.Schema) -> BoundStream:
    """The stream of a declaration that has a time."""
    time, name = declaration.time or "", declaration.name
    spelling = [n for n in schema.names if n == time] or [n for n in schema.names if same(n, time)]
    if len(spelling) == 1 and pa.types.is_timestamp(schema.field(spelling[0]).type):
        return BoundStream(name, schema, spelling[0], declaration.lateness)
    if "time" in declaration.places:
        return _computed(text, declaration.places["time"], declaration, schema)
    written = f'"{time}"' if spelling or time.isidentifier() else time  # a Python program may name any column
    try:
        return _computed(written, Place(1, 1), declaration, schema)
    except ScriptError as error:
        message = error.message.replace("TIMESTAMP BY", "time")
        raise ScriptError(f"stream {name}, time={time!r}: {message}") from error


def _computed(text: str, place: Place, declaration: Declaration, schema: pa.Schema) -> BoundStream:
    scope = NameScope(text, (BoundSource(declaration.name, BoundStream(declaration.name, schema, None)),))
    clause = read_time(text, place, declaration.time or "")
    if isinstance(clause.expr, exp.Column) and not clause.expr.table and scope.column(clause.expr)[0] is None:
        missing = clause.expr.name
        raise wrong(
            text,
            place,
            f"stream {shown(declaration.name)} has no column {shown(missing)} to take the time from"
            f"{did_you_mean(missing, schema.names, columns=True)}{_of_file(declaration, schema)}",
        )
    bound = Binder(scope).bind(clause.expr, _CLAUSE)
    if is_expensive(bound):
        raise wrong(text, place, "TIMESTAMP BY cannot call a user function; compute the time before, or from columns")
    if bound.type == t.DATE:
        bound = functions.cast(bound, t.TIMESTAMP)
    if not pa.types.is_timestamp(bound.type):
        raise wrong(text, place, _not_a_time(bound, clause, schema, "time" not in declaration.places))
    if not columns_of(bound):
        raise wrong(text, place, "the event time must depend on a column; every row would have the same one")
    column = _name(text, place, clause, schema)
    known = schema.append(pa.field(column, bound.type))
    computed = ComputedTime(bound, clause.written, clause.name is not None)
    return BoundStream(declaration.name, known, column, declaration.lateness, computed)


def _of_file(declaration: Declaration, schema: pa.Schema) -> str:
    """The file that gave the columns, if it is one of several, and what may be wrong with a csv file: all its columns
    were read as one, or it has no header."""
    file = file_of(schema)
    told = f" (from {file})" if file and file != declaration.options.get("path") else ""
    if declaration.format != "csv":
        return told
    if file and 2 * sum(_VALUE.match(name) is not None for name in schema.names) >= len(schema):
        told += "; if the first line is no header, set header 'false'"
    if len(schema) == 1:
        sep = next((written for sep, written in ((";", ";"), ("\t", "\\t"), ("|", "|")) if sep in schema.names[0]), "")
        told += f"; if {sep} stands between columns, set sep '{sep}'" if sep else ""
    return told


def _name(text: str, place: Place, clause: TimeClause, schema: pa.Schema) -> str:
    """The name of a computed time column: the name from the script, or one that no other column has."""
    if clause.name is None:
        return next(n for i in count(1) if (n := f"{_HIDDEN}{i if i > 1 else ''}") not in schema.names)
    if any(same(clause.name, column) for column in schema.names):
        raise wrong(text, place, f"there is a column {shown(clause.name)} already; give the event time another name")
    return clause.name


def _not_a_time(bound: Expr, clause: TimeClause, schema: pa.Schema, python: bool) -> str:
    """A hint what to write instead of an expression that is not a time, in a script or in a Python program."""

    def by(expression: str) -> str:
        return f"time={expression!r}" if python else f"TIMESTAMP BY {expression}"

    type, written = t.logical(bound.type), shown(clause.written)[1:-1]
    if python and isinstance(bound, SourceColumn):
        written = quoted(bound.name)
    note = note_of(schema.field(bound.name)) if isinstance(bound, SourceColumn) else None
    what = "the time column" if isinstance(bound, SourceColumn) else "the event time"
    what = f"{what} {shown(written)} is {t.sql_type(bound.type)}, not TIMESTAMP"
    if note is not None and note.type:
        what += f", because of {shown(note.value)} ({note.place})"
    if note is not None and note.type.startswith(("TIMESTAMP", "DATE")):
        declare = f"declare the columns, with {written} {note.type}"
        return f"{what}; write {by(f'CAST({written} AS {note.type})')}, or {declare}; such rows are dead"
    if t.is_number(type):
        whole = t.is_integer(type)
        seconds = f"{by(f'to_timestamp({written})')} if these are seconds since 1970"
        how = f"{seconds}, epoch_ms({written}) for milliseconds, make_timestamp({written}) for microseconds"
        how = how if whole else seconds
    elif type == t.STRING:
        how = _of_text(written, note, by)
    else:
        how = "a TIMESTAMP column, or an expression that gives a TIMESTAMP"
    return f"{what}; write {how}"


def _of_text(written: str, note: TextNote | None, by: Callable[[str], str]) -> str:
    """How to write a text as a time: with the format of the data if that is known."""
    if note is not None and note.formats:
        first, *others = note.formats
        more = f", or '{others[0]}' if the month comes first" if others else ""
        return by(f"strptime({written}, '{first}')") + more
    return (
        by(f"strptime({written}, '%d.%m.%Y %H:%M:%S')")
        + f", with the format of the text, or CAST({written} AS TIMESTAMP)"
    )
