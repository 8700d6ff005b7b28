"""What in a script looks like a secret: it is refused, and shown in no message.

One detector for the options of all formats. It knows options by their names, URLs of all schemes with a password (of
HTTP also with a user, which may be a token), and names of secrets inside a value: words of libpq and JDBC, parameters
of a URL, headers.
"""

from __future__ import annotations

import re

_NAME = (
    r"(?:\w*(?:secret|password|passwd|passphrase|credential)s?|pwd"
    r"|(?:\w*[_-])?(?:token|connection_string|authorization|bearer|jaas_config|signature)"
    r"|(?:\w*[_-])?(?:api|account|access|private|shared|sas|subscription)[_-]?(?:access[_-]?)?key)"
)
_SECRET = re.compile(_NAME, re.IGNORECASE)
"""The name of a secret."""
_LONGEST = 100
"""Longer words are no names."""
_URL = re.compile(r"(http|)s?://([^/?#\s'\"]*+)", re.IGNORECASE)
"""Whether the scheme is that of HTTP, and the user, password, host and port behind it."""
_INSIDE = re.compile(r"(?<![\w-])([\w-]++)[\"']?\s*+[=:]\s*+[\"']?(?!\{\w+\})[^\s&;,\"'}]")
"""A name inside a value, with a value of its own. `{column}` is the key of a lookup."""
_OPTION = re.compile(r"(?<![\w.\-\"])([\w.\-\"]++)\s*+'((?:[^']|'')*+)")
"""An option of a script: a key, and a text that may have no end."""


def is_secret_key(key: str) -> bool:
    """Whether an option of this name has a secret as its value.

    >>> [is_secret_key(key) for key in ("password", "s3.secret-access-key", "sasl.jaas.config", "token.domain")]
    [True, True, True, False]
    """
    name = key.strip('"').replace(".jaas.", "_jaas_").rpartition(".")[2].replace("-", "_")
    return len(name) <= _LONGEST and _SECRET.fullmatch(name) is not None


def has_secret(value: str) -> bool:
    """Whether a value has a secret in it.

    >>> values = "postgres://ann:x@db/u", "jdbc:h2://h/d;password=x", "host=h user=u password=x", "http://h/p?api_key=x"
    >>> [has_secret(value) for value in values]
    [True, True, True, True]
    >>> [has_secret(value) for value in ("postgres://ann@db/u", "http://h:80/p?at=a:b@c", "http://h/p?token={token}")]
    [False, False, False]
    """
    urls = any(_has_password(*url) for url in _URL.findall(value))
    return urls or any(is_secret_key(name) for name in _INSIDE.findall(value))


def concealed(text: str) -> str:
    """The script with `*` for each character of the options' secrets, so that places stay.

    >>> concealed("OPTIONS (topic 't', sasl_password 'x''y', url 'http://u:p@h')")
    "OPTIONS (topic 't', sasl_password '****', url '************')"
    """
    return _OPTION.sub(_without_secret, text)


def _has_password(scheme: str, place: str) -> bool:
    """Whether a URL has a password, or, of HTTP, a user."""
    user, at, _ = place.rpartition("@")
    return at != "" and (":" in user or "%3a" in user.lower() or scheme.lower() == "http")


def _without_secret(option: re.Match[str]) -> str:
    key, value = option[1], option[2]
    names_variable = key.lower().endswith("_env")
    is_open = value.isidentifier() if names_variable else not (is_secret_key(key) or has_secret(value))
    return option[0] if is_open else option[0][: option.start(2) - option.start()] + re.sub(r"[^\n]", "*", value)
