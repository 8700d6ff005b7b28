"""`bench soak`: a job that follows two folders for hours, and hostile clients of its dashboard and metrics.

The parts `local` and `spark` measure the memory of all processes of a job at 6,000 rows a second (proportional set
size), and how much it grows in a minute after the first eighth of the time. The part `hostile` lets another user send
random requests to the dashboard and the metrics, and leave connections half open, in every second minute; the job's
rows a second in those minutes are compared with the others, and the lines that the job writes are counted.
"""

from __future__ import annotations

import logging
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.errors import InternalError, SettingError
from lab.bench import Result
from lab.bench.batches import memory_of
from lab.ledger import Entry, entered
from lab.servers.valkey import free_port

PARTS = ("local", "spark", "hostile")
MINUTES = {"local": 240, "spark": 240, "hostile": 60}
RATE = 6000
"""Rows a second of both streams together."""
WARM = 1 / 8
"""The share of the time that memory may grow in."""
GROWTH, SLOWER, LINES = 0.05, 0.95, 10
KEYS = 100_000
_EVERY, _PHASE = 5.0, 60.0

_SCRIPT = """CREATE STREAM a USING parquet OPTIONS (path '{0}/a') TIMESTAMP BY ts;
CREATE STREAM b USING parquet OPTIONS (path '{0}/b') TIMESTAMP BY ts;
CREATE SINK out USING parquet OPTIONS (path '{0}/out');
INSERT INTO out SELECT a.k, a.v AS av, b.v AS bv FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.k = b.k;
"""

