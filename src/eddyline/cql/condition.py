"""A condition that is written outside the script, such as the setting `prefer`."""

from __future__ import annotations

from sqlglot import exp

from eddyline.cql.dialect import parse_expression
from eddyline.cql.places import place_at, wrong
from eddyline.cql.refusals import check_tokens
from eddyline.cql.tokens import check_brackets, tokenize


def parse_condition(text: str) -> exp.Expr:
    """The syntax tree of a condition; ScriptError, with a place in `text`, if it is none.

    >>> parse_condition("o.level = 'gold'").sql()
    "o.level = 'gold'"
    """
    tokens = tokenize(text)
    if not tokens:
        raise wrong(text, place_at(text, 0), "there is no condition; write one, as in o.level = 'gold'")
    check_tokens(text, tokens)
    check_brackets(text, tokens)
    return parse_expression(text, tokens)
