"""The ledger of the long suites: what fuzz, chaos, soak and planted faults have shown, over many evenings.

Each run appends one line to SUITE.jsonl in the ledger's folder, also a run that Ctrl-C or SIGTERM stops. `./run` names
the folder in EDDYLINE_LEDGER; without it, as in tests, nothing is written.

A line counts for the last code if nothing under src/ differs from the commit of this checkout. So a line holds the
identity that git gives to the contents of src/: it stays the same when commits are rebased or change other files.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER = "EDDYLINE_LEDGER"
"""The environment variable with the ledger's folder."""
ROOT = Path(__file__).parents[2]
CHANGED = "+"
"""Ends the commit of a run with uncommitted changes under src/. Such a run never counts for the last code."""


@dataclass(frozen=True)
class Line:
    """A run. Its cases have the numbers from `first` on; `src` identifies the contents of src/."""

    commit: str
    src: str
    command: str
    seed: int
    first: int
    cases: int
    differences: int
    seconds: float


@dataclass
class Entry:
    """A run that goes on: the suite keeps `cases` and `differences` up to date. `first` is where its cases begin."""

    first: int = 0
    cases: int = 0
    differences: int = 0


@dataclass(frozen=True)
class Code:
    """The code that a run tests: the commit, and the identity of src/ ("" if there is no git)."""

    commit: str
    src: str


@contextmanager
def entered(suite: str, command: str, seed: int, continues: bool = False) -> Iterator[Entry]:
    """A run of a suite, whose line is appended when the `with` ends, however that comes. With `continues` its cases
    begin behind the last one that the same command showed with this seed on the same code."""
    folder = os.environ.get(FOLDER)
    code = code_of(ROOT) if folder or continues else Code("", "")
    entry = Entry()
    if continues and folder:
        entry.first = next_case(read(Path(folder), suite), command, seed, code)
    if folder and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _ended)
    begin = time.monotonic()
    try:
        yield entry
    finally:
        if folder and (entry.cases or entry.differences):
            seconds = round(time.monotonic() - begin, 1)
            line = Line(code.commit, code.src, command, seed, entry.first, entry.cases, entry.differences, seconds)
            append(Path(folder), suite, line)


def stoppable(main: Callable[[], int]) -> int:
    """Runs a command line; Ctrl-C ends it with one line and status 130."""
    try:
        return main()
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped; the same command with --continue goes on behind the last case\n")
        return 130


def _ended(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def code_of(root: Path) -> Code:
    """The code of a checkout."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        commit, src, changes = git("rev-parse", "HEAD"), git("rev-parse", "HEAD:src"), git("status", "-s", "src")
    except FileNotFoundError:
        return Code("", "")
    return Code(f"{commit[:12]}{CHANGED}", f"{src}{CHANGED}") if changes else Code(commit[:12], src)


def append(folder: Path, suite: str, line: Line) -> None:
    """Add a line to the file of a suite, in one write."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{suite}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(line)) + "\n")


def read(folder: Path, suite: str) -> list[Line]:
    """The lines of a suite; an unfinished last line is left out."""
    try:
        text = (folder / f"{suite}.jsonl").read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [Line(**json.loads(line)) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def suites(folder: Path) -> list[str]:
    """The suites that have lines."""
    return sorted(file.stem for file in folder.glob("*.jsonl"))


def next_case(lines: Iterable[Line], command: str, seed: int, code: Code) -> int:
    """The number of the first case that a command has not shown with this seed on this code."""
    mine = (line for line in lines if (line.command, line.seed, line.src) == (command, seed, code.src))
    return max((line.first + line.cases for line in mine), default=0)


@dataclass
class Shown:
    """What runs have shown together. A case that several runs repeated with one seed counts once."""

    runs: int = 0
    cases: int = 0
    differences: int = 0
    seconds: float = 0.0


def shown(lines: Iterable[Line]) -> Shown:
    """Add up runs of one command."""
    total, known = Shown(), dict[tuple[str, int], int]()
    for line in sorted(lines, key=lambda line: line.first):
        total.runs += 1
        total.differences += line.differences
        total.seconds += line.seconds
        end, before = line.first + line.cases, known.get((line.src, line.seed), 0)
        total.cases += max(0, end - max(before, line.first))
        known[line.src, line.seed] = max(end, before)
    return total


def table(folder: Path, code: Code) -> str:
    """What each command has shown on this code and in all, as text for display."""
    rows: list[tuple[str, ...]] = [("", "on the last code", "", "", "in all", "", "")]
    rows.append(("", *("cases", "differences", "hours") * 2))
    for suite in suites(folder):
        lines = read(folder, suite)
        for command in sorted({line.command for line in lines}):
            mine = [line for line in lines if line.command == command]
            of_both = shown(line for line in mine if line.src == code.src), shown(mine)
            numbers = ((f"{one.cases:,}", f"{one.differences}", f"{one.seconds / 3600:.1f}") for one in of_both)
            rows.append((command, *(text for three in numbers for text in three)))
    if len(rows) == 2:
        return "the ledger is empty"
    widths = [max(map(len, column)) for column in zip(*rows[1:], strict=True)]
    lines_ = []
    for name, *cells in rows[1:]:
        lines_.append(name.ljust(widths[0]) + "".join(f"  {c:>{w}}" for c, w in zip(cells, widths[1:], strict=True)))
    left = widths[0] + 2
    middle = left + sum(widths[1:4]) + 6
    return "\n".join(["".ljust(left) + rows[0][1].ljust(middle - left) + rows[0][4], *lines_])
