"""The script as tokens, and a cursor over the tokens of one statement.

The tokens are sqlglot's: each has its offset in the script, so everything read from tokens has a place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from eddyline.cql.dialect import EDDYLINE
from eddyline.cql.limits import CHARACTERS, DEPTH, NAME, TEXT, TOKENS, Limit
from eddyline.cql.places import Place, place_at, shown, wrong
from eddyline.errors import ScriptError

_QUOTES = {"'": "string", '"': "name in double quotes", "`": "name in backticks"}
_TEXT = (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING)
_OPENS = {
    TokenType.L_PAREN: TokenType.R_PAREN,
    TokenType.L_BRACKET: TokenType.R_BRACKET,
    TokenType.L_BRACE: TokenType.R_BRACE,
}
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_PREFIXES = (TokenType.NOT, TokenType.DASH, TokenType.PLUS)


def tokenize(text: str) -> list[Token]:
    """The tokens of a script; ScriptError when a quote or a comment never ends, or when there are too many."""
    if len(text) > CHARACTERS.most:
        raise _too_large(text, CHARACTERS.most, CHARACTERS)
    broken = next((offset for offset, c in enumerate(text) if "\ud800" <= c <= "\udfff"), None)
    if broken is not None:
        raise wrong(text, place_at(text, broken), "this is half a character; write the script in UTF-8")
    try:
        tokens = list(EDDYLINE.tokenize(text))
    except Exception as error:  # sqlglot's tokenizer may raise anything; the text is at fault in every case
        offset, what = _unfinished(text)
        raise wrong(text, place_at(text, offset), what) from error
    if len(tokens) > TOKENS.most:
        raise _too_large(text, tokens[TOKENS.most].start, TOKENS)
    for token in tokens:
        if token.end - token.start >= NAME.most:
            limit = NAME if is_name(token) else TEXT
            if len(token.text) > limit.most:
                raise _too_large(text, token.start, limit)
    return tokens


def _too_large(text: str, offset: int, limit: Limit) -> ScriptError:
    return wrong(text, place_at(text, offset), limit.sentence)


def _unfinished(text: str) -> tuple[int, str]:
    """The offset of the quote or comment that never ends, and the message about it."""
    at = 0
    while at < len(text):
        if text.startswith("--", at):
            end = text.find("\n", at)
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            if end < 0:
                return at, "this comment is never closed; end it with */"
            end += 1
        elif text[at] in _QUOTES:
            end = text.find(text[at], at + 1)
            if end < 0:
                return at, f"this {_QUOTES[text[at]]} is never closed; end it with {text[at]}"
        else:
            end = at
        at = len(text) if end < 0 else end + 1
    return 0, "the script cannot be read as SQL; look for an unclosed quote, comment or $-string"


def is_word(token: Token | None, *words: str) -> bool:
    """Whether a token is one of these words, not in quotes."""
    return token is not None and not is_quoted(token) and token.text.upper() in words


def is_quoted(token: Token) -> bool:
    """A string, or a name in quotes."""
    return token.token_type in (*_TEXT, TokenType.IDENTIFIER, TokenType.BYTE_STRING)


def is_string(token: Token | None) -> bool:
    """A constant string."""
    return token is not None and token.token_type in _TEXT


def is_name(token: Token | None) -> bool:
    """A token that can name something: a name in double quotes or backticks, or any word."""
    if token is None or token.token_type == TokenType.NUMBER:
        return False
    return token.token_type == TokenType.IDENTIFIER or (not is_quoted(token) and token.text.isidentifier())


def depth_change(token: Token) -> int:
    """+1 for an opening bracket of any kind, -1 for a closing one."""
    return (token.token_type in _OPENS) - (token.token_type in _OPENS.values())


def _check_depth(text: str, tokens: Sequence[Token]) -> None:
    """Refuse nesting that is too deep. A bracket, a CASE and each NOT or sign in a row is a level."""
    opened: list[tuple[TokenType, int]] = []
    level = depth = 0
    for token in tokens:
        type = token.token_type
        if type in _OPENS or type == TokenType.CASE:
            opened.append((type, level))
            level = depth = depth + 1
        elif type in _PREFIXES:
            depth += 1
        else:
            if type in _OPENS.values():
                while opened and opened[-1][0] == TokenType.CASE:  # it has no END
                    opened.pop()
            elif not (type == TokenType.END and opened and opened[-1][0] == TokenType.CASE):
                depth = level
                continue
            level = depth = opened.pop()[1] if opened else 0
        if depth > DEPTH.most:
            raise _too_large(text, token.start, DEPTH)


def check_brackets(text: str, tokens: Sequence[Token]) -> None:
    """Refuse brackets that do not match, at the bracket that is to blame, and those that are nested too deeply."""
    _check_depth(text, tokens)
    open_: list[Token] = []
    for token in tokens:
        if token.token_type in _OPENS:
            open_.append(token)
        elif token.token_type in _OPENS.values():
            if not open_:
                raise wrong(
                    text,
                    place_at(text, token.start),
                    f"this {shown(token.text)} closes nothing; remove it or open it before",
                )
            opener = open_.pop()
            if _OPENS[opener.token_type] != token.token_type:
                message = (
                    f"this {shown(opener.text)} is closed by {shown(token.text)}; close it with its own kind of bracket"
                )
                raise wrong(text, place_at(text, opener.start), message)
    if open_:
        raise wrong(
            text,
            place_at(text, open_[-1].start),
            f"this {shown(open_[-1].text)} is never closed; write its {shown(_CLOSES[open_[-1].text])}",
        )


class Cursor:
    """Reads the tokens of one statement from left to right; every complaint has a place."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text, self.tokens, self.at = text, tokens, 0

    @property
    def token(self) -> Token | None:
        """The next token, None at the end."""
        return self.peek(0)

    def peek(self, ahead: int) -> Token | None:
        """The token that is `ahead` tokens after the next one, None behind the end."""
        index = self.at + ahead
        return self.tokens[index] if 0 <= index < len(self.tokens) else None

    def place(self) -> Place:
        """The place of the next token, or just behind the last one."""
        if self.token is not None:
            return place_at(self.text, self.token.start)
        return place_at(self.text, self.tokens[-1].end + 1 if self.tokens else len(self.text))

    def fail(self, message: str) -> NoReturn:
        """Raise ScriptError with a message at the next token."""
        raise wrong(self.text, self.place(), message)

    def expected(self, what: str) -> NoReturn:
        """Raise ScriptError: `what` was expected, but the next token is something else."""
        found = "the statement ends here" if self.token is None else f"found {shown(self.raw())}"
        self.fail(f"expected {what}, but {found}")

    def raw(self) -> str:
        """The next token as it is written."""
        return "" if self.token is None else self.text[self.token.start : self.token.end + 1]

    def take(self) -> Token:
        """The next token, which must exist."""
        token = self.token
        assert token is not None
        self.at += 1
        return token

    def match(self, *words: str) -> bool:
        """Read these words if they come next, in this order."""
        if all(is_word(self.peek(i), word) for i, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def match_type(self, type: TokenType) -> bool:
        """Read a token of this type if it comes next."""
        if self.token is not None and self.token.token_type == type:
            self.at += 1
            return True
        return False

    def name(self, what: str) -> str:
        """Read a name."""
        if not is_name(self.token):
            self.expected(what)
        return self.take().text
