"""Commands on a pseudo-terminal, and the screen that a person would see."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest


@dataclass
class Terminal:
    """What a terminal of some size shows after some output. Lines that scrolled out at the top are in `lines` too."""

    columns: int
    rows: int

    def __post_init__(self) -> None:
        self.lines: list[str] = [""]
        self.hidden = False
        self.wrapped = False
        self._y = self._x = 0

    def show(self, output: str) -> None:
        """Output with the few controls that Eddyline uses."""
        for control, character in re.findall(r"\x1b\[([?\d]*[A-Za-z])|(.)", output, re.DOTALL):
            self._control(control) if control else self._character(character)

    def _control(self, control: str) -> None:
        if control.endswith("A"):
            top = max(0, len(self.lines) - self.rows)
            assert self._y - int(control[:-1]) >= top, "moved above the screen"
            self._y -= int(control[:-1])
        elif control == "2K":
            self.lines[self._y] = ""
        elif control in ("?25l", "?25h"):
            self.hidden = control == "?25l"
        else:
            assert control.endswith("m"), f"unexpected control {control!r}"

    def _character(self, character: str) -> None:
        if character == "\r":
            self._x = 0
        elif character == "\n":
            self._y += 1
            self.lines += [""] * (self._y == len(self.lines))
        else:
            line = self.lines[self._y].ljust(self._x)
            self.lines[self._y] = line[: self._x] + character + line[self._x + 1 :]
            self._x += 1
            self.wrapped = self.wrapped or self._x > self.columns


@dataclass(frozen=True)
class Session:
    """What a command on a terminal left."""

    status: int
    output: str
    terminal: Terminal


def on_terminal(
    *arguments: str,
    columns: int = 100,
    rows: int = 30,
    react: Callable[[str, subprocess.Popen[bytes]], None] = lambda output, process: None,
    **environ: str,
) -> Session:
    """Runs eddyline with all three streams on a terminal; `react` is called as output comes."""
    try:
        master, slave = pty.openpty()
    except OSError as error:  # in a folder that somebody made the root, for example
        pytest.skip(f"there are no pseudo-terminals here: {error}")
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "eddyline.cli", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **environ},
    )
    os.close(slave)
    output = b""
    deadline = time.monotonic() + 600
    try:
        while time.monotonic() < deadline:
            if not select.select([master], [], [], 0.1)[0]:
                continue
            try:
                piece = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            output += piece
            react(output.decode(errors="replace"), process)
        status = process.wait(timeout=300)
    finally:
        process.kill()
        os.close(master)
    terminal = Terminal(columns, rows)
    text = output.decode()
    terminal.show(text)
    return Session(status, text, terminal)
