"""A session with a PostgreSQL server that never waits for ever in silence.

When the server says nothing for `timeout` seconds, another session is opened. If that one is answered, the server only
needs long, and the wait goes on; if not, the server hangs and the wait ends. A lock that somebody else holds ends the
wait after the same time, by the server's own clock. Seconds are counted by waking up ten times a second, so time during
which this process is stopped does not count.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from eddyline.runtime.postgres_place import SESSION

T = TypeVar("T")
_WAKES = 10
"""How often psycopg wakes up in a second while it waits."""
_CONNECT = 10.0
"""How long a server may take to open a session, unless its URL has a connect_timeout; at most `timeout`."""
_ALIVE = "SET tcp_keepalives_idle TO 30; SET tcp_keepalives_interval TO 10; SET tcp_keepalives_count TO 3"
"""The session of a host that is gone ends after a minute, and with it the claim of its run on the table."""


class ServerHangs(psycopg.OperationalError):
    """The server neither answers nor takes another session."""


class _PatientConnection(psycopg.Connection[Any]):
    """A connection whose waits are watched."""

    conninfo = ""
    timeout = 0.0

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **named: Any) -> T:
        """Wait for the end of a command."""
        return super().wait(self._watched(gen), *args, **named)

    def _watched(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        silent = 0
        try:
            asked = next(gen)
            while True:
                ready = yield asked
                silent = 0 if ready else silent + 1
                if self.timeout and silent >= self.timeout * _WAKES:
                    silent = 0
                    self._look()
                asked = gen.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result

    def _look(self) -> None:
        """ServerHangs if the server takes no other session."""
        try:
            psycopg.connect(self.conninfo).close()
        except psycopg.OperationalError:
            self.pgconn.finish()
            raise ServerHangs(f"no answer for {self.timeout:g} s, and no new session either") from None


def connected(conninfo: str, timeout: float) -> psycopg.Connection[Any]:
    """A session in which nothing but `conninfo` changes values; psycopg.Error if there is none."""
    if "connect_timeout" not in conninfo_to_dict(conninfo):
        conninfo = make_conninfo(conninfo, connect_timeout=max(2, int(min(timeout, _CONNECT))))
    connection = _PatientConnection.connect(conninfo)
    connection.conninfo, connection.timeout = conninfo, timeout
    try:
        connection.execute(f"{SESSION}; {_ALIVE}; SET lock_timeout TO {max(1, int(timeout * 1000))}".encode())
        connection.commit()
    except BaseException:
        connection.close()
        raise
    return connection


def why(error: psycopg.Error, timeout: float) -> str:
    """An error in one line."""
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return f"another session has held a lock on it for {timeout:g} s (option timeout)"
    text = error.diag.message_primary or " ".join(str(error).split())
    return f"{text} ({error.diag.context.splitlines()[0]})" if error.diag.context else text
