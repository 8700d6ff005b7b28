"""The event time as an expression: `TIMESTAMP BY epoch_ms(ms)`, with a name for the query if `AS ts` follows it.

The expression is parsed from the script's own text, so an error in it has its place in the script.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from eddyline.cql.dialect import parse_expression
from eddyline.cql.places import Place
from eddyline.cql.tokens import Cursor, check_brackets, is_word, tokenize


@dataclass(frozen=True)
class TimeClause:
    """An expression for the event time; `name` is what the query calls its value, None if it has no name."""

    expr: exp.Expr
    name: str | None
    written: str
    """The expression as it is written in the script, without its name."""


def read_time(text: str, place: Place, time: str) -> TimeClause:
    """Parse the expression `time`, which is written at `place` of the script `text`; ScriptError if it is not an
    expression."""
    start = sum(len(line) + 1 for line in text.split("\n")[: place.line - 1]) + place.column - 1
    tokens = [token for token in tokenize(text) if start <= token.start < start + len(time)]
    check_brackets(text, tokens)
    tree = parse_expression(text, tokens)
    named = isinstance(tree, exp.Alias)
    if named and not is_word(tokens[-2], "AS"):
        cursor = Cursor(text, tokens[-1:])
        cursor.expected("AS and a name, LATENESS, LATE INTO, DEAD INTO or ';' after the event time")
    end = tokens[-2].start if named else tokens[-1].end + 1
    written = re.sub(r"\s*\n\s*", " ", text[start:end].strip())
    return TimeClause(tree.this if named else tree, tree.alias if named else None, written)
