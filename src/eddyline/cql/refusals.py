"""Parts of SQL that a continuous query does not support: each is refused by name, with what to write instead.

Refusal is the default: every clause of the syntax tree that is not on the list of supported ones is refused, so no
clause that sqlglot understands is silently ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from eddyline.cql.places import NOT_YET, place_at, shown, wrong
from eddyline.cql.sources import SUBQUERY, SUBQUERY_IN_CONDITION, FromItem
from eddyline.cql.tokens import depth_change, is_quoted, is_word
from eddyline.cql.windows import CALLS
from eddyline.errors import ScriptError

_QUERY = "a query is SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ..."
_CLAUSES = {
    "distinct": (
        "DISTINCT",
        "SELECT DISTINCT is not supported yet; if the sources end, GROUP BY over the selected columns gives the same"
        " rows, as in SELECT a FROM s GROUP BY a",
    ),
    "order": (
        "ORDER BY",
        "ORDER BY is not supported, the result has no end to sort; leave it out, and sort what the sink holds",
    ),
    "limit": ("LIMIT", f"LIMIT {NOT_YET}"),
    "offset": ("OFFSET", f"OFFSET {NOT_YET}"),
    "qualify": ("QUALIFY", f"QUALIFY {NOT_YET}"),
    "windows": ("WINDOW", f"WINDOW {NOT_YET}"),
    "into": ("INTO", "SELECT INTO is not supported; write INSERT INTO sink SELECT ..."),
    "sample": (
        "USING",
        "samples are not supported, a result must not depend on chance; choose rows by their values, as in"
        " WHERE id % 10 = 0",
    ),
}
_KNOWN = ("expressions", "from_", "joins", "where", "group", "having")
_SET_OPERATIONS = TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT
_UNION_ALL = "UNION ALL is not supported yet; write one script per SELECT, with sinks of one folder and mode 'append'"
_OPENS = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.SELECT, TokenType.GROUP_BY)
_OPERATORS = (
    TokenType.PLUS, TokenType.DASH, TokenType.SLASH, TokenType.MOD, TokenType.DPIPE, TokenType.EQ, TokenType.NEQ,
    TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.DCOLON, TokenType.AND, TokenType.OR,
    TokenType.NOT, TokenType.LIKE, TokenType.ILIKE, TokenType.BETWEEN, TokenType.IN,
)  # fmt: skip
_BEFORE_VALUE = (
    TokenType.WHERE, TokenType.ON, TokenType.HAVING, TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.L_PAREN,
    TokenType.SELECT, TokenType.COMMA,
)  # fmt: skip
_LIST_ENDS = (
    TokenType.COMMA,
    TokenType.R_PAREN,
    TokenType.R_BRACKET,
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
)


def check_tokens(text: str, tokens: Sequence[Token]) -> None:
    """Refuse clauses that the tokens alone show, and mistakes that sqlglot would accept."""
    for index, token in enumerate(tokens):
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        message = _wrong_token(text, tokens[max(0, index - 2) : index], token, after)
        if message:
            at = after if after is not None and message.startswith(shown(after.text)) else token
            raise wrong(text, place_at(text, at.start), message)


def _wrong_token(text: str, before: Sequence[Token], token: Token, after: Token | None) -> str:
    """What is wrong with a token; `before` has the two before it, or fewer at the start of the text."""
    type = token.token_type
    if type in _SET_OPERATIONS:
        union_all = type == TokenType.UNION and after is not None and after.token_type == TokenType.ALL
        return _UNION_ALL if union_all else f"{type.name} {NOT_YET}"
    if type == TokenType.SELECT and before:
        in_from = len(before) > 1 and before[-2].token_type in (TokenType.FROM, TokenType.JOIN)
        return SUBQUERY if in_from else SUBQUERY_IN_CONDITION
    if type == TokenType.PIPE_GT:
        return f"the pipe |> is not supported; {_QUERY}"
    if type == TokenType.COMMA and (after is None or after.token_type in _LIST_ENDS):
        return "nothing follows this comma; remove it, or write what belongs there"
    if type in _OPERATORS and (after is None or after.token_type in _LIST_ENDS):
        return f"nothing follows this {shown(token.text)}; write the value that belongs there"
    if type in _BEFORE_VALUE and after is not None and after.token_type in (TokenType.AND, TokenType.OR):
        return f"{shown(after.text)} has nothing before it; remove it, or write the condition that belongs there"
    if type in _OPENS and after is not None and after.token_type == TokenType.COMMA:
        return (
            f"nothing is between this {shown(token.text)} and the comma; remove the comma, or write what belongs there"
        )
    if (
        type == TokenType.NUMBER
        and after is not None
        and after.start == token.end + 1
        and after.token_type == TokenType.VAR
    ):
        return (
            f"{shown(text[token.start : after.end + 1])} is no number; write "
            "it in decimal, or leave a space before a name"
        )
    return ""


def check_windows(text: str, tokens: Sequence[Token]) -> None:
    """Refuse a window anywhere but behind a stream; the windows behind streams are no longer among the tokens. Other
    brackets index lists."""
    for token, after in pairwise(tokens):
        if token.token_type == TokenType.L_BRACKET and is_word(after, "RANGE", "ROWS", "UNBOUNDED", *CALLS):
            message = "a window stands behind its stream, as in FROM s [RANGE 30 MINUTES] AS a"
            raise wrong(text, place_at(text, token.start), message)


def check_select(
    text: str, tokens: Sequence[Token], tree: exp.Expr, sources: Sequence[FromItem], items: Sequence[str]
) -> exp.Select:
    """The tree as a SELECT, after refusing every clause that Eddyline does not support."""
    if not isinstance(tree, exp.Select):
        raise wrong(text, place_at(text, tokens[0].start), f"this is no query; {_QUERY}")
    if (distinct := tree.args.get("distinct")) is not None and distinct.args.get("on"):
        raise _at_word(text, tokens, "DISTINCT", f"DISTINCT ON {NOT_YET}")
    for clause, value in tree.args.items():
        if value and clause not in _KNOWN:
            raise _at_word(
                text, tokens, *_CLAUSES.get(clause, ("", f"a clause of this query is not supported; {_QUERY}"))
            )
    if not tree.expressions:
        raise _at_word(text, tokens, "SELECT", "SELECT names no columns; write what is wanted, or *")
    if len(tree.expressions) != len(items):
        raise _at_word(
            text, tokens, "SELECT", "the list after SELECT cannot be understood; look for a missing value in it"
        )
    _check_from(text, tree, sources)
    group = tree.args.get("group")
    if group is not None:
        if group.args.get("all"):
            raise _at_word(
                text, tokens, "GROUP BY", "GROUP BY ALL is not supported; name the keys, as in GROUP BY a, b"
            )
        several = (exp.Rollup, exp.Cube, exp.GroupingSets)
        if any(value for key, value in group.args.items() if key != "expressions") or group.find(*several):
            raise _at_word(
                text,
                tokens,
                "GROUP BY",
                "ROLLUP, CUBE and GROUPING SETS are not supported; write a script for each of the groupings",
            )
        if not group.expressions:
            raise _at_word(
                text, tokens, "GROUP BY", "GROUP BY names no key; write the columns to group by, or leave it out"
            )
    return tree


def _check_from(text: str, tree: exp.Select, items: Sequence[FromItem]) -> None:
    """Refuse whatever sqlglot found in FROM beyond the items that were read from it."""
    joins: list[exp.Expr] = tree.args.get("joins") or []
    first: exp.Expr | None = tree.args.get("from_")
    tables = [*([first.this] if first is not None else []), *(join.this for join in joins)]
    form = "write FROM s [RANGE 30 MINUTES] AS a, t [RANGE 30 MINUTES] AS b WHERE ..."
    for table, item in zip(tables, items, strict=False):
        alias = table.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            raise wrong(text, item.place, "columns cannot be renamed in FROM; rename them in SELECT with AS")
        if not isinstance(table, exp.Table) or any(v for k, v in table.args.items() if k not in ("this", "alias")):
            raise wrong(text, item.place, f"only a name, a window and an alias are supported here; {form}")
    read = [(table.name, table.alias_or_name) for table in tables]
    odd = any(
        v for join in joins for k, v in join.args.items() if k not in ("this", "on") and v not in ("INNER", "CROSS")
    )
    if odd or read != [(item.stream, item.alias) for item in items]:
        raise wrong(text, items[0].place, f"this FROM cannot be understood; {form}")


def _at_word(text: str, tokens: Sequence[Token], word: str, message: str) -> ScriptError:
    """The error, placed at the first occurrence of the word outside brackets, or at the start of the query."""
    depth, found = 0, tokens[0]
    for token in tokens:
        if depth == 0 and not is_quoted(token) and " ".join(token.text.upper().split()) == word:
            found = token
            break
        depth += depth_change(token)
    return wrong(text, place_at(text, found.start), message)
