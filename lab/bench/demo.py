"""`bench demo`: the demo proves its point in every run, also on a busy machine.

Runs `eddyline demo` again and again as its users do, each time in a new process with a cold JVM, and half of the runs
while another process for each core does nothing but burn its time. Its shortest data is the hardest: the adaptive order
has the least time to pay for its changes. `--part local` runs the demo on the local engine.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from eddyline.errors import JobError, SettingError
from lab.bench import Result

SECONDS, RUNS = 12, 20
TIMES, FIRST_LINE = 2.0, 15.0
PARTS = ("spark", "local")
SCRIPT_FIRST = "orders"
"""The stream that payments ask first in the order of the script."""
_ROWS = re.compile(r"[1-9][\d,]* rows in ")
_SENTENCE = re.compile(r"(?:in the end|no change:) (\S+) % of payments asked (\w+) first")
_CELLS = re.compile(r" adaptive +(\w+), (\S+) %")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DemoRun:
    """One run: how many times the CPU seconds of the adaptive order the fixed one took after the drift, contradictions
    in its text, and the seconds until its first line and until its first batch of rows."""

    times: float
    contradictions: tuple[str, ...]
    first_line: float
    first_rows: float


def run(part: str | None = None, runs: int = RUNS) -> list[Result]:
    """Run the demo `runs` times, the second half of them on a busy machine."""
    if part not in (None, *PARTS):
        raise SettingError(f"--part {part}: the parts of this benchmark are {', '.join(PARTS)}")
    found: dict[str, list[DemoRun]] = {}
    for number in range(runs):
        case = "as the machine is" if number < (runs + 1) // 2 else "with busy cores"
        with ExitStack() as stack:
            if case == "with busy cores":
                stack.enter_context(busy_cores())
            one = demo_run(part or "spark")
        found.setdefault(case, []).append(one)
        _log.info(
            "run %d, %s: the fixed order took %.1f times the CPU; first line after %.1f s, first rows after %.1f s%s",
            number + 1, case, one.times, one.first_line, one.first_rows,
            "".join(f"; CONTRADICTION: {wrong}" for wrong in one.contradictions),
        )  # fmt: skip
    return [result for case, some in found.items() for result in _results(case, some)]


def _results(case: str, found: list[DemoRun]) -> list[Result]:
    least, wrong = min(one.times for one in found), sum(len(one.contradictions) for one in found)
    line, rows = max(one.first_line for one in found), max(one.first_rows for one in found)
    return [
        Result(case, "runs", len(found), ""),
        Result(case, "least ratio of CPU seconds, fixed / adaptive", least, "", TIMES, least >= TIMES),
        Result(case, "contradictions", wrong, "", 0, wrong == 0),
        Result(case, "latest first line", line, "s", FIRST_LINE, line <= FIRST_LINE),
        Result(case, "latest first rows", rows, "s"),
    ]


@contextmanager
def busy_cores() -> Iterator[None]:
    """Keeps every core busy."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def demo_run(engine: str) -> DemoRun:
    """Run the demo once. JobError with its last line if it fails."""
    begin, lines, first_line, first_rows = perf_counter(), list[str](), 0.0, 0.0
    with tempfile.TemporaryDirectory(prefix="eddyline-bench-demo-") as out:
        options = ["--engine", engine, "--seconds", str(SECONDS), "--live", "--json", "--out", out]
        command = [sys.executable, "-m", "eddyline.cli", "demo", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
            assert demo.stdout is not None
            for line in demo.stdout:
                first_line = first_line or perf_counter() - begin
                first_rows = first_rows or (perf_counter() - begin if _ROWS.match(line) else 0.0)
                lines.append(line)
    if demo.returncode or not lines:
        raise JobError(f"the demo failed: {lines[-1].strip() if lines else 'it said nothing'}")
    told, text = json.loads(lines[-1])["demo"], "".join(lines[:-1])
    wrong = tuple(contradictions(text, told, 1 if engine == "local" else os.cpu_count() or 1))
    return DemoRun(told["after_drift"]["times"], wrong, first_line, first_rows)


def contradictions(text: str, demo: dict[str, Any], slots: int) -> list[str]:
    """Where the sentences, the table, the data of the JSON and the decisions of the run disagree about the stream that
    was asked first."""
    sentences, cells = _SENTENCE.findall(text), _CELLS.findall(text)
    wrong = [] if len(demo["phases"]) == len(sentences) == len(cells) else [f"phases: {sentences} and {cells}"]
    asked = dict.fromkeys(range(slots), SCRIPT_FIRST)
    for phase, (share, stream), (in_table, share_in_table) in zip(demo["phases"], sentences, cells, strict=False):
        for change in phase["changes"]:
            asked[change["slot"] or 0] = change["after"][0]
        last = [c for c in phase["changes"] if c["event"] == phase["changes"][-1]["event"]]
        possible = {*asked.values(), *(c["before"][0] for c in last)}  # they may come late in their batch
        if not phase["first"]["stream"] == stream == in_table or share != share_in_table or stream not in possible:
            wrong.append(
                f"{phase['rare']}: sentence {share} % {stream}, table {share_in_table} % {in_table},"
                f" data {phase['first']}, decisions {', '.join(sorted(possible))}"
            )
    return wrong
