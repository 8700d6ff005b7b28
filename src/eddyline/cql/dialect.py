"""sqlglot's DuckDB dialect without its functions, and parsing with it.

sqlglot turns the functions that it knows into node classes of their own and reorders their arguments. Eddyline has its
own closed table of functions, so with this dialect every call stays as it was written: a name and its arguments. Only
the forms with special syntax (CAST, TRY_CAST, EXTRACT, CASE, INTERVAL) keep their nodes. A node that begins with a
keyword gets the keyword's position. Parse errors become sentences with a place; no exception of sqlglot leaves this
module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token

from eddyline.cql.limits import DEPTH, deep_enough
from eddyline.cql.places import place_at, shown, wrong
from eddyline.errors import ScriptError

_REASONS = {
    "Expecting )": "expected ')' before {found}; close the bracket, or put a comma or an operator there",
    "Expecting ]": "expected ']' before {found}",
    "Expected END after CASE": "CASE needs an END here; write CASE WHEN condition THEN value ELSE value END",
    "Expected TYPE after CAST": "CAST needs a type here; write CAST(x AS BIGINT)",
    "Expected AS after CAST": "CAST needs AS and a type here; write CAST(x AS BIGINT)",
    "Expected FROM or comma after EXTRACT": "EXTRACT needs FROM here; write EXTRACT(hour FROM ts)",
}


class _Complaint(ParseError):
    """A parse error that remembers its token, and whether the text ended there."""

    def __init__(self, reason: str, token: Token, at_end: bool) -> None:
        super().__init__(reason, [{"description": reason}])
        self.reason, self.token, self.at_end = reason, token, at_end


def _placed(parse: Callable[..., Any], back: int) -> Callable[..., Any]:
    """Wrap a parse method so that its node gets the position of the token that is `back` tokens before its first
    one."""

    def parse_with_place(parser: Any, *rest: Any) -> Any:
        first = parser._tokens[parser._index - back]
        node = parse(parser, *rest)
        return node.update_positions(first) if isinstance(node, exp.Expr) else node

    return parse_with_place


class _Parser(DuckDBParser):
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar = {
        name: _placed(DuckDBParser.FUNCTION_PARSERS[name], 2) for name in ("CAST", "TRY_CAST", "EXTRACT")
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar = {"CASE": _placed(DuckDBParser.NO_PAREN_FUNCTION_PARSERS["CASE"], 1)}
    PLACEHOLDER_PARSERS: ClassVar = {
        type: _placed(parse, 1) for type, parse in DuckDBParser.PLACEHOLDER_PARSERS.items()
    }
    PRIMARY_PARSERS: ClassVar = {type: _placed(parse, 1) for type, parse in DuckDBParser.PRIMARY_PARSERS.items()}

    def _parse_interval(self, *args: Any, **kwargs: Any) -> Any:
        first = self._curr
        node = super()._parse_interval(*args, **kwargs)
        return node.update_positions(first) if isinstance(node, exp.Expr) else node

    def raise_error(self, message: str, token: Any = None) -> None:
        raise _Complaint(message, token or self._curr or self._prev, not (token or self._curr))


class _Dialect(DuckDB):
    Parser = _Parser
    INDEX_OFFSET = 0  # indexes into lists stay as they are written

    def to_json_path(self, path: Any) -> Any:
        """The path after -> as it is written; the function table interprets it."""
        return path

    class Tokenizer(DuckDB.Tokenizer):
        IDENTIFIERS: ClassVar = ['"', "`"]


EDDYLINE = _Dialect()
"""The dialect with which scripts are tokenized and parsed."""


def parse_query(text: str, tokens: Sequence[Token]) -> exp.Expr:
    """The syntax tree of one statement, from its tokens in the script `text`."""
    return _guarded(text, tokens, lambda parser: parser.parse(list(tokens), text))


def parse_expression(text: str, tokens: Sequence[Token]) -> exp.Expr:
    """The syntax tree of an expression, which AS may name."""
    return _guarded(text, tokens, lambda parser: parser.parse_into(exp.Expr, list(tokens), text))


def parse_type(text: str, tokens: Sequence[Token]) -> exp.Expr:
    """The syntax tree of a type."""
    return _guarded(text, tokens, lambda parser: parser.parse_into(exp.DataType, list(tokens), text))


def _guarded(text: str, tokens: Sequence[Token], parse: Callable[[_Parser], list[exp.Expr | None]]) -> exp.Expr:
    first = place_at(text, tokens[0].start)
    try:
        with deep_enough():
            trees = parse(_Parser(error_level=ErrorLevel.IMMEDIATE, dialect=EDDYLINE))
    except ParseError as error:
        raise _sentence(text, error, tokens) from error
    except RecursionError:
        raise wrong(text, first, DEPTH.sentence) from None
    except Exception as error:  # sqlglot may raise anything; the text is at fault in every case
        raise wrong(text, first, "this cannot be read as SQL; check it for misspelt or missing words") from error
    if len(trees) != 1 or trees[0] is None:
        raise wrong(text, first, "this cannot be read as SQL; check it for misspelt or missing words")
    return trees[0]


def _sentence(text: str, error: ParseError, tokens: Sequence[Token]) -> ScriptError:
    """The error for a complaint of sqlglot, as a sentence that a user understands."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, _Complaint):
        cause = cause.__cause__
    if cause is None:
        return wrong(
            text, place_at(text, tokens[0].start), "this cannot be read as SQL; check it for misspelt or missing words"
        )
    written = text[cause.token.start : cause.token.end + 1]
    if cause.at_end:
        message = f"something is missing after {shown(written)}, where the statement ends; write the rest of it"
        return wrong(text, place_at(text, tokens[-1].end + 1), message)
    place = place_at(text, cause.token.start)
    if cause.reason == "Expected END after CASE":  # for this complaint the parser points at the previous token
        after = [token.start for token in tokens if token.start > cause.token.start]
        place = place_at(text, min(after, default=len(text)))
    if cause.reason in _REASONS:
        return wrong(text, place, _REASONS[cause.reason].format(found=shown(written)))
    if "missing for" in cause.reason:
        return wrong(
            text, place, f"something is missing before {shown(written)}; write the value or name that belongs there"
        )
    return wrong(
        text, place, f"unexpected {shown(written)}; look for a missing comma, operator, quote or bracket before it"
    )
