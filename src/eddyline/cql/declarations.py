"""The grammar of CREATE STREAM, CREATE TABLE and CREATE SINK.

Only the grammar is checked here. The binder checks names and types, also of streams that a Python program declares.
"""

from __future__ import annotations

from typing import NoReturn

import pyarrow as pa
from sqlglot.tokenizer_core import Token, TokenType

from eddyline.cql.access_methods import begins_method, read_method
from eddyline.cql.column_list import read_column_list
from eddyline.cql.declaration import Declaration, DeclaredMethod
from eddyline.cql.durations import read_duration
from eddyline.cql.limits import COLUMNS
from eddyline.cql.names import did_you_mean
from eddyline.cql.option_list import read_options
from eddyline.cql.places import shown, wrong
from eddyline.cql.tokens import Cursor, is_name, is_string, is_word
from eddyline.cql.types import read_type

KINDS = ("STREAM", "TABLE", "SINK")


def read_declaration(cursor: Cursor) -> Declaration:
    """Read the rest of a CREATE statement, after the word CREATE."""
    kind = _read_kind(cursor)
    place = cursor.place()
    name = cursor.name(f"the name of the {kind.lower()}")
    columns = _read_columns(cursor, kind)
    if not cursor.match("USING"):
        cursor.expected(
            f"USING and a format, as in CREATE {kind} {shown(name)[1:-1]} USING parquet OPTIONS (path 'data')"
        )
    places = {"format": cursor.place()}
    format = _read_format(cursor)
    spelled: dict[str, str] = {}
    options = read_options(cursor, places, spelled)
    time, late, dead, lateness = None, None, None, None
    partition: tuple[str, ...] = ()
    methods: tuple[DeclaredMethod, ...] = ()
    dead_at = 0
    while cursor.token is not None:
        at = cursor.at
        seen = False
        if kind == "SINK" and not partition and cursor.match_type(TokenType.PARTITION_BY):
            partition = tuple(name for name, _ in read_column_list(cursor, "PARTITION BY (country, day)"))
            continue
        if begins_method(cursor):
            methods = (*methods, read_method(cursor, kind, options, methods, places, spelled))
            continue
        if cursor.match("TIMESTAMP", "BY"):
            places["time"] = cursor.place()
            seen, time = time is not None, _read_time(cursor)
        elif cursor.match("LATENESS"):
            seen, lateness = lateness is not None, read_duration(cursor, "LATENESS", "LATENESS 1 SECOND")
        elif cursor.match("LATE", "INTO"):
            places["late"] = cursor.place()
            seen, late = late is not None, cursor.name("the name of a sink")
        elif cursor.match("DEAD", "INTO"):
            places["dead"] = cursor.place()
            seen, dead, dead_at = dead is not None, cursor.name("the name of a sink"), at
            if kind == "TABLE" and not seen:
                continue  # allowed if there are access methods
        else:
            _refuse_clause(cursor, kind)
        if seen or kind != "STREAM":
            cursor.at = at
            _refuse_repeated_or_timed(cursor, kind, seen)
    if kind == "TABLE" and dead is not None and not methods:
        cursor.at = dead_at
        _refuse_repeated_or_timed(cursor, kind, False)
    if methods and columns is None:
        form = f"CREATE TABLE {shown(name)[1:-1]} (id BIGINT, name VARCHAR) USING {format}"
        message = f"table {shown(name)} is asked for its rows, so its columns must be declared; write {form}"
        raise wrong(cursor.text, place, message)
    return Declaration(
        kind,
        name,
        columns,
        format,
        options,
        time,
        lateness or 0,
        late,
        dead,
        place,
        places,
        partition,
        spelled,
        methods,
    )


def _read_time(cursor: Cursor) -> str:
    """The time column, or an expression as it is written: up to the next clause."""
    start, first = cursor.at, cursor.token
    if is_name(first) and not is_word(first, "CASE") and not _goes_on(cursor.peek(1)):
        return cursor.name("")
    while cursor.token is not None and (cursor.at == start or not _begins_clause(cursor)):
        cursor.take()
    if cursor.at == start:
        cursor.expected("a time column, or an expression such as epoch_ms(ms)")
    return cursor.text[cursor.tokens[start].start : cursor.tokens[cursor.at - 1].end + 1]


def _goes_on(token: Token | None) -> bool:
    """Whether this token, which follows a name, shows that the name begins an expression."""
    if token is None or is_word(token, "AT", "AS"):
        return token is not None
    return is_string(token) or not (token.text[:1].isalpha() or is_name(token))


