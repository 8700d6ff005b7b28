"""Error messages for Python programs. The engine names options as on the command line; here they become arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from eddyline.errors import EddylineError, ScriptError

_WORDS = (
    (re.compile(r"--engine (spark|local)"), r"engine='\1'"),
    (re.compile(r"--dashboard-token-env\b"), "dashboard_token="),
    (re.compile(r"--checkpoint\b"), "checkpoint="),
    (re.compile(r"--follow\b"), "follow=True"),
    (re.compile(r"--final\b"), "final=True"),
    (re.compile(r"--conf ([\w.]+)=([^\s,;)]+)"), r"SparkSession.builder.config('\1', '\2')"),
    (re.compile(r"--conf\b"), "SparkSession.builder.config"),
)


def in_python(error: EddylineError) -> EddylineError:
    """The same error, with command-line options in its message replaced by the arguments of functions.

    >>> in_python(ScriptError("use --engine spark", 1, 2))
    ScriptError("line 1, column 2: use engine='spark'")
    """
    for pattern, word in _WORDS:
        error.args = tuple(pattern.sub(word, part) if isinstance(part, str) else part for part in error.args)
        if isinstance(error, ScriptError):
            error.message = pattern.sub(word, error.message)
    return error


@contextmanager
def python_words() -> Iterator[None]:
    """Errors raised inside this context name arguments of functions instead of command-line options."""
    try:
        yield
    except EddylineError as error:
        in_python(error)
        raise