_HOSTILE = """
import os, random, socket, sys, time

ports, rng, held = [int(port) for port in sys.argv[1:]], random.Random(1), []
words = [b"GET ", b"PUT ", b"/metrics", b"/api", b" HTTP/1.1\\r\\n", b"Host: 127.0.0.1\\r\\n", b"Host: evil\\r\\n"]
while True:
    try:
        some = socket.create_connection(("127.0.0.1", rng.choice(ports)), timeout=1)
        text = b"".join(rng.choice(words) for _ in range(rng.randrange(1, 8)))
        some.send(rng.choice([b"GET / HT", text, os.urandom(rng.randrange(1, 2000)), text + b"X-A: " + b"a" * 50000]))
        held.append(some)
    except OSError:
        pass
    while len(held) > 400:
        held.pop(rng.randrange(len(held))).close()
    time.sleep(0.01)
"""
"""The program of the hostile user."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Moment:
    """The job at a time: its memory in MB, its rows so far, and whether somebody attacks it."""

    at: float
    memory: float
    rows: int
    attacked: bool


def run(part: str | None = None, minutes: float | None = None) -> list[Result]:
    """Run one part, or `local`."""
    chosen = part or "local"
    if chosen not in PARTS:
        raise SettingError(f"--part {part}: the parts of this benchmark are {', '.join(PARTS)}")
    seconds = 60 * (MINUTES[chosen] if minutes is None else minutes)
    with entered("soak", f"soak --part {chosen}", seed=int(time.time())) as entry:  # rows have the present time
        with tempfile.TemporaryDirectory(prefix="eddyline-soak-") as folder, _writing(Path(folder)):
            moments, lines = _watched(Path(folder), chosen, seconds, entry)
        if chosen == "hostile":
            results = _against(moments, lines)
        else:
            results = _grown(chosen, [moment for moment in moments if moment.at >= seconds * WARM])
        entry.differences = sum(result.ok is False for result in results)
    return results


def _grown(part: str, moments: Sequence[Moment]) -> list[Result]:
    minutes, memory = (np.array(values) for values in zip(*((m.at / 60, m.memory) for m in moments), strict=True))
    slope = float(np.polyfit(minutes, memory, 1)[0])
    rows = (moments[-1].rows - moments[0].rows) / (moments[-1].at - moments[0].at)
    return [
        Result(part, "minutes measured", float(minutes[-1] - minutes[0]), "min"),
        Result(part, "rows a second", rows, ""),
        Result(part, "memory at first", float(np.median(memory[:12])), "MB"),
        Result(part, "memory in the end", float(np.median(memory[-12:])), "MB"),
        Result(part, "growth in a minute", slope, "MB", GROWTH, slope <= GROWTH),
    ]


def _against(moments: Sequence[Moment], lines: int) -> list[Result]:
    rates: dict[bool, list[float]] = {True: [], False: []}
    for before, after in pairwise(moments):
        if before.attacked == after.attacked:
            rates[after.attacked].append((after.rows - before.rows) / (after.at - before.at))
    alone, attacked = (float(np.mean(rates[key])) for key in (False, True))
    return [
        Result("hostile", "rows a second, alone", alone, ""),
        Result("hostile", "rows a second, attacked", attacked, ""),
        Result("hostile", "attacked / alone", attacked / alone, "", SLOWER, attacked / alone >= SLOWER),
        Result("hostile", "lines of the job", lines, "", LINES, lines < LINES),
    ]


def _watched(folder: Path, part: str, seconds: float, entry: Entry) -> tuple[list[Moment], int]:
    """Run the job for some seconds; also the number of lines that it wrote. The cases of the entry are minutes."""
    (folder / "job.sql").write_text(_SCRIPT.format(folder), encoding="utf-8")
    engine, ports = "spark" if part == "spark" else "local", (free_port(), free_port())
    command = [sys.executable, "-m", "eddyline.cli", "run", str(folder / "job.sql"), "--engine", engine, "--follow"]
    command += ["--checkpoint", str(folder / "checkpoint"), "--record", str(folder / "record")]
    if part == "hostile":
        command += [f"--dashboard={ports[0]}", "--set", f"metrics_port={ports[1]}"]
    with (folder / "said").open("w+", encoding="utf-8") as said:
        job = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said, start_new_session=True)
        attacker: subprocess.Popen[bytes] | None = None
        moments, begin = list[Moment](), time.monotonic()
        try:
            while (at := time.monotonic() - begin) < seconds:
                if part == "hostile" and (at // _PHASE % 2 == 1) != (attacker is not None):
                    if attacker is None:
                        attacker = _attacker(ports)
                    else:
                        _end(attacker)
                        attacker = None
                if job.poll() is not None:
                    raise InternalError(f"the job ended: {(folder / 'said').read_text()[-500:]}")
                entry.cases = int(at // 60)
                moments.append(Moment(at, memory_of(job.pid), _rows(folder / "record"), attacker is not None))
                if len(moments) % 60 == 0:
                    _log.info("%.0f min: %.1f MB, %d rows", at / 60, moments[-1].memory, moments[-1].rows)
                time.sleep(_EVERY)
        finally:
            if attacker is not None:
                _end(attacker)
            job.terminate()
            job.wait(120)
    return moments, len((folder / "said").read_text(encoding="utf-8").splitlines())


def _rows(record: Path) -> int:
    """The rows in, by the newest sample of a record."""
    try:
        with record.open("rb") as file:
            file.seek(max(0, record.stat().st_size - 200_000))
            found = re.findall(rb'"rows_in": ?(\d+)', file.read())
    except FileNotFoundError:
        return 0
    return int(found[-1]) if found else 0


def _attacker(ports: Sequence[int]) -> subprocess.Popen[bytes]:
    python = shutil.which("python3", path="/usr/bin:/bin")  # another user may not read ours
    other = pwd.getpwnam("nobody").pw_uid if python is not None and os.geteuid() == 0 else None
    return subprocess.Popen([python or sys.executable, "-c", _HOSTILE, *map(str, ports)], cwd="/", user=other)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """A thread adds a file to each stream every second."""
    over = threading.Event()
    writer = threading.Thread(target=_write, args=(folder, over), daemon=True)
    for name in ("a", "b", "new"):
        (folder / name).mkdir()
    _add(folder, 0)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


def _write(folder: Path, over: threading.Event) -> None:
    begin, number = time.monotonic(), 0
    while not over.wait(max(0.0, begin + number + 1 - time.monotonic())):
        number += 1
        _add(folder, number)


def _add(folder: Path, number: int) -> None:
    rng, now = np.random.default_rng(number), time.time()
    for name in "ab":
        times = (np.linspace(now - 1, now, RATE // 2) * 1e6).astype(np.int64)
        columns = {"k": rng.integers(0, KEYS, RATE // 2), "v": rng.random(RATE // 2)}
        file = folder / "new" / f"{name}{number:08}.parquet"
        pq.write_table(pa.table({"ts": pa.array(times, pa.timestamp("us")), **columns}), file)
        file.rename(folder / name / f"{number:08}.parquet")
