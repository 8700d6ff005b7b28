"""Places in the script, and the one way to report a mistake at a place.

Places are character offsets in the script as it was written. No rewritten text is ever parsed, so a place is right by
construction. Names and other text of the user go into messages only through `shown`, which keeps a message one
printable line whatever the script contains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eddyline.cql.secret_text import concealed
from eddyline.errors import ScriptError
from eddyline.printable import printable

if TYPE_CHECKING:
    from sqlglot import exp

NOT_YET = "is not supported yet, and no other query gives the same rows"
"""The end of a refusal without advice: a query that gives other rows must not be suggested."""
_LONGEST_SHOWN = 40


@dataclass(frozen=True, order=True)
class Place:
    """A character of the script; line and column count from 1."""

    line: int
    column: int


def place_at(text: str, offset: int) -> Place:
    """The place of the character at `offset`, or the end of the text if the text is shorter."""
    before = text[: max(offset, 0)]
    return Place(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def wrong(text: str, place: Place, message: str) -> ScriptError:
    """The error to raise for a mistake at a place of the script. It shows no secret of an option."""
    lines = concealed(text).split("\n")
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    return ScriptError(message, place.line, place.column, line.removesuffix("\r"))


def shown(text: str) -> str:
    """A piece of the user's text in quotes, printable and not too long."""
    written = printable(text[: _LONGEST_SHOWN + 1])
    return f"'{written[:_LONGEST_SHOWN]}...'" if len(written) > _LONGEST_SHOWN else f"'{written}'"


def start_of(node: exp.Expr) -> int | None:
    """The offset at which a node of the syntax tree begins: the least offset of its parts, or, if they have none, of
    its parent."""
    at: exp.Expr | None = node
    while at is not None:
        starts = [n.meta["start"] for n in at.walk() if n.meta_get("start") is not None]
        if starts:
            return int(min(starts))
        at = at.parent
    return None
