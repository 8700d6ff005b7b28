"""Whose fault it is: the user's text, the user's settings, the world, or ours.

The command line turns the first two into exit status 2 and one line, the third into exit status 1; an InternalError is
a bug of Eddyline and the only one that is worth a traceback.
"""

from __future__ import annotations

from eddyline.printable import printable


class EddylineError(Exception):
    """The base of all errors that Eddyline raises on purpose; `str(error)` is one line for the user."""


class ScriptError(EddylineError):
    """The script is wrong, or uses something that is not supported.

    `line` and `column` count from 1; `source_line` is the text of that line, so that `pretty()` can show a caret.
    """

    def __init__(self, message: str, line: int = 0, column: int = 0, source_line: str = "") -> None:
        super().__init__(f"line {line}, column {column}: {message}" if line else message)
        self.message, self.line, self.column, self.source_line = message, line, column, source_line

    def pretty(self, width: int = 100) -> str:
        """The one-line answer, and below it the line with a caret; of a line that is longer than `width`, the part
        around the caret."""
        if not self.line:
            return str(self)
        before, after = _excerpt(self.source_line[: self.column - 1], self.source_line[self.column - 1 :], width - 2)
        pad = "".join("\t" if c == "\t" else " " for c in before)
        return f"{self}\n  {before}{after}\n  {pad}^"


def _excerpt(before: str, after: str, width: int) -> tuple[str, str]:
    """A line before and from a place on, escaped, and cut to `width` characters."""
    before, after = printable(before[-width - 1 :], keep="\t"), printable(after[: width + 1], keep="\t")
    room = max(width - len(after), width * 2 // 3)
    if len(before) > room:
        before = f"...{before[3 - room :]}"
    room = width - len(before)
    return before, after if len(after) <= room else f"{after[: room - 3]}..."


class SettingError(EddylineError):
    """A setting or an option that does not exist or has a wrong value. `at` names the part of a declaration that is
    wrong (Declaration.places), if it is one."""

    def __init__(self, message: str, at: str = "") -> None:
        super().__init__(message)
        self.at = at


class JobError(EddylineError):
    """The job could not continue: a file is missing or broken, a limit is reached, or a function of the user failed."""


class CorruptFile(JobError):
    """A file that cannot be read in its format."""


class InternalError(EddylineError):
    """A broken invariant: a bug of Eddyline."""


def said(error: BaseException) -> str:
    """The message of an exception that is not ours, in one line.

    >>> said(ValueError("no\\n  more"))
    'ValueError: no more'
    """
    return f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")


def shown(value: object) -> str:
    """A wrong argument, for a message: a short text or number as it is written, any other value by its type, because it
    may be large.

    >>> shown(5), shown("soon"), shown([1, 2]), shown("x" * 100)
    ('5', "'soon'", 'a list', 'a str')
    """
    written = repr(value) if value is None or isinstance(value, str | int | float) else ""
    if 0 < len(written) <= 60:
        return written
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
