"""Secrets: values of environment variables that the options of a declaration name.

An option whose key ends in `_env` has the name of a variable, as in OPTIONS (url_env 'PG_URL'). The rule: the value of
such a variable is in no declaration, spec, plan, log or message. It holds because nobody keeps the value: a `Secret`
knows only the name of its variable, and reads the value where a connection is made, in the process that makes it.
Libraries repeat what they were given in their errors, so a message of theirs goes through `Secret.hidden_in` before it
goes anywhere else.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from eddyline.cql.declaration import Declaration
from eddyline.errors import JobError, SettingError

ENDING = "_env"
_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*:[^/?#]*@")
"""A URL with a password."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Secret:
    """The value of an environment variable.

    >>> Secret("PG_URL")
    Secret(variable='PG_URL')
    """

    variable: str

    def reveal(self) -> str:
        """The value, to be used at once and not kept; JobError if this process does not have the variable."""
        value = os.environ.get(self.variable)
        if not value:
            raise JobError(f"the environment variable {self.variable} is not set")
        return value

    def hidden_in(self, message: str) -> str:
        """A message of a library, with the name of the variable in place of its value."""
        value = os.environ.get(self.variable)
        return message.replace(value, f"({self.variable})") if value else message


def secrets_of(declaration: Declaration) -> dict[str, Secret]:
    """The secrets of a declaration by their options without `_env`: `url` for `url_env 'PG_URL'`."""
    return {
        key.removesuffix(ENDING): Secret(value) for key, value in declaration.options.items() if key.endswith(ENDING)
    }


def check_no_secret(declaration: Declaration) -> None:
    """SettingError for options that hold a secret themselves: a password in a URL, or a value in place of the name of a
    variable. Neither the message nor a place shows the value."""
    for key, value in declaration.options.items():
        written = f"table {declaration.name}: option {declaration.spelled.get(key, key)}"
        if key.endswith(ENDING) and not _NAME.fullmatch(value):
            raise SettingError(
                f"{written} is the name of an environment variable, as in {key} 'MY_SECRET', not its value"
            )
        if _PASSWORD.match(value):
            raise SettingError(
                f"{written} must not have a password; put the value in an environment variable and write"
                f" {key}{ENDING} and its name"
            )
