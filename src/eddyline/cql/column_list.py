"""A list of columns in brackets, as in PARTITION BY (country, day) or INDEX ON (id)."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from eddyline.cql.places import Place, shown
from eddyline.cql.tokens import Cursor


def read_column_list(cursor: Cursor, form: str, where: str = "listed", empty: str = "") -> list[tuple[str, Place]]:
    """The names and their places. Messages show a `form`, say `where` a column is twice, and refuse no column at all
    by the sentence `empty`."""
    if not cursor.match_type(TokenType.L_PAREN):
        cursor.expected(f"'(' as in {form}")
    columns: dict[str, tuple[str, Place]] = {}
    while True:
        at, place = cursor.at, cursor.place()
        if empty and not columns and cursor.match_type(TokenType.R_PAREN):
            cursor.at = at
            cursor.fail(empty)
        name = cursor.name(f"the name of a column, as in {form}")
        if name.lower() in columns:
            cursor.at = at
            cursor.fail(f"column {shown(name)} is {where} twice; name it once")
        columns[name.lower()] = name, place
        if cursor.match_type(TokenType.R_PAREN):
            return list(columns.values())
        if not cursor.match_type(TokenType.COMMA):
            cursor.expected("',' or ')' after the name of a column")
