"""The joins of `bench core` in this checkout beside those of another one: what a change costs, or saves.

Each side runs in processes of its own, with the code of its checkout and the packages of this environment. The sides
take turns, run by run, and are compared by CPU time: it depends less than the time of day on other work on the machine.
How memory happens to lie differs from process to process, so there are several pairs of processes. In a third process
of each pair `memory` is set, far above what the join needs: the accounts of partition groups are kept then.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import eddyline
from eddyline.errors import InternalError, SettingError
from lab.bench import Result

BAR, LIMITED_BAR = 1.02, 1.03
"""The most CPU time beside the other checkout, and with `memory` beside without."""
PAIRS, RUNS = 4, 8
"""How many times the processes are started, and how many times each of them runs the join."""
MEMORY = 1 << 36
OURS, LIMITED, THEIRS = "this checkout", "this checkout, memory set", "the other checkout"

SIDE = """
import gc, json, sys
from time import process_time
try:  # where the laboratory was in older checkouts
    from eddyline.benchmarks.streams import query_over, run_engine, streams
except ImportError:
    from lab.bench.streams import query_over, run_engine, streams
from eddyline.settings import Settings

columns, select, rows, domain, batch, memory = json.loads(sys.argv[1])
data = streams(columns, rows, domain, every=100)
query = query_over(data, select)
run_engine(query, data, batch, Settings(memory=memory))
print("ready", flush=True)
for _ in sys.stdin:
    gc.collect()
    begin = process_time()
    found, _ = run_engine(query, data, batch, Settings(memory=memory))
    print(json.dumps([process_time() - begin, found]), flush=True)
"""
"""The program of a side. It uses only what older checkouts have, too."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CoreJoin:
    """A join of `bench core`."""

    name: str
    columns: Mapping[str, Sequence[str]]
    select: str
    rows: int
    domain: int


def against(checkout: str, joins: Sequence[CoreJoin], batch: int, pairs: int = PAIRS, runs: int = RUNS) -> list[Result]:
    """Compare all joins. SettingError if there is no code at `checkout`, or it cannot run a join."""
    other = Path(checkout, "src")
    if not (other / "eddyline/__init__.py").is_file():
        raise SettingError(f"--against {checkout}: there is no src/eddyline")
    results = []
    for join in joins:
        times = _times(other.resolve(), join, batch, pairs, runs)
        for side, beside, bar in ((OURS, THEIRS, BAR), (LIMITED, OURS, LIMITED_BAR)):
            ratios = [one / two for one, two in zip(times[side], times[beside], strict=True)]
            each = [median(ratios[at : at + runs]) for at in range(0, len(ratios), runs)]
            _log.info("%s: %s / %s, by process: %s", join.name, side, beside, " ".join(f"{r:.3f}" for r in each))
            found = median(each)
            results.append(Result(join.name, f"CPU time: {side} / {beside}", found, "", bar, found <= bar))
    return results


def _times(other: Path, join: CoreJoin, batch: int, pairs: int, runs: int) -> dict[str, list[float]]:
    """By side the CPU time of each run."""
    here = Path(eddyline.__file__).parent.parent
    sides = {OURS: (here, None), THEIRS: (other, None), LIMITED: (here, MEMORY)}
    times: dict[str, list[float]] = {side: [] for side in sides}
    found = set()
    for _ in range(pairs):
        with ExitStack() as started:
            processes = {}
            for name, (code, memory) in sides.items():
                given = json.dumps([join.columns, join.select, join.rows, join.domain, batch, memory])
                processes[name] = started.enter_context(side(code, given))
            for number in range(runs):
                for name in sides if number % 2 == 0 else reversed(sides):
                    seconds, rows = json.loads(answer(processes[name]))
                    times[name].append(seconds)
                    found.add(rows)
    if len(found) != 1:
        raise InternalError(f"{join.name}: the sides disagree: {found}")
    return times


@contextmanager
def side(code: Path, given: str, program: str = SIDE) -> Iterator[subprocess.Popen[str]]:
    """A process of a program that has run the join once, and runs it again for each line that it reads."""
    environment = os.environ | {"PYTHONPATH": f"{code}{os.pathsep}{code.parent}"}
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", program, given],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        if process.stdout.readline() != "ready\n":
            raise SettingError(f"the code in {code} cannot run the join")
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def answer(process: subprocess.Popen[str]) -> str:
    """What the process found, the next time."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline()
