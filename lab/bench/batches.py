"""`bench batches`: the number of rows that `batch_rows=auto` chooses, beside fixed numbers.

Each run is a job through the command line over files, in processes of its own; the sides take turns. A side's time is
its least over the rounds, because other work on the machine only adds to it. Memory is the proportional set size of all
processes of a run, with the state on /dev/shm; CPU seconds are those of the same processes, start-up included. The time
of the first result is that of the first sample of the record that has one: of both sides `auto` starts as a fixed size
of 65,536 rows does (on Spark 524,288).

The part `latency` compares this checkout with another one (`--against`): how old rows are when a sink gets them, which
a generator gives at 10,000 rows a second (batch_latency.py).
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.errors import InternalError, SettingError
from lab.bench import Result
from lab.bench.batch_latency import latency
from lab.bench.streams import streams
from lab.chaos.run import processes

SIZES = (65_536, 262_144, 1_000_000, 2_000_000, 4_000_000)
FILE_ROWS = 250_000
ROUNDS = 3
SLOWER, SLOWER_ON_SPARK, MEMORY, FIRST = 1.05, 1.10, 1.5, 1.1
"""Bars of `auto`: its time beside that of the fastest number, its memory beside that of the same, and its first result
beside that of the number with which it begins."""
ENGINES = ("local", "spark")
FIRST_ROWS = {"local": 65_536, "spark": 524_288}
TICK = os.sysconf("SC_CLK_TCK")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Case:
    """A job: its streams with their keys, its SELECT, and the rows of each stream."""

    columns: Mapping[str, Sequence[str]]
    select: str
    rows: int
    domain: int = 100_000
    of_state: float | None = None
    """The share of its state that it may have in memory; None: no limit."""


_JOIN = "SELECT a.v AS av, b.v AS bv, c.v AS cv FROM {} WHERE a.a = b.a AND b.b = c.b"
_THREE: Mapping[str, Sequence[str]] = {"a": ["a"], "b": ["a", "b"], "c": ["b"]}


def _windows(names: str, window: str) -> str:
    return ", ".join(f"{name} [RANGE {window}]" for name in names)


CASES = {
    "join": Case(_THREE, _JOIN.format(_windows("abc", "5 SECONDS")), 1_000_000),
    "long": Case(_THREE, _JOIN.format(_windows("abc", "5 SECONDS")), 6_000_000),
    "two-way": Case(
        {"a": ["a"], "b": ["a"]},
        f"SELECT a.v AS av, b.v AS bv FROM {_windows('ab', '5 SECONDS')} WHERE a.a = b.a",
        1_500_000,
    ),
    "aggregate": Case(
        {"a": ["a"]},
        "SELECT window_end() AS until, a.a % 1000 AS k, COUNT(*) AS n, SUM(a.v) AS v"
        " FROM a [RANGE 10 SECONDS SLIDE 1 SECOND] GROUP BY a.a % 1000",
        3_000_000,
    ),
    "memory": Case(_THREE, _JOIN.format(_windows("abc", "30 SECONDS")), 1_000_000, 2_000_000, of_state=0.25),
}
"""The parts `local-NAME` and `spark-NAME`."""


@dataclass(frozen=True)
class Ran:
    """What a run took: seconds from its first batch on, CPU seconds, bytes, and seconds to the first result."""

    seconds: float
    cpu: float
    memory: float
    first: float
    batches: int
    results: int
    state: int


def run(part: str | None = None, rounds: int = ROUNDS, against: str | None = None) -> list[Result]:
    """Measure all parts, those of one engine, or one. SettingError if there is no such part."""
    parts = [f"{engine}-{name}" for engine in ENGINES for name in CASES]
    chosen = [one for one in parts if part is None or one == part or one.split("-")[0] == part]
    if not chosen and part != "latency":
        raise SettingError(f"--part {part}: the parts of this benchmark are {', '.join([*ENGINES, *parts])}, latency")
    results = []
    for name in chosen:
        engine, _, case = name.partition("-")
        results += measure(name, CASES[case], engine, rounds)
    return results + (latency(against, rounds) if against is not None else [])


def measure(name: str, case: Case, engine: str, rounds: int, sizes: Sequence[int] = SIZES) -> list[Result]:
    """Measure `auto` and all sizes."""
    with tempfile.TemporaryDirectory(prefix="eddyline-bench-") as folder:
        write(case, folder)
        every = case.rows * len(case.columns)
        fixed = sorted({*(size for size in (*sizes, FIRST_ROWS[engine]) if size < every), every})
        memory = None
        if case.of_state is not None:
            whole = _ran(folder, engine, {"batch_rows": "65536"})
            assert whole is not None
            slots = 1 if engine == "local" else os.cpu_count() or 1
            memory = str(int(case.of_state * whole.state / slots))
        runs: dict[str, list[Ran]] = {size: [] for size in ("auto", *map(str, fixed))}
        for number in range(rounds):
            for size in runs if number % 2 == 0 else reversed(list(runs)):
                one = _ran(folder, engine, {"batch_rows": size} | ({} if memory is None else {"memory": memory}))
                if one is None:
                    _log.info("%s: %s rows do not fit in memory", name, size)
                else:
                    runs[size].append(one)
                    _log.info("%s, %s: %s", name, size, one)
    if len({one.results for some in runs.values() for one in some}) != 1:
        raise InternalError(f"{name}: the sides disagree")
    return _judged(name, engine, {size: some for size, some in runs.items() if some})


def _judged(name: str, engine: str, runs: Mapping[str, Sequence[Ran]]) -> list[Result]:
    seconds = {size: min(one.seconds for one in some) for size, some in runs.items()}
    cpu = {size: min(one.cpu for one in some) for size, some in runs.items()}
    memory = {size: min(one.memory for one in some) for size, some in runs.items()}
    first = {size: min(one.first for one in some) for size, some in runs.items()}
    best = min((size for size in runs if size != "auto"), key=lambda size: seconds[size])
    least = min((size for size in runs if size != "auto"), key=lambda size: cpu[size])
    begins = next((size for size in runs if size == str(FIRST_ROWS[engine])), best)
    slower, larger = seconds["auto"] / seconds[best], memory["auto"] / memory[best]
    later, bar = first["auto"] / first[begins], SLOWER if engine == "local" else SLOWER_ON_SPARK
    found = [
        Result(name, f"{size}: {metric}", value[size], unit)
        for size in runs
        for metric, value, unit in (("time", seconds, "s"), ("CPU", cpu, "s"), ("memory", memory, "MB"))
    ]
    return [
        *found,
        Result(name, f"auto / {best}, time", slower, "", bar, slower <= bar),
        Result(name, f"auto / {least}, CPU", cpu["auto"] / cpu[least], ""),
        Result(name, f"auto / {best}, memory", larger, "", MEMORY, larger <= MEMORY),
        Result(name, "auto: batches", runs["auto"][0].batches, ""),
        Result(name, "auto: first result", first["auto"], "s"),
        Result(name, f"auto / {begins}, first result", later, "", FIRST, later <= FIRST),
    ]


def write(case: Case, folder: str) -> None:
    """Write the streams and the script of a case."""
    lines = []
    for name, batch in streams(case.columns, case.rows, case.domain, every=100).items():
        Path(folder, name).mkdir()
        for at in range(0, case.rows, FILE_ROWS):
            rows = pa.Table.from_batches([batch.slice(at, FILE_ROWS)])
            pq.write_table(rows, Path(folder, name, f"{at // FILE_ROWS:04}.parquet"))
        lines.append(f"CREATE STREAM {name} USING parquet OPTIONS (path '{folder}/{name}') TIMESTAMP BY ts;")
    lines.append(f"CREATE SINK out USING parquet OPTIONS (path '{folder}/out', mode 'overwrite');")
    Path(folder, "job.sql").write_text("\n".join([*lines, f"INSERT INTO out {case.select};"]), encoding="utf-8")


def _ran(folder: str, engine: str, settings: Mapping[str, str]) -> Ran | None:
    """Run the job once; None if its batches do not fit in memory."""
    record = Path(folder, "record")
    for left in (record, Path(folder, "out")):
        shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
    command = [sys.executable, "-m", "eddyline.cli", "run", f"{folder}/job.sql", "--engine", engine, "--json"]
    command += [
        "--record",
        str(record),
        *(word for key, value in settings.items() for word in ("--set", f"{key}={value}")),
    ]
    with open(Path(folder, "said"), "w+", encoding="utf-8") as said, open(Path(folder, "json"), "w+") as told:
        process = subprocess.Popen(command, stdout=told, stderr=said, start_new_session=True)
        cpu, memory = dict[int, float](), 0.0
        while process.poll() is None:
            cpu, memory = cpu | _cpu(process.pid), max(memory, memory_of(process.pid))
            time.sleep(0.1)
        told.seek(0)
        said.seek(0)
        lines, error = told.read().splitlines(), said.read()
    if process.returncode:
        if "the rows of a batch take" in error:
            return None
        raise InternalError(f"{' '.join(command)}: {error[-500:]}")
    summary = json.loads(lines[-1])
    samples = [event for line in record.open() if (event := json.loads(line))["type"] == "sample"]
    first = next((event["t"] for event in samples if event["rows_out"]), summary["seconds"])
    figures = summary["seconds"], sum(cpu.values()), memory, first
    return Ran(*figures, summary["batches"], summary["rows_out"], summary["peak_memory_bytes"])


def _cpu(session: int) -> dict[int, float]:
    """The CPU seconds of each process so far."""
    found = {}
    for one in processes(session):
        try:
            fields = Path(f"/proc/{one.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        found[one.pid] = (int(fields[11]) + int(fields[12])) / TICK
    return found


def memory_of(session: int) -> float:
    """The megabytes of all processes of a session."""
    found = 0
    for one in processes(session):
        try:
            text = Path(f"/proc/{one.pid}/smaps_rollup").read_text(encoding="ascii")
        except OSError:
            continue
        found += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return found / 1024
