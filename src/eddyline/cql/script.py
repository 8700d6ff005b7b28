"""A script: the declarations and the one query of a job, parsed but not yet bound.

    >>> stream = "CREATE STREAM s USING json OPTIONS (path 'd') TIMESTAMP BY ts"
    >>> script = parse(f"{stream}; SELECT x FROM s [RANGE 5 MINUTES] AS a")
    >>> script.declarations[0].options["path"], script.sources[0].alias, script.sources[0].window.size
    ('d', 'a', 300000000)

Only the grammar is checked here. Whatever the text, `parse` gives a script or raises ScriptError, nothing else: sqlglot
is called in two places only (its tokenizer, its parser), and both turn anything it raises into a ScriptError.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from eddyline.cql.declaration import Declaration
from eddyline.cql.declarations import read_declaration
from eddyline.cql.dialect import parse_query
from eddyline.cql.names import did_you_mean
from eddyline.cql.places import Place, place_at, shown, wrong
from eddyline.cql.refusals import check_select, check_tokens, check_windows
from eddyline.cql.sources import FromItem, find_from, read_sources
from eddyline.cql.tokens import Cursor, check_brackets, depth_change, is_name, is_quoted, is_word, tokenize
from eddyline.cql.window_calls import read_group_windows
from eddyline.cql.windows import WindowClause

__all__ = ["Declaration", "FromItem", "Place", "Script", "WindowClause", "parse"]

_STATEMENTS = ("CREATE", "INSERT", "SELECT")
_GO_ON = ("FROM", "AS", "AND", "OR", "IS", "IN", "NOT", "LIKE", "ILIKE", "BETWEEN", "COLLATE", "DIV")
"""Words with which an item of SELECT goes on after a name."""
_ONE = "a script has one INSERT INTO ... SELECT or one SELECT"


_START = Place(1, 1)


@dataclass(frozen=True)
class Script:
    """A parsed script; `select` is sqlglot's tree of the query without its windows."""

    text: str = field(repr=False)
    declarations: tuple[Declaration, ...]
    insert_into: str | None
    select: exp.Select
    sources: tuple[FromItem, ...]
    insert_place: Place = _START
    items: tuple[str, ...] = ()
    """How each item of SELECT is written, which is the column's name if AS gives none."""
    partial: Place | None = None
    """The place of PARTIAL behind SELECT."""


def parse(text: str) -> Script:
    """Parse a script; ScriptError with a place if the text is not one."""
    declarations: list[Declaration] = []
    query: Script | None = None
    for tokens in _statements(text):
        check_brackets(text, tokens)
        cursor = Cursor(text, tokens)
        if cursor.match("CREATE"):
            declarations.append(read_declaration(cursor))
            continue
        if query is not None and is_word(cursor.token, "INSERT", "SELECT"):
            cursor.fail(f"this is a second query; {_ONE}, so put each in a script of its own")
        query = _read_query(cursor)
    if query is None:
        raise wrong(text, place_at(text, len(text.rstrip())), f"the script has no query; {_ONE}")
    return replace(query, declarations=tuple(declarations))


def _statements(text: str) -> list[list[Token]]:
    statements: list[list[Token]] = [[]]
    for token in tokenize(text):
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    return [tokens for tokens in statements if tokens]


def _read_query(cursor: Cursor) -> Script:
    sink, place = None, cursor.place()
    if cursor.match("INSERT"):
        sink, place = _read_insert(cursor)
    if not is_word(cursor.token, "SELECT"):
        _refuse_statement(cursor, sink)
    tokens = list(cursor.tokens[cursor.at :])
    partial = place_at(cursor.text, tokens[1].start) if _is_partial(tokens) else None
    if partial is not None:
        del tokens[1]
    check_tokens(cursor.text, tokens)
    sources, tokens = read_sources(cursor.text, tokens)
    tokens, window = read_group_windows(cursor.text, tokens, len(sources))
    if window is not None:
        if sources[0].window is not None:
            raise wrong(cursor.text, window.place, "the stream has a window already; leave one of the two out")
        sources = (replace(sources[0], window=window),)
    check_windows(cursor.text, tokens)
    items = _item_texts(cursor.text, tokens)
    select = check_select(cursor.text, tokens, parse_query(cursor.text, tokens), sources, items)
    return Script(cursor.text, (), sink, select, sources, place, items, partial)


def _is_partial(tokens: list[Token]) -> bool:
    """Whether SELECT is followed by the word PARTIAL, and not by a column of this name: then an item begins after
    it."""
    if len(tokens) < 3 or not is_word(tokens[1], "PARTIAL"):
        return False
    begins, after = tokens[2], tokens[3] if len(tokens) > 3 else None
    if begins.token_type == TokenType.STAR:
        return after is None or after.token_type in (TokenType.COMMA, TokenType.FROM)
    is_value = is_quoted(begins) or begins.token_type == TokenType.NUMBER
    return is_value or (is_name(begins) and not is_word(begins, *_GO_ON))


def _item_texts(text: str, tokens: list[Token]) -> tuple[str, ...]:
    """The items between SELECT and FROM as they are written, without comments and with single spaces."""
    items, depth = [""], 0
    for before, token in pairwise(tokens[: find_from(tokens)]):
        if depth == 0 and token.token_type == TokenType.COMMA:
            items.append("")
            continue
        depth += depth_change(token)
        gap = " " if items[-1] and before.end + 1 < token.start else ""
        items[-1] += gap + text[token.start : token.end + 1]
    return tuple(items)


def _read_insert(cursor: Cursor) -> tuple[str, Place]:
    if not cursor.match("INTO"):
        cursor.expected("INTO and a sink, as in INSERT INTO out SELECT ...")
    place = cursor.place()
    sink = cursor.name("the name of a sink")
    if cursor.token is not None and cursor.token.token_type == TokenType.L_PAREN:
        cursor.fail("a sink has the columns of the query; leave the list out and name the columns in SELECT with AS")
    if is_word(cursor.token, "VALUES"):
        cursor.fail("a sink takes the rows of a query; write INSERT INTO ... SELECT ... FROM a stream")
    return sink, place


def _refuse_statement(cursor: Cursor, sink: str | None) -> None:
    token = cursor.token
    if is_word(token, "WITH"):
        cursor.fail(
            "WITH is not supported; write one SELECT over the streams themselves, or a script of its own "
            "for the first query, whose sink the second script reads as a stream"
        )
    if is_word(token, "FROM"):
        cursor.fail("a query begins with SELECT; write SELECT * FROM ...")
    if is_word(token, "EXPLAIN"):
        cursor.fail("EXPLAIN is no statement here; leave it out and run eddyline explain with the script")
    if is_word(token, "SET"):
        cursor.fail("settings are not in the script; give them to the run, as in eddyline run script.sql --set slots=4")
    if token is not None and token.token_type == TokenType.L_PAREN:
        cursor.fail("the query cannot be in brackets; begin it with SELECT")
    if sink is not None:
        cursor.expected("SELECT after INSERT INTO and its sink")
    if token is not None and is_quoted(token):
        cursor.expected("CREATE, INSERT or SELECT at the start of a statement")
    word = token.text.split()[0] if token is not None and token.text.split() else ""
    hint = did_you_mean(word, _STATEMENTS)
    hint = (
        hint
        if hint.startswith("; did")
        else f"; a script has CREATE STREAM, CREATE TABLE, CREATE SINK, and {_ONE.removeprefix('a script has ')}"
    )
    cursor.fail(f"{shown(word)} begins no statement that is known here{hint}")
