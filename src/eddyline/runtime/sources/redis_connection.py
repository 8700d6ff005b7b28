"""A connection to a Redis or Valkey server or cluster, by valkey-py.

valkey-py opens the connection, and so handles TLS, users, the forms of a URL and the nodes of a cluster. Our compiled
scan reads the replies in place of valkey-py's parser, which makes a Python object of every value: the scan reads about
ten times as many entries in the same CPU time (`bench redis`).

Only commands that change nothing are sent, so after a lost connection the same command is sent again. A password is
never part of a message.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from valkey import exceptions
from valkey.cluster import ClusterParser, ValkeyCluster
from valkey.connection import Connection as ServerConnection
from valkey.connection import parse_url

from eddyline.errors import JobError, SettingError, said
from eddyline.runtime.options import Options
from eddyline.runtime.sources.resp import ERROR, NotAReply, Reply, receive

_TIMEOUT = 20.0
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each new try after a lost connection."""
_SILENT = 2
"""How many tries a server may leave without an answer."""
_LOST = (exceptions.ConnectionError, exceptions.TimeoutError, exceptions.ClusterError, exceptions.ClusterDownError,
         exceptions.ValkeyClusterException, exceptions.AskError, OSError)  # fmt: skip
"""Errors that may be temporary. MOVED is an AskError: a slot of the cluster has moved to another node."""


class NoSuchKey(Exception):
    """The key does not exist (yet)."""


@dataclass(frozen=True)
class Server:
    """The address of a server and the credentials for it."""

    url: str
    password: str = field(default="", repr=False)
    cluster: bool = False

    def arguments(self) -> dict[str, Any]:
        """The arguments of valkey-py's connections; SettingError if the URL is wrong or has a password."""
        try:
            found: dict[str, Any] = parse_url(self.url)
        except ValueError as error:
            raise SettingError(f"option url: {str(error).splitlines()[0]}") from None
        if "password" in found:
            raise SettingError("option url must not have a password; put it in an environment variable: password_env")
        if self.cluster and (found.pop("db", 0) or "path" in found):
            raise SettingError("a cluster has no databases, and no unix socket: option url is valkey://HOST:PORT")
        return found | ({"password": self.password} if self.password else {})

    def __str__(self) -> str:
        found = self.arguments()
        return str(found.get("path", f"{found.get('host', 'localhost')}:{found.get('port', 6379)}"))


def server_of(options: Options, cluster: bool = False) -> Server:
    """The server that options name: url, or host, port and db; and password_env, the environment variable that has the
    password."""
    given = [key for key in ("host", "port", "db") if key in options]
    host, port, db = options.text("host", "localhost"), options.whole("port", 6379, 1), options.whole("db", 0)
    url = options.text("url")
    if url and given:
        raise SettingError(f"option url says where the server is; leave out {', '.join(given)}")
    variable = options.text("password_env")
    if variable and not os.environ.get(variable):
        raise SettingError(f"password_env names the environment variable {variable}, which is not set")
    where = url or f"valkey://{f'[{host}]' if ':' in host else host}:{port}/{db}"
    return Server(where, os.environ[variable] if variable else "", cluster)


class Connection:
    """Connections to a server, one, or one for each node of a cluster. They are opened when needed, and again after
    they were lost."""

    def __init__(self, server: Server, sleep: Callable[[float], None], timeout: float = _TIMEOUT) -> None:
        """SettingError if valkey-py does not accept the server's URL; nothing is opened. A reply may take `timeout`
        seconds."""
        self._timeout = timeout
        self._server, self._sleep, self._arguments = server, sleep, server.arguments()
        self._cluster: Any = None
        self._open: dict[tuple[str, int] | None, Any] = {}
        try:
            self._made({})
        except TypeError as error:
            raise SettingError(f"option url: {error}") from None

    def ask(self, key: str, *command: str) -> Reply:
        """The reply to a command about a key, which must change nothing; JobError if no reply comes, or it is an
        error."""
        pauses, silent = iter(_PAUSES), 0
        while True:
            try:
                with self._answers():
                    connection = self._connected(key)
                with self._answers(command[0]):
                    connection.send_command(*command)
                    reply: Reply = connection.read_response(disable_decoding=True)
                    return reply
            except NoSuchKey:
                raise
            except BaseException as error:
                self.close()  # the rest of the reply may still arrive
                if not isinstance(error, _LOST):
                    raise
                silent += isinstance(error, exceptions.TimeoutError | TimeoutError)
                if silent == _SILENT:
                    raise self.failed(f"no answer within {self._timeout:g} s, {_SILENT} times") from None
                pause = next(pauses, None)
                if pause is None:
                    raise self.failed(f"no answer after {len(_PAUSES) + 1} tries ({said(error)})") from None
                self._sleep(pause)

    def close(self) -> None:
        """Ends all connections."""
        for connection in self._open.values():
            connection.disconnect()
        self._open.clear()
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def failed(self, why: str) -> JobError:
        """An error of this server."""
        return JobError(f"redis-stream at {self._server}: {why}")

    def _connected(self, key: str) -> Any:
        """A connection to the node that has a key."""
        node, more = None, dict[str, Any]()
        if self._server.cluster:
            if self._cluster is None:
                password = self._server.password or None
                self._cluster = ValkeyCluster(url=self._server.url, password=password, socket_timeout=self._timeout)
            found = self._cluster.get_node_from_key(key)
            node, more = (found.host, found.port), {"host": found.host, "port": found.port}
        if node not in self._open:
            self._open[node] = self._made(more)
        self._open[node].connect()
        return self._open[node]

    def _made(self, more: Mapping[str, Any]) -> Any:
        arguments = {"connection_class": ServerConnection, **self._arguments, **more}
        return arguments.pop("connection_class")(
            **arguments, socket_timeout=self._timeout, lib_name=None, lib_version=None, parser_class=_Scanned
        )

    @contextmanager
    def _answers(self, command: str = "") -> Iterator[None]:
        """Inside this context permanent errors of the server become JobErrors; there is no command while a connection
        is opened."""
        try:
            yield
        except exceptions.AskError as error:
            if self._server.cluster:
                raise
            moved = f"{command} was answered with: {error}; the option cluster true reads a cluster"
            raise self.failed(moved) from None
        except NotAReply:
            raise self.failed("the answer is not what a Redis server says") from None
        except (exceptions.AuthenticationError, exceptions.ResponseError) as error:
            if str(error) == "ERR no such key":
                raise NoSuchKey from None
            opening = "AUTH" if isinstance(error, exceptions.AuthenticationError) else "SELECT"
            raise self.failed(f"{command or opening} was answered with: {error}") from None


class _Scanned:
    """A parser for connections of valkey-py. It returns a reply as it was scanned, or as Python objects if valkey-py
    wants it decoded, as it does for the few replies while a connection is opened."""

    def __init__(self, socket_read_size: int) -> None:
        self._socket: socket.socket | None = None

    def on_connect(self, connection: Any) -> None:
        self._socket = connection._sock  # as all parsers of valkey-py do

    def on_disconnect(self) -> None:
        self._socket = None

    def can_read(self, timeout: float) -> bool:
        return False

    def read_response(self, disable_decoding: bool = False) -> Any:
        if self._socket is None:
            raise exceptions.ConnectionError("the connection was closed")
        reply = receive(self._socket)
        if reply.tokens[0, 0] != ERROR:
            return reply if disable_decoding else reply.value()
        complaint = reply.value().decode(errors="replace")
        error = ClusterParser.parse_error(complaint)
        error.args = (complaint,)  # with the code at its beginning
        if isinstance(error, exceptions.ConnectionError):
            raise error
        return error
