"""`bench spill`: a join whose state is up to 16 times the memory that it may take.

Each side is a job in a process of its own (spill_job.py), started by the command line with a checkpoint: without a
limit, and with limits that are a part of the state that the unlimited job held at its peak. All sides must give the
same rows. A part is a join and the distribution of its keys, or the joins of `peer`:

- *star*: three streams that agree in one key, so rows of all three can leave memory.
- *chain*: the join of two keys, a.a = b.a and b.b = c.b; the rows of one stream have groups of their own.
- *uniform*: a probe finds half a row on average.
- *zipf*: how often a key comes follows Zipf's law. Each stream has its own popular keys: if all had the same ones, the
  join would have more than 10^14 results.
- *peer*: the same job with its state in files on disk, left to the kernel (`arena_dir`), which writes pages to disk and
  reads them again. Both sides run in a control group of the same size, in which the pages of files count too.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.errors import SettingError
from eddyline.setting_kinds import size_text
from lab.bench import Result
from lab.bench.memory_group import NoGroup, memory_group
from lab.bench.spill_job import WHERE, Measured, Work, job
from lab.bench.streams import START

ROWS, EVERY, WINDOW = 2_400_000, 100, 80
"""Rows of each stream, microseconds between two of them, and seconds of the window."""
KEYS = 2 * WINDOW * 1_000_000 // EVERY
"""Distinct keys: a probe finds half a row on average."""
ZIPF = 1.1
FILES, ROUNDS = 8, 3
TIMES = (0.5, 1, 2, 4, 8, 16)
"""How many times as large as the memory the state is."""
LEAST = {4: 0.6, 16: 0.35}
"""The bars: throughput as a part of that without a limit. These sizes are measured in each round, the others once."""
FIXED, OVER = 256_000_000, 1.1
"""The promise of docs/operations.md, "State larger than memory": a job with one slot holds at most OVER times `memory`,
and FIXED bytes for the process itself, the rows of a batch and results that are being written."""
PEER_TIMES, PATIENCE, FILE_PAGES = (4, 16), 2, 32_000_000
"""Sizes at which spilling is compared with the kernel; how many times as long as spilling the kernel may take before it
is ended; and the room for pages of files in the control group, beside what the spilling job holds in memory."""
STARTING = 10.0
"""Seconds that a process may take to start in a control group, which its own time does not count."""
DISK = 256 << 20
"""Bytes that are written to measure the disk."""
PEER = "peer"
_log = logging.getLogger(__name__)


def run(part: str | None = None) -> list[Result]:
    """Measure the parts JOIN-KEYS, for example star-uniform, and the part `peer`; all if none is given."""
    parts = [*(f"{join}-{keys}" for join in WHERE for keys in ("uniform", "zipf")), PEER]
    if part is not None and part not in parts:
        raise SettingError(f"--part: there is no part {part}; there is {', '.join(parts)}")
    results = []
    for each in [part] if part else parts:
        results += _peers() if each == PEER else _compare(*each.split("-"))
    return results


def _compare(join: str, keys: str) -> list[Result]:
    with TemporaryDirectory(prefix="eddyline-") as name:
        work = Work(Path(name), join, WINDOW)
        _write(work.folder, keys)
        read, disk = work.size, _disk(work.folder)
        first = _job(work, None)
        limits = {times: round(first.state / times) for times in TIMES}
        found: dict[float, list[Measured]] = {0: []} | {times: [] for times in TIMES}
        for number in range(ROUNDS):
            found[0].append(_job(work, None))
            for times in TIMES if number == 0 else LEAST:
                found[times].append(_job(work, limits[times]))
    case = f"{join}, {keys} keys"
    results = [
        Result(case, "state without a limit", first.state / 1e6, "MB"),
        Result(case, "the disk writes", disk / 1e6, "MB/s"),
        *_io(f"{case}, no limit", found[0], read, disk),
    ]
    for times, limit in limits.items():
        here = f"{case}, state {times:g} times memory ({size_text(limit)})"
        results += measured(here, found[0], found[times], limit, LEAST.get(int(times)) if times >= 1 else None)
        if times in LEAST:
            results += _io(here, found[times], read, disk)
    return results


def measured(
    case: str, whole: Sequence[Measured], limited: Sequence[Measured], limit: int, least: float | None
) -> list[Result]:
    """The results of one size. The first rounds of both sides are one after the other, so they are compared."""
    same = all(one.digest == whole[0].digest for one in (*whole, *limited))
    ratio = median(w.seconds / one.seconds for w, one in zip(whole, limited, strict=False))
    resident, promise = max(one.resident for one in limited), OVER * limit + FIXED
    late, allowed = max(one.late for one in limited), WINDOW + max(one.batch for one in limited)
    return [
        Result(case, "the same rows as without a limit", float(same), "", 1.0, same),
        Result(case, "throughput / without a limit", ratio, "", least, None if least is None else ratio >= least),
        Result(case, "resident memory", resident / 1e6, "MB", promise / 1e6, resident <= promise),
        Result(case, "resident memory / promise", resident / promise, ""),
        Result(case, "latest result; bar: spill_delay and a batch", late, "s", allowed, late <= allowed),
        Result(case, "groups that left memory", limited[0].left, ""),
    ]


def _io(case: str, found: Sequence[Measured], read: int, disk: float) -> list[Result]:
    """Bytes per byte of input. rchar and wchar are what the job asked for; read_bytes and write_bytes are what its
    pages cost the disk: reads that the page cache did not serve, and pages that were made dirty. Reads of mapped files
    are in read_bytes alone."""
    names = {"rchar": "read", "wchar": "written", "read_bytes": "read from disk", "write_bytes": "written to disk"}
    taken = {name: median(one.io.get(name, 0) for one in found) for name in names}
    results = [
        Result(case, f"bytes {what} / input byte ({name})", taken[name] / read, "") for name, what in names.items()
    ]
    share = (taken["read_bytes"] + taken["write_bytes"]) / median(one.seconds for one in found) / disk
    return [*results, Result(case, "share of the disk's sequential bandwidth", share, "")]


def _peers() -> list[Result]:
    results = []
    for join in WHERE:
        with TemporaryDirectory(prefix="eddyline-") as name:
            work = Work(Path(name), join, WINDOW)
            _write(work.folder, "uniform")
            try:
                results += _peer(work)
            except NoGroup as error:
                _log.warning("peer: skipped, because no control group can be made: %s", error)
    return results


def _peer(work: Work) -> list[Result]:
    with memory_group(1 << 30):
        pass  # NoGroup at once, not after the first job
    state, results = _job(work, None).state, []
    for times in PEER_TIMES:
        memory = round(state / times)
        limit = _job(work, memory).resident + FILE_PAGES
        case = f"{work.join}, state {times} times memory, {size_text(limit)} for everything"
        with memory_group(limit) as group:
            ours = _job(work, memory, group=group)
        with memory_group(limit) as group:
            least = PATIENCE * ours.seconds
            theirs = job(work, None, ["arena_dir={out}/arenas"], group, least + STARTING)
        taken = least if theirs is None else theirs.seconds
        _log.info("%s: left to the kernel, %s %.1f s", case, "more than" if theirs is None else "", taken)
        same = theirs is None or theirs.digest == ours.digest
        spilled = ours.io.get("read_bytes", 0) / work.size
        results += [
            Result(case, "spilling", ours.seconds, "s"),
            Result(case, "spilling, bytes read from disk / input byte (read_bytes)", spilled, ""),
            Result(case, "left to the kernel" if theirs else "left to the kernel, more than", taken, "s"),
            Result(case, "throughput / left to the kernel", taken / ours.seconds, "", 1.0, taken > ours.seconds),
            Result(case, "the same rows", float(same), "", 1.0, same),
        ]
    return results


def _job(work: Work, memory: int | None, group: Path | None = None) -> Measured:
    found = job(work, memory, group=group)
    assert found is not None, "it has no limit of time"
    _log.info(
        "%s, memory %s: %.1f s, %s resident, state %s, results up to %.1f s late",
        work.join,
        "without a limit" if memory is None else size_text(memory),
        found.seconds,
        size_text(found.resident),
        size_text(found.state),
        found.late,
    )
    return found


def _write(folder: Path, keys: str) -> None:
    random = np.random.default_rng(5)
    shares = np.cumsum(np.arange(1, KEYS + 1) ** -ZIPF)

    def drawn() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        if keys == "uniform":
            return random.integers(0, KEYS, ROWS)
        ranks = np.searchsorted(shares, random.random(ROWS) * shares[-1])
        of_ranks: np.ndarray[tuple[int], np.dtype[np.int64]] = random.permutation(KEYS)[ranks]
        return of_ranks

    times = pa.array(np.arange(ROWS) * EVERY + START, pa.timestamp("us"))
    for stream in "abc":
        table = pa.table({"ts": times, "a": drawn(), "b": drawn(), "v": random.random(ROWS)})
        (folder / stream).mkdir()
        for number in range(FILES):
            part = table.slice(number * ROWS // FILES, ROWS // FILES)
            pq.write_table(part, folder / stream / f"{number:04}.parquet")


def _disk(folder: Path) -> float:
    """Bytes per second that a file in the folder takes, written from its start to its end and synced."""
    block, path = os.urandom(1 << 22), folder / "disk"
    begin = time.perf_counter()
    with path.open("wb") as file:
        for _ in range(DISK // len(block)):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    seconds = time.perf_counter() - begin
    path.unlink()
    return DISK / seconds
