"""The JVM of a session that we start: its messages, those of its Python processes, and its signals.

The standard error of these processes comes here first. Two messages appear on every successful run and mean nothing:
that Spark uses an incubator module, and tracebacks of Python processes whose connection Spark has closed (an idle
worker, a finished job). They are dropped; everything else goes to our standard error.

The JVM ignores SIGTERM and SIGHUP, as PySpark makes it ignore SIGINT: service managers and terminals send them to all
processes of a job, and Spark must live until the current batch is done. The JVM ends with our process, when its
standard input is closed.

All temporary files of Spark on this host are in folders that we hold (state/own_folder.py): the blocks, the files of
the JVM, the sockets. A JVM that is killed removes nothing, and one that is stopped while it starts may make folders
after it has removed those that it knows. So we remove ours when it has ended, or the next start does.
"""

from __future__ import annotations

import atexit
import contextlib
import locale
import os
import re
import select
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

from eddyline.errors import SettingError
from eddyline.state.own_folder import JVM, OwnFolder, own_name

_INCUBATOR = "WARNING: Using incubator modules:"
_TRACEBACK = "Traceback (most recent call last):"
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_CLOSED = ("BrokenPipeError", "ConnectionResetError")
_NO_MORE = "EOFError"
"""How a process first notices it, before it tries to say so."""
_PAUSE_MS = 500
"""A traceback is complete if no line has followed it for this long."""

_LOOK_SECONDS = 0.02
_JAVA, _LOCAL, _DIRS = "spark.driver.defaultJavaOptions", "spark.local.dir", "SPARK_LOCAL_DIRS"
_SOCKETS = "spark.python.unix.domain.socket.dir"
_LONGEST = 106 - len("/.00000000-0000-0000-0000-000000000000.sock")
"""The longest path of a folder in which there can be a socket of Spark."""

_folder: OwnFolder | None = None
"""The folder of the JVM that we started: there it says how it can be reached, and has its sockets and temporary
files."""
_blocks: list[OwnFolder] = []
"""Its folders for blocks, where Spark was told to have them."""
last_signal = signal.SIGKILL
"""The signal that ends the JVM while it starts."""


def launch(settings: Mapping[str, str], deaf: bool) -> None:
    """Start the JVM for the next session, unless there is one already. With `deaf` it ignores SIGTERM. SettingError if
    it does not start."""
    if SparkContext._gateway is not None:
        return
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has started one
        SparkContext._ensure_initialized()
        return
    process, port, secret = _started(settings, deaf)
    reached = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(reached)
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in reached:
            os.environ.pop(name)
    gateway.proc = process  # it ends when this is collected, and its standard input is closed with it
    SparkContext._ensure_initialized(gateway=gateway)


def remove_folder() -> None:
    """Remove the folder of the JVM, which would leave its sockets there if it is ended. Safe in a signal handler."""
    for folder in (*_blocks, *([] if _folder is None else [_folder])):
        folder.remove()


def _started(settings: Mapping[str, str], deaf: bool) -> tuple[subprocess.Popen[bytes], int, str]:
    """Start a JVM, and wait until it says its port and its secret. PySpark would do the same in a temporary folder that
    stays if we are interrupted."""
    global _folder, last_signal
    _folder = _folder or OwnFolder(own_name(tempfile.gettempdir(), JVM))
    if len(_folder.path) > _LONGEST:
        _folder = OwnFolder(own_name("/tmp", JVM))
    atexit.register(remove_folder)
    _folder.hold()
    said = Path(_folder.path, "reached")
    environment = {**os.environ, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(said)}
    if locale.getencoding().lower() != "utf-8":  # the JVM would not find files with other letters in their names
        environment["LC_ALL"] = "C.UTF-8"
    if settings["spark.master"].startswith("local"):  # other hosts do not have the folder
        settings = {_SOCKETS: _folder.path, **settings}
    if re.match(r"local(\[|$)", settings["spark.master"]):
        settings = _in_own_folders(settings, environment, _folder.path)
    command = [os.path.join(_find_spark_home(), "bin", "spark-submit")]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    ignored = [signal.SIGINT, *([signal.SIGTERM, signal.SIGHUP] if deaf else ())]
    last_signal = signal.SIGKILL if deaf else signal.SIGHUP

    def ignore() -> None:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    read, write = os.pipe()
    threading.Thread(target=_pass_on, args=(read,), name="what Spark says", daemon=True).start()
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=write, env=environment, preexec_fn=ignore)
    finally:
        os.close(write)
    while not said.exists():
        if process.poll() is not None:
            raise SettingError("Spark's JVM did not start; above is what it said (see JAVA_HOME and --conf)")
        time.sleep(_LOOK_SECONDS)
    port, secret = said.read_bytes()[:4], said.read_bytes()[8:]  # behind the length of the secret
    said.unlink()
    return process, int.from_bytes(port, "big"), secret.decode()


def _in_own_folders(settings: Mapping[str, str], environment: dict[str, str], temporary: str) -> dict[str, str]:
    """The settings, and the environment, with which Spark has its temporary files in `temporary`, and its blocks in
    folders of ours in the place that the user names, by default there too."""
    java = f'"-Djava.io.tmpdir={temporary}" {settings.get(_JAVA, "")}'.strip()
    named = environment.get(_DIRS) or settings.get(_LOCAL)
    folders = [temporary]
    if named:
        _blocks[:] = [OwnFolder(own_name(os.path.abspath(parent), JVM)) for parent in named.split(",")]
        for folder in _blocks:
            folder.hold()
        folders = [folder.path for folder in _blocks]
    environment.pop(_DIRS, None)
    return {**settings, _JAVA: java, _LOCAL: ",".join(folders)}


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
