"""One job of `bench spill`, in a process of its own that the command line starts, and what it takes while it runs.

A thread looks at the process every few milliseconds:

- its memory: anonymous pages and shared memory. The pages of mapped files belong to the system, which may drop them;
- the bytes that it has read and written (/proc/PID/io);
- the watermark of each commit. A result in the files of a batch is as late as the watermark of that batch is ahead of
  the newest row of the result. Where the thread misses a commit, the next one counts, so lateness is never too small.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.errors import EddylineError, SettingError
from eddyline.protocol.checkpoint import COMMITS, Checkpoint
from eddyline.state.log.store import Store
from lab.bench.memory_group import inside

LOOK, LOOK_IO = 0.005, 0.05
"""Seconds between two looks at memory and at commits, and between two looks at bytes read and written."""
WHERE = {"star": "a.a = b.a AND b.a = c.a", "chain": "a.a = b.a AND b.b = c.b"}


@dataclass(frozen=True)
class Work:
    """The join to run."""

    folder: Path
    """It has the rows of each stream in a folder of its name."""
    join: str
    """A key of WHERE."""
    window: float
    """Seconds."""

    @property
    def size(self) -> int:
        """Bytes of the files with the rows."""
        return sum(file.stat().st_size for stream in "abc" for file in (self.folder / stream).iterdir())


@dataclass(frozen=True)
class Measured:
    """What one job took, and what it gave."""

    seconds: float
    resident: int
    """The most bytes of memory that the process held."""
    state: int
    """The most bytes of state."""
    digest: tuple[int, int]
    """The number of results and a sum over all of them; it does not depend on their order."""
    late: float
    """How late the latest result was, in seconds of event time."""
    batch: float
    """By how much the watermark moved in the longest batch, in seconds."""
    io: dict[str, int]
    """The counters of /proc/PID/io."""
    left: int
    """How often groups left memory."""


def job(
    work: Work,
    memory: int | None,
    settings: Sequence[str] = (),
    group: Path | None = None,
    patience: float | None = None,
) -> Measured | None:
    """Run the job once with the setting `memory` and others, in a control group if one is given. Returns None if it
    takes more than `patience` seconds; raises SettingError if it fails."""
    with TemporaryDirectory(prefix="out-", dir=work.folder) as name:
        out = Path(name)
        script = out / "job.sql"
        script.write_text(_script(work, out))
        command = [sys.executable, "-m", "eddyline.cli", "run", str(script), "--engine", "local", "--json", "--final"]
        command += ["--checkpoint", f"{out}/checkpoint", "--set", f"memory={memory or 'none'}"]
        command += [word for setting in settings for word in ("--set", setting.format(out=out))]
        if group is not None:
            command = inside(group, command)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        looking = _Looking(process.pid, out / "checkpoint")
        looking.start()
        try:
            said, errors = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            return None
        finally:
            process.kill()
            process.wait()
            looking.join()
        if process.returncode:
            raise SettingError(f"the job failed: {errors.strip()}")
        looking.look_at_commits()
        told = json.loads(said.strip().splitlines()[-1])
        digest, newest = _results(out / "rows")
    watermarks = looking.watermarks
    return Measured(
        told["seconds"],
        looking.most,
        told["peak_memory_bytes"],
        digest,
        lateness(newest, watermarks) / 1e6,
        max(np.diff([time for _, time in sorted(watermarks.items())]), default=0) / 1e6,
        looking.io,
        told["groups_left"],
    )


def lateness(oldest: dict[int, int], watermarks: dict[int, int]) -> int:
    """How late the latest result is. `oldest` has, for each batch, the least time among the newest rows of its
    results; `watermarks` has the watermark after each batch that was seen.

    >>> lateness({3: 50, 4: 70}, {3: 60, 5: 90})
    20
    """
    last = max(watermarks.values())
    after = {batch: min((w for b, w in watermarks.items() if b >= batch), default=last) for batch in oldest}
    return max((after[batch] - time for batch, time in oldest.items()), default=0)


def _script(work: Work, out: Path) -> str:
    streams = [f"CREATE STREAM {s} USING parquet OPTIONS (path '{work.folder}/{s}') TIMESTAMP BY ts;" for s in "abc"]
    sink = f"CREATE SINK files USING parquet OPTIONS (path '{out}/rows');"
    ranges = ", ".join(f"{s} [RANGE {round(work.window * 1000)} MILLISECONDS]" for s in "abc")
    select = f"SELECT a.v AS x, b.v AS y, c.v AS z, greatest(a.ts, b.ts, c.ts) AS newest FROM {ranges}"
    return "\n".join([*streams, sink, f"INSERT INTO files {select} WHERE {WHERE[work.join]};\n"])


def _results(folder: Path) -> tuple[tuple[int, int], dict[int, int]]:
    """The digest of all results, and the least time among the newest rows of the results of each batch."""
    count, total, oldest = 0, 0, dict[int, int]()
    for file in folder.glob("part-*"):
        table = pq.read_table(file)
        if table.num_rows:
            count, total = count + table.num_rows, total + mixed(table)
            batch, times = int(file.name.split("-")[1]), table["newest"].cast(pa.int64()).to_numpy()
            oldest[batch] = min(oldest.get(batch, times[0]), int(times.min()))
    return (count, total % 2**64), oldest


def mixed(table: pa.Table) -> int:
    """A sum of one number for each row, in which each bit depends on all its columns."""
    rows = np.zeros(table.num_rows, np.uint64)
    for column in table.columns:
        rows ^= column.to_numpy().view(np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):  # as in splitmix64
            rows = (rows ^ (rows >> np.uint64(shift))) * np.uint64(factor)
        rows += np.uint64(0x9E3779B97F4A7C15)
    return int(rows.sum(dtype=np.uint64))


class _Looking(threading.Thread):
    """Looks at a process again and again until it ends."""

    def __init__(self, pid: int, checkpoint: Path) -> None:
        super().__init__(daemon=True)
        self._process, self._commits = Path(f"/proc/{pid}"), checkpoint / COMMITS
        self._checkpoint = Checkpoint(Store(str(checkpoint)))
        self.most = 0
        self.io: dict[str, int] = {}
        self.watermarks: dict[int, int] = {}

    def run(self) -> None:
        next_io = 0.0
        while True:
            try:
                lines = (self._process / "status").read_text().splitlines()
                held = [int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem"))]
                if held and time.monotonic() >= next_io:
                    next_io = time.monotonic() + LOOK_IO
                    counters = (self._process / "io").read_text().splitlines()
                    self.io = {line.split(":")[0]: int(line.split()[1]) for line in counters}
            except (FileNotFoundError, ProcessLookupError):
                return
            if not held:  # it has ended, and nobody has asked for its status yet
                return
            self.most = max(self.most, 1024 * sum(held))
            self.look_at_commits()
            time.sleep(LOOK)

    def look_at_commits(self) -> None:
        """Take the watermarks of the commits that are new."""
        with contextlib.suppress(OSError, EddylineError):  # the job removes old commits
            for batch in sorted(int(file.name) for file in self._commits.iterdir() if file.name.isdigit()):
                if batch not in self.watermarks:
                    used = self._checkpoint.commit_of(batch).watermarks.used
                    if used is not None:
                        self.watermarks[batch] = used
