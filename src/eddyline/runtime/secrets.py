"""Secrets: values of environment variables that the options of a declaration name.

An option whose key ends in `_env` has the name of a variable, as in OPTIONS (url_env 'PG_URL'). The rule: the value of
such a variable is in no declaration, spec, plan, log or message. It holds because declarations have only the name: the
process that makes a connection reads the value there, and keeps it in the connection alone. The script is part of the
spec and of messages, so a script that contains the secret itself is refused.
"""

from __future__ import annotations

import re

from eddyline.cql.declaration import Declaration
from eddyline.errors import SettingError

ENDING = "_env"
_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*:[^/?#]*@")
"""A URL with a password."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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
