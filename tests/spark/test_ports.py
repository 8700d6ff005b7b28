"""What a local run listens on: the loopback address alone, as docs/spark.md lists it."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from lab.chaos.run import processes
from tests.conftest import Ran

LOOPBACK = {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
_LISTENS = "0A"


def _address(text: str) -> str:
    """An address as /proc/net has it: words of four bytes, in the order of this machine."""
    words = struct.pack(f"={len(text) // 8}I", *[int(text[at : at + 8], 16) for at in range(0, len(text), 8)])
    return socket.inet_ntop(socket.AF_INET if len(words) == 4 else socket.AF_INET6, words)


def _listening(pid: int) -> Iterator[str]:
    """The addresses that a process listens on."""
    mine = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            mine.add(os.readlink(fd))
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENS and f"socket:[{fields[9]}]" in mine:
                yield _address(fields[1].partition(":")[0])


def _descendants(pid: int) -> set[int]:
    found, before = {pid}, set[int]()
    while found != before:
        before = set(found)
        found |= {p.pid for p in processes(os.getsid(pid)) if p.parent in found}
    return found


def test_nothing_listens_to_the_network(
    spark: SparkSession, run_on_spark: Callable[..., Ran], files: Callable[..., str], table: Callable[..., pa.Table]
) -> None:
    seen: list[str] = []

    def look() -> bool:
        for pid in _descendants(os.getpid()):
            with contextlib.suppress(OSError):
                seen.extend(_listening(pid))
        return False

    text = f"CREATE STREAM {files('a', table('k', (1, 1)))}; SELECT k FROM a"
    assert run_on_spark(text, stop=look).rows == [{"k": 1}]
    assert seen and set(seen) <= LOOPBACK
    assert spark.sparkContext.getConf().get("spark.authenticate") == "true", "Spark's own ports ask for a secret"
