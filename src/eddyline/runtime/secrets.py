"""Secrets: values of environment variables that the options of a declaration name.

An option whose key ends in `_env` has the name of a variable, as in OPTIONS (url_env 'PG_URL'). The rule: the value of
such a variable is in no declaration, spec, plan, log or message. It holds because declarations have only the name: the
process that makes a connection reads the value there, and keeps it in the connection alone. The script is part of the
spec and of messages, so a script that contains the secret itself is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from eddyline.cql.declaration import Declaration, place_of_option
from eddyline.cql.secret_text import has_secret, is_secret_key
from eddyline.errors import SettingError

ENDING = "_env"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_no_secret(declaration: Declaration) -> None:
    """SettingError for an option that holds a secret itself (cql/secret_text.py), or a value in place of the name of a
    variable. The message does not have the value."""
    _check(declaration, declaration.options, {key: f"option {key}" for key in declaration.options})
    for number, method in enumerate(declaration.methods):
        _check(declaration, method.options, {key: place_of_option(number, key) for key in method.options})


def _check(declaration: Declaration, options: Mapping[str, str], places: Mapping[str, str]) -> None:
    for key, value in options.items():
        written = f"{declaration.kind.lower()} {declaration.name}: option {declaration.spelled.get(key, key)}"
        if key.endswith(ENDING):
            if not _NAME.fullmatch(value):
                name = f"is the name of an environment variable, as in {key} 'MY_SECRET', not its value"
                raise SettingError(f"{written} {name}", places[key])
        elif is_secret_key(key):
            advice = f"put the value in an environment variable and write {key}{ENDING} and its name"
            raise SettingError(f"{written} looks like a secret; {advice}", places[key])
        elif has_secret(value):
            advice = f"put it in an environment variable, and the name into an option that ends in {ENDING}"
            raise SettingError(f"{written} must not have a password, a token or a key; {advice}", places[key])


def secret(option: str, variable: str) -> str:
    """The value of an environment variable that an option names; SettingError if it is not set.

    >>> secret("url_env", "NO_SUCH_VARIABLE")
    Traceback (most recent call last):
    ...
    eddyline.errors.SettingError: url_env names the environment variable NO_SUCH_VARIABLE, which is not set
    """
    value = os.environ.get(variable)
    if not value:
        raise SettingError(f"{option} names the environment variable {variable}, which is not set", f"option {option}")
    return value


def revealed(options: Mapping[str, str]) -> dict[str, str]:
    """Options for a library: the value of each variable in place of its name.

    >>> revealed({"region": "here"})
    {'region': 'here'}
    """
    return {
        key.removesuffix(ENDING): secret(key, value) if key.endswith(ENDING) else value
        for key, value in options.items()
    }


def concealed(text: str, options: Mapping[str, str]) -> str:
    """A library's message with *** in place of the values of the variables that options name.

    >>> concealed("no such region: here", {"region": "here"})
    'no such region: here'
    """
    for key, variable in options.items():
        if key.endswith(ENDING) and (value := os.environ.get(variable, "").rstrip("/")):
            text = text.replace(value, "***")
    return text
