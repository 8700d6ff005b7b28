"""Where a dashboard listens, and the token that its readers must have.

Invariant: an address that other machines can reach has a token that somebody chose; otherwise the token is random.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from dataclasses import dataclass, field

from eddyline.errors import SettingError, shown

LOOPBACK = "127.0.0.1"
PORT = 4040
"""The port that is tried first if none is named."""
_TRIED = 20
_SHORTEST = 16
"""The fewest characters of a token that guards an address of the network."""


@dataclass(frozen=True)
class DashboardPlace:
    """An address, a port (None: the first free one from `PORT` on; 0: any) and a token."""

    host: str = LOOPBACK
    port: int | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    def listen(self) -> socket.socket:
        """A socket that listens there; SettingError in one line if that is not possible."""
        tries = [self.port] if self.port is not None else [*range(PORT, PORT + _TRIED), 0]
        for port in tries:
            try:
                family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
                return socket.create_server((self.host, port), family=family)
            except OSError as error:
                if port == tries[-1]:
                    where = f"port {port}" + ("" if self.host == LOOPBACK else f" of {self.host}")
                    why = str(error.strerror or error).partition(" (while")[0]
                    raise SettingError(f"dashboard: cannot listen on {where}: {why}") from None
        raise AssertionError("unreachable")

    def address(self, port: int) -> str:
        """The address for a browser."""
        host = LOOPBACK if _is_any(self.host) else f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{port}/?token={self.token}"


def place_of(given: object, token: str | None = None) -> DashboardPlace:
    """The place that a user names: True or an empty text for a free port, a port, or ADDRESS:PORT with a token.

    >>> place_of(8080, "0123456789abcdef")
    DashboardPlace(host='127.0.0.1', port=8080)
    >>> place_of("0.0.0.0:8080")
    Traceback (most recent call last):
    eddyline.errors.SettingError: dashboard: 0.0.0.0 can be reached from other machines; give a token of 16 or more \
characters too (--dashboard-token-env)
    """
    host, port = _split(given)
    if token is not None and not (isinstance(token, str) and token.isascii() and token.isprintable() and token.strip()):
        raise SettingError("dashboard: a token is a text of letters, digits and signs")
    if not _is_loopback(host) and len(token or "") < _SHORTEST:
        raise SettingError(
            f"dashboard: {host} can be reached from other machines; give a token of {_SHORTEST} or more characters too"
            " (--dashboard-token-env)"
        )
    return DashboardPlace(host, port) if token is None else DashboardPlace(host, port, token)


def _split(given: object) -> tuple[str, int | None]:
    if given is True or given == "":
        return LOOPBACK, None
    host, _, port = str(given).rpartition(":")
    if isinstance(given, bool) or not isinstance(given, int | str) or not port.isdigit() or int(port) > 65535:
        raise SettingError(f"dashboard: {shown(given)} is no port and no ADDRESS:PORT")
    return host.strip("[]") or LOOPBACK, int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
