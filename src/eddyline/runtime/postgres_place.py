"""Where a PostgreSQL server is, by the options of a table or a sink."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from eddyline.errors import SettingError
from eddyline.runtime.options import Options
from eddyline.runtime.secrets import secret

SESSION = (
    "SET TimeZone TO 'UTC'; SET DateStyle TO 'ISO'; SET IntervalStyle TO 'postgres'; SET extra_float_digits TO 1;"
    " SET bytea_output TO 'hex'; SET lc_monetary TO 'C'; SET xmlbinary TO 'base64'"
)
"""What every session sets first: all settings of a server, a role or a client that change the text of a value. The
encoding, which messages need before that, is in `conninfo_of`."""


def conninfo_of(options: Options) -> str:
    """What the client connects with, by `url_env` or `url`; SettingError if it is no address, or `url` has a
    password."""
    variable, url = options.text("url_env"), options.text("url")
    if bool(variable) == bool(url):
        raise SettingError("postgres needs an option url_env, as in OPTIONS (url_env 'PG_URL'), or url, but not both")
    where = secret("url_env", variable) if variable else url
    which = f"the environment variable {variable}" if variable else "option url"
    try:
        found = conninfo_to_dict(where)
    except psycopg.Error:  # its message repeats the text
        raise SettingError(f"{which} is not a URL such as postgresql://user@host:5432/database") from None
    hosts = str(found.get("host") or "").split(",")
    if any("@" in host[1:] for host in hosts):  # it is the rest of a password, which messages about the host would show
        raise SettingError(f"{which} has an @ in the user or the password; write %40 in its place")
    if url and found.get("password"):
        raise SettingError("option url must not have a password; put the URL in an environment variable: url_env")
    return make_conninfo(where, client_encoding="UTF8")
