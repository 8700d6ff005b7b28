"""The JVM of a session that we start: its messages, those of its Python processes, and its signals.

The standard error of these processes comes here first. Two messages appear on every successful run and mean nothing:
that Spark uses an incubator module, and tracebacks of Python processes whose connection Spark has closed (an idle
worker, a finished job). They are dropped; everything else goes to our standard error.

The JVM ignores SIGTERM, as PySpark makes it ignore SIGINT: service managers send SIGTERM to all processes of a job, and
Spark must live until the current batch is done. The JVM ends with our process, when its standard input is closed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

_INCUBATOR = "WARNING: Using incubator modules:"
_TRACEBACK = "Traceback (most recent call last):"
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_CLOSED = ("BrokenPipeError", "ConnectionResetError")
_NO_MORE = "EOFError"
"""How a process first notices it, before it tries to say so."""
_PAUSE_MS = 500
"""A traceback is complete if no line has followed it for this long."""

_deaf = False
"""Whether processes that are started now ignore SIGTERM."""


def _after_fork() -> None:
    if _deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


os.register_at_fork(after_in_child=_after_fork)


def launch(settings: Mapping[str, str], deaf: bool) -> None:
    """Start the JVM for the next session, unless there is one already. With `deaf` it ignores SIGTERM."""
    global _deaf
    if SparkContext._gateway is not None:
        return
    conf = SparkConf()
    for key, value in settings.items():
        conf.set(key, value)
    read, write = os.pipe()
    threading.Thread(target=_pass_on, args=(read,), name="what Spark says", daemon=True).start()
    _deaf = deaf
    try:
        gateway = launch_gateway(conf, popen_kwargs={"stderr": write})  # type: ignore[no-untyped-call]
    finally:
        _deaf = False
        os.close(write)
    SparkContext._ensure_initialized(gateway=gateway)


def _pass_on(read: int) -> None:
    for line in worth_saying(_lines(read)):
        with contextlib.suppress(OSError):
            os.write(2, line.encode())


def _lines(read: int) -> Iterator[str]:
    """The lines of a pipe as they come, and an empty text when none has come for a while; closes the pipe at its
    end."""
    with open(read, "rb", buffering=0) as pipe:
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        rest = b""
        while True:
            if not poll.poll(_PAUSE_MS):
                yield ""
                poll.poll()
            more = pipe.read(1 << 16)
            if not more:
                break
            *lines, rest = (rest + more).split(b"\n")
            yield from (f"{line.decode(errors='replace')}\n" for line in lines)
        if rest:
            yield rest.decode(errors="replace")


def worth_saying(lines: Iterable[str]) -> Iterator[str]:
    """The lines without the meaningless messages. A traceback is held back until it is complete: another line follows
    it, or an empty text says that none has come for a while.

    >>> said = ["Traceback (most recent call last):", "  File x", "BrokenPipeError: [Errno 32]", "out of memory"]
    >>> list(worth_saying([*said, "WARNING: Using incubator modules: jdk.incubator.vector"]))
    ['out of memory']
    """
    held: list[str] = []  # a traceback, and the tracebacks chained to it
    ended = chained = False  # whether the last of them is complete; whether another one is announced
    for line in lines:
        text = line.rstrip("\n")
        if text.startswith(_INCUBATOR):
            continue
        goes_on = text.startswith(_CHAINED) or (text == _TRACEBACK and chained)
        if held and ended and not goes_on and (text or not line):
            yield from _unless_closed(held)
            held = []
        if not held and text != _TRACEBACK:
            yield line
            continue
        held.append(line)
        if text:
            chained = text.startswith(_CHAINED)
            ended = not chained and not text.startswith((" ", _TRACEBACK))
    yield from _unless_closed(held)


def _unless_closed(held: list[str]) -> list[str]:
    """The tracebacks; none if all of them are about a closed connection."""
    said = [line for line in held if line.strip() and not line.startswith((" ", _TRACEBACK, *_CHAINED))]
    closed = said and said[-1].startswith(_CLOSED) and all(line.startswith((*_CLOSED, _NO_MORE)) for line in said)
    return [] if closed else held
