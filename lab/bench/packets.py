"""`bench packets`: adaptive packets beside fixed sizes, and beside the per-tuple eddy.

The three-way join of the papers, R.1 = S.1 and S.2 = T.1, with windows of W rows and s matches a probe, so keys are
uniform over W / s values. The router is fixed on all sides: only packets differ. Each side has an engine of its own,
whose windows are filled first, untimed; then all sides take the same rows, chunk by chunk, in turns.

A window that would cost too many matches to fill is filled without matches: R first, with keys that new rows of S have
and filled rows of S do not; then T, while there is no S to probe; then S, whose probes of R find nothing. So the filled
rows never match each other, and yet new rows of R and of S find s matches in each of two full windows, and new rows of
T find s matches in S.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa

from eddyline.bound.model import BoundQuery
from eddyline.errors import InternalError, SettingError
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench import Result
from lab.bench.rounds import quickest, ratio
from lab.bench.streams import START, Streams, query_over

BEHIND, TIMES_PER_TUPLE = 1.10, 15
WINDOWS = (100, 1_000, 10_000, 100_000, 1_000_000)
SELECTIVITIES = (0.1, 1, 8, 64)
SIZES = (64, 256, 1024, 4096, 16384, 65536)
PER_TUPLE_WINDOWS = (100, 1_000, 10_000)
"""Windows of the per-tuple eddy; larger ones take minutes to fill tuple by tuple."""
PER_TUPLE_ROWS = 1_500
BATCH = 65536
SECONDS = 0.35
"""The approximate seconds of a chunk."""
ROUNDS, FINALISTS = 4, 2
FILL_MATCHES = 30_000_000
"""Windows that cost more matches to fill are filled without matches."""
PARTS = (*(str(window) for window in WINDOWS), "per-tuple")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cell:
    """A window and a selectivity."""

    window: int
    selectivity: float

    @property
    def domain(self) -> int:
        """The number of distinct keys."""
        return round(self.window / self.selectivity)

    @property
    def quiet(self) -> bool:
        """Whether the window is filled with rows that do not match."""
        return 3 * self.window * (self.selectivity + self.selectivity**2) > FILL_MATCHES

    def select(self) -> str:
        """The join, with little to gather."""
        of = f"[RANGE {self.window} MICROSECONDS]"
        return f"SELECT r.v AS v FROM r {of}, s {of}, t {of} WHERE r.a = s.a AND s.b = t.b"

    def rows(self, first: int, count: int) -> Streams:
        """Rows first .. first + count of each stream; those of the first window are the fill."""
        random = np.random.default_rng((self.window, first))
        near = [random.integers(0, self.domain, count) for _ in range(4)]
        times = pa.array(np.arange(first, first + count) + START, pa.timestamp("us"))
        away = self.domain if self.quiet else 0
        fill = first < self.window
        return {
            "r": pa.record_batch({"ts": times, "a": near[0] + (away if fill else 0), "v": random.random(count)}),
            "s": pa.record_batch({"ts": times, "a": near[1] + (0 if fill else away), "b": near[2]}),
            "t": pa.record_batch({"ts": times, "b": near[3]}),
        }

    def __str__(self) -> str:
        return f"window {self.window:,}, selectivity {self.selectivity:g}"


CELLS = tuple(Cell(w, s) for w in WINDOWS for s in SELECTIVITIES if w / s >= 2)


class _FilledEngine:
    """One engine with filled windows."""

    def __init__(self, query: BoundQuery, cell: Cell, packet: int | None) -> None:
        self.engine = BatchDriver(query, Settings(router="fixed", packet=packet, plan="mjoin"))
        fill = cell.rows(0, cell.window)
        for part in [{name: fill[name]} for name in "rts"] if cell.quiet else [fill]:
            self.take(part)

    def take(self, chunk: Streams) -> tuple[float, int]:
        """Feed a chunk; returns the seconds and the number of results."""
        rows, found = next(iter(chunk.values())).num_rows, 0
        gc.collect()
        begin = perf_counter()
        for at in range(0, rows, BATCH):
            batch = self.engine.batch([(name, stream.slice(at, BATCH)) for name, stream in chunk.items()])
            found += sum(results.num_rows for results in batch.results)
        return perf_counter() - begin, found


def run(part: str | None = None) -> list[Result]:
    """Measure all windows and the per-tuple eddy, or one of these parts."""
    if part is not None and part not in PARTS:
        raise SettingError(f"--part {part}: the parts of this benchmark are {', '.join(PARTS)}")
    results: list[Result] = []
    for cell in CELLS:
        if part in (None, str(cell.window)):
            results += _sizes(cell)
    if part in (None, "per-tuple"):
        for window in PER_TUPLE_WINDOWS:
            results += _per_tuple(Cell(window, 1))
    return results


def _sizes(cell: Cell) -> list[Result]:
    query = query_over(cell.rows(0, 1), cell.select())
    count = _chunk_rows(query, cell)
    sides = {"adaptive": _FilledEngine(query, cell, None)} | {str(n): _FilledEngine(query, cell, n) for n in SIZES}
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(1 + ROUNDS):
        if number == 1:
            sides = {name: sides[name] for name in ["adaptive", *quickest(times, map(str, SIZES))[:FINALISTS]]}
        chunk = cell.rows(cell.window + number * count, count)
        _take_turns(sides, chunk, times, number % 2 == 1)
    best = quickest(times, [name for name in sides if name != "adaptive"])[0]
    behind = ratio({name: t[1:] for name, t in times.items()}, "adaptive", best)
    rate = 3 * count / median(times["adaptive"][1:])
    _log.info("%s: %s rows a chunk, best size %s, adaptive takes %.3f of it", cell, f"{count:,}", best, behind)
    return [
        Result(str(cell), f"adaptive / best fixed size ({best}), time", behind, "", BEHIND, behind <= BEHIND),
        Result(str(cell), "adaptive, throughput", rate, "rows/s"),
    ]


def _take_turns(
    sides: Mapping[str, _FilledEngine], chunk: Streams, times: dict[str, list[float]], backwards: bool
) -> None:
    found: dict[str, int] = {}
    names: Sequence[str] = list(sides)
    for name in reversed(names) if backwards else names:
        seconds, found[name] = sides[name].take(chunk)
        times[name].append(seconds)
    if len(set(found.values())) != 1:
        raise InternalError(f"the sides disagree: {found}")


def _chunk_rows(query: BoundQuery, cell: Cell) -> int:
    """The rows of each stream with which a chunk takes about SECONDS, found with a medium packet size."""
    side, rows, first = _FilledEngine(query, cell, 4096), 512, cell.window
    while True:
        seconds, _ = side.take(cell.rows(first, rows))
        if seconds > SECONDS / 3 or rows >= 8 * BATCH:
            return max(256, min(8 * BATCH, round(rows * SECONDS / seconds)))
        first, rows = first + rows, rows * 2


def _per_tuple(cell: Cell) -> list[Result]:
    """Compare rows a second: the adaptive side takes its usual chunks, the per-tuple eddy fewer rows."""
    query = query_over(cell.rows(0, 1), cell.select())
    count = _chunk_rows(query, cell)
    adaptive, single = _FilledEngine(query, cell, None), _FilledEngine(query, cell, 1)
    gains, rates = [], []
    for number in range(ROUNDS):
        seconds, _ = single.take(cell.rows(cell.window + number * PER_TUPLE_ROWS, PER_TUPLE_ROWS))
        rates.append(3 * PER_TUPLE_ROWS / seconds)
        seconds, _ = adaptive.take(cell.rows(cell.window + number * count, count))
        gains.append(3 * count / seconds / rates[-1])
    gain, case = median(gains), str(cell)
    _log.info("%s: adaptive has %.1f times the throughput of packet=1", cell, gain)
    return [
        Result(case, "adaptive / packet=1, throughput", gain, "", TIMES_PER_TUPLE, gain >= TIMES_PER_TUPLE),
        Result(case, "packet=1, throughput", median(rates), "rows/s"),
    ]
