"""`bench spill`: a join whose state is up to 16 times the memory that it may take.

Each side is a job of its own process, started by the command line with a checkpoint: without a limit, and with limits
that are a part of the state that the unlimited job held at its peak. A thread samples the memory of the process
(anonymous pages and shared memory; the pages of mapped files belong to the system). All sides must give the same rows.

- *star*: three streams that agree in one key, so rows of all three can leave memory.
- *chain*: the join of two keys, a.a = b.a and b.b = c.b; the rows of one stream have groups of their own.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.benchmarks import Result
from eddyline.benchmarks.streams import START
from eddyline.errors import SettingError

ROWS, EVERY, WINDOW = 2_400_000, 100, 80
"""Rows of each stream, microseconds between two of them, and seconds of the window."""
KEYS = 2 * WINDOW * 1_000_000 // EVERY
"""Distinct keys: a probe finds half a row on average."""
FILES, ROUNDS = 8, 2
TIMES = (0.5, 1, 2, 4, 8, 16)
"""How many times as large as the memory the state is."""
LEAST = {4: 0.6, 16: 0.35}
"""The bars: throughput as a part of that without a limit."""
WHERE = {"star": "a.a = b.a AND b.a = c.a", "chain": "a.a = b.a AND b.b = c.b"}
ZIPF = 1.1
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Measured:
    seconds: float
    memory: int
    """The most bytes that the process held."""
    state: int
    rows: pa.Table


def run(part: str | None = None) -> list[Result]:
    """Measure the parts NAME-KEYS, for example star-uniform; all if none is given."""
    parts = [f"{name}-{keys}" for name in WHERE for keys in ("uniform", "zipf")]
    if part is not None and part not in parts:
        raise SettingError(f"--part: there is no part {part}; there is {', '.join(parts)}")
    return [result for each in ([part] if part else parts) for result in _compare(*each.split("-"))]


def _compare(join: str, keys: str) -> list[Result]:
    with TemporaryDirectory(prefix="eddyline-") as name:
        folder = Path(name)
        _write(folder, keys)
        idle = _job(folder, join, None, window=0.001)
        whole = _job(folder, join, None)
        limits = {times: round(whole.state / times) for times in TIMES}
        found: dict[float, list[_Measured]] = {0: [whole]} | {times: [] for times in TIMES}
        for _ in range(ROUNDS):
            found[0].append(_job(folder, join, None))
            for times, limit in limits.items():
                found[times].append(_job(folder, join, limit))
    results = []
    for times, limit in limits.items():
        case = f"{join}, {keys} keys, state {times:g} times memory"
        same = all(one.rows.equals(whole.rows) for one in found[times])
        ratios = [w.seconds / one.seconds for w, one in zip(found[0][1:], found[times], strict=True)]
        bar = LEAST.get(int(times)) if times >= 1 else None
        over = max(one.memory - idle.memory for one in found[times]) / limit
        results += [
            Result(case, "the same rows as without a limit", float(same), "", 1.0, same),
            Result(case, "throughput / without a limit", median(ratios), "", bar, bar is None or median(ratios) >= bar),
            Result(case, "memory beyond that of an idle job / limit", over, "", 1.1, over <= 1.1),
        ]
    return results


def _write(folder: Path, keys: str) -> None:
    random = np.random.default_rng(5)

    def drawn() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        if keys == "uniform":
            return random.integers(0, KEYS, ROWS)
        return np.minimum(random.zipf(ZIPF, ROWS), KEYS).astype(np.int64)

    times = pa.array(np.arange(ROWS) * EVERY + START, pa.timestamp("us"))
    for stream in "abc":
        table = pa.table({"ts": times, "a": drawn(), "b": drawn(), "v": random.random(ROWS)})
        (folder / stream).mkdir()
        for number in range(FILES):
            part = table.slice(number * ROWS // FILES, ROWS // FILES)
            pq.write_table(part, folder / stream / f"{number:04}.parquet")


def _job(folder: Path, join: str, limit: int | None, window: float = WINDOW) -> _Measured:
    with TemporaryDirectory(prefix="out-", dir=folder) as out:
        streams = "\n".join(
            f"CREATE STREAM {s} USING parquet OPTIONS (path '{folder}/{s}') TIMESTAMP BY ts;" for s in "abc"
        )
        ranges = ", ".join(f"{s} [RANGE {round(window * 1000)} MILLISECONDS]" for s in "abc")
        select = f"SELECT a.v AS x, b.v AS y, c.v AS z FROM {ranges} WHERE {WHERE[join]}"
        script = Path(out) / "job.sql"
        sink = f"CREATE SINK files USING parquet OPTIONS (path '{out}/rows');"
        script.write_text(f"{streams}\n{sink}\nINSERT INTO files {select};\n")
        command = [sys.executable, "-m", "eddyline.cli", "run", str(script), "--engine", "local", "--json"]
        command += ["--checkpoint", f"{out}/checkpoint", "--final", "--set", f"memory={limit or 'none'}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        sampler = _Sampler(process.pid)
        sampler.start()
        said, errors = process.communicate()
        sampler.join()
        if process.returncode:
            raise SettingError(f"the job failed: {errors.strip()}")
        told = json.loads(said.strip().splitlines()[-1])
        rows = pq.read_table(f"{out}/rows").sort_by([(name, "ascending") for name in "xyz"])
    _log.info(
        "%s, memory %s: %.1f s, %d MB, state %d MB",
        join,
        limit,
        told["seconds"],
        sampler.most >> 20,
        told["peak_memory_bytes"] >> 20,
    )
    return _Measured(told["seconds"], sampler.most, told["peak_memory_bytes"], rows)


class _Sampler(threading.Thread):
    """Looks at the memory of a process, again and again until it ends."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._status = Path(f"/proc/{pid}/status")
        self.most = 0

    def run(self) -> None:
        while True:
            try:
                lines = self._status.read_text().splitlines()
            except (FileNotFoundError, ProcessLookupError):
                return
            held = [int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem"))]
            if not held:
                return
            self.most = max(self.most, 1024 * sum(held))
            time.sleep(0.005)