def _begins_clause(cursor: Cursor) -> bool:
    pair = cursor.token, cursor.peek(1)
    return is_word(pair[0], "LATENESS") or any(
        is_word(pair[0], one) and is_word(pair[1], two)
        for one, two in (("LATE", "INTO"), ("DEAD", "INTO"), ("TIMESTAMP", "BY"))
    )


def _read_kind(cursor: Cursor) -> str:
    for kind in KINDS:
        if cursor.match(kind):
            return kind
    word = cursor.token.text if cursor.token is not None else ""
    if word.upper() in ("OR", "TEMP", "TEMPORARY", "EXTERNAL", "IF"):
        cursor.fail(
            f"CREATE {word.upper()} is not supported; write CREATE STREAM, CREATE TABLE or CREATE SINK and a name"
        )
    hint = did_you_mean(word, KINDS)
    if hint.startswith("; did"):
        cursor.fail(f"CREATE {shown(word)[1:-1]} is not known{hint}")
    cursor.expected("STREAM, TABLE or SINK after CREATE")


def _read_format(cursor: Cursor) -> str:
    """A word, words with hyphens between them, or a string."""
    what = "a format such as parquet, csv or json"
    if cursor.token is not None and is_string(cursor.token) and cursor.token.text:
        return cursor.take().text.lower()
    words = [cursor.name(what)]
    while cursor.match_type(TokenType.DASH):
        words.append(cursor.name(what))
    return "-".join(words).lower()


def _refuse_repeated_or_timed(cursor: Cursor, kind: str, repeated: bool) -> NoReturn:
    words = " ".join(t.text.upper() for t in cursor.tokens[cursor.at : cursor.at + 2])
    words = "LATENESS" if words.startswith("LATENESS") else words
    if repeated:
        cursor.fail(f"{words} is said twice; leave one out")
    if kind == "TABLE":
        cursor.fail(f"a table has no time, so it cannot have {words}; leave it out, or write CREATE STREAM")
    cursor.fail(f"a sink cannot have {words}; it belongs to a stream")


def _refuse_clause(cursor: Cursor, kind: str) -> NoReturn:
    if kind == "SINK":
        cursor.expected("OPTIONS, PARTITION BY or ';' to end the statement")
    if kind != "STREAM":
        cursor.expected("OPTIONS, SCAN, INDEX ON or ';' to end the statement")
    cursor.expected("TIMESTAMP BY, LATENESS, LATE INTO, DEAD INTO or ';' to end the statement")


_WATERMARK = "write it behind the options, as in TIMESTAMP BY ts LATENESS 5 SECONDS"


def _read_columns(cursor: Cursor, kind: str) -> tuple[tuple[str, pa.DataType], ...] | None:
    if cursor.token is None or cursor.token.token_type != TokenType.L_PAREN:
        return None
    if kind == "SINK":
        cursor.fail("a sink has the columns of the query; leave the list out")
    cursor.take()
    columns: dict[str, tuple[str, pa.DataType]] = {}
    while True:
        at = cursor.at
        if len(columns) == COLUMNS.most:
            cursor.fail(COLUMNS.sentence)
        if is_word(cursor.token, "WATERMARK") and is_word(cursor.peek(1), "FOR"):
            cursor.fail(_WATERMARK)
        name = cursor.name("the name of a column")
        if name.lower() in columns:
            cursor.at = at
            cursor.fail(f"column {shown(name)} is listed twice; name it once")
        columns[name.lower()] = name, _read_column_type(cursor, name)
        if cursor.match_type(TokenType.R_PAREN):
            return tuple(columns.values())
        if not cursor.match_type(TokenType.COMMA):
            cursor.expected("',' or ')' after the type of a column")


def _read_column_type(cursor: Cursor, name: str) -> pa.DataType:
    start, depth = cursor.at, 0
    while cursor.token is not None:
        type = cursor.token.token_type
        if depth == 0 and type in (TokenType.COMMA, TokenType.R_PAREN):
            break
        depth += (type in (TokenType.L_PAREN, TokenType.L_BRACKET)) - (type in (TokenType.R_PAREN, TokenType.R_BRACKET))
        cursor.take()
    if cursor.at == start:
        cursor.expected(f"the type of column {shown(name)}, as in {shown(name)[1:-1]} BIGINT")
    return read_type(cursor.text, cursor.tokens[start : cursor.at])
