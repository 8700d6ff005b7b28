"""`bench spark`: jobs on local Spark beside the transport floor and Spark's own stream-stream joins, in one session.

The floor is the same scan, split, replication, shuffle and hand-over, with a task that only counts rows. All sides read
the same parquet files; the JVM is warm: every side runs once before anything counts, and then they take turns.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.benchmarks import Result
from eddyline.benchmarks.streams import streams
from eddyline.errors import SettingError
from eddyline.runtime.job import prepare
from eddyline.settings import Settings
from eddyline.spark.own_joins import OwnJoin
from eddyline.spark.own_joins import run as run_own
from eddyline.spark.runner import SparkRunner
from eddyline.spark.session import session
from eddyline.spark.tasks import Task, count_task, turn_task

ROWS, FILES, WINDOW = 1_000_000, 20, 5
OWN_SHARE = 5
"""Spark's own joins read so many files of the FILES: they take long."""
ROUNDS = 2
BATCHES = (500_000, 1_000_000)
"""Rows of a batch: each side at its best."""
FLOOR, TIMES = 0.7, 8.0
SMALL_ROWS, SMALL_BAR = 1000, 1.5
PARTS = ("throughput", "small")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Join:
    """A join of streams that share keys."""

    name: str
    columns: Mapping[str, list[str]]
    where: str
    own: tuple[str, tuple[tuple[str, str, str], ...]]


JOINS = (
    Join(
        "three-way join",
        {"a": ["a"], "b": ["a", "b"], "c": ["b"]},
        "a.a = b.a AND b.b = c.b",
        ("a", (("b", "a", "a"), ("c", "b", "b"))),
    ),
    Join(
        "four-way join by one key",
        {"a": ["k"], "b": ["k"], "c": ["k"], "d": ["k"]},
        "a.k = b.k AND b.k = c.k AND c.k = d.k",
        ("a", (("b", "k", "a"), ("c", "k", "b"), ("d", "k", "c"))),
    ),
)


def run(part: str | None = None) -> list[Result]:
    """All parts, or one."""
    if part is not None and part not in PARTS:
        raise SettingError(f"--part {part}: the parts of this benchmark are {', '.join(PARTS)}")
    folder = tempfile.mkdtemp(prefix="eddyline-bench-")
    try:
        results: list[Result] = []
        for join in JOINS:
            place = f"{folder}/{join.name.replace(' ', '-')}"
            _write(join, place)
            if part in (None, "throughput"):
                results += _throughput(join, place)
            if part in (None, "small") and join is JOINS[0]:
                results += _small(join, place)
        return results
    finally:
        session({})[0].stop()
        shutil.rmtree(folder, ignore_errors=True)


def _write(join: Join, place: str) -> None:
    for name, batch in streams(join.columns, ROWS, 100_000, every=100).items():
        folder = Path(place, name)
        folder.mkdir(parents=True)
        own = Path(place, "own", name)
        own.mkdir(parents=True)
        for number in range(FILES):
            part = batch.slice(number * ROWS // FILES, ROWS // FILES)
            pq.write_table(pa.Table.from_batches([part]), folder / f"{number:04}.parquet")
            if number < OWN_SHARE:
                pq.write_table(pa.Table.from_batches([part]), own / f"{number:04}.parquet")


def _script(join: Join, place: str, out: str) -> str:
    declared = [
        f"CREATE STREAM {name} USING parquet OPTIONS (path '{place}/{name}') TIMESTAMP BY ts;" for name in join.columns
    ]
    sink = f"CREATE SINK out USING parquet OPTIONS (path '{out}', mode 'overwrite');"
    columns = ", ".join(f"{name}.v AS {name}v" for name in join.columns)
    sources = ", ".join(f"{name} [RANGE {WINDOW} SECONDS]" for name in join.columns)
    return "\n".join([*declared, sink, f"INSERT INTO out SELECT {columns} FROM {sources} WHERE {join.where}"])


def _job(text: str, place: str, settings: Settings, turn: Callable[[str, int], Task]) -> tuple[list[float], float, int]:
    """Runs a job; the seconds of each batch of rows but the first (which has the start of the query in it), from commit
    to commit, the rows a second in them, and the results."""
    spark, _ = session({})
    checkpoint = tempfile.mkdtemp(prefix="checkpoint-", dir=place)
    moments: list[tuple[float, int]] = []
    runner = SparkRunner(prepare(text), text, settings, spark, checkpoint, turn=turn)
    summary = runner.run(watch=lambda progress: moments.append((progress.seconds, progress.rows_in)))
    shutil.rmtree(checkpoint)
    batches = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(moments) if b[1] > a[1]][1:]
    times = [seconds for seconds, _ in batches]
    return times, sum(rows for _, rows in batches) / sum(times), summary.rows_out


def _throughput(join: Join, place: str) -> list[Result]:
    text = _script(join, place, f"{place}/out")
    sides: dict[tuple[str, int], list[float]] = {}
    found = set()
    for round_ in range(ROUNDS + 1):
        for size in BATCHES:
            settings = Settings(batch_rows=size, batch_rows_auto=False)
            for side, turn in (("eddyline", turn_task), ("floor", count_task)):
                _, rate, results = _job(text, place, settings, turn)
                if round_:
                    sides.setdefault((side, size), []).append(rate)
                if side == "eddyline":
                    found.add(results)
                _log.info("%s: %s, %d rows a batch: %.0f rows/s", join.name, side, size, rate)
    best = {side: max(median(rates) for (s, _), rates in sides.items() if s == side) for side in ("eddyline", "floor")}
    spark, _ = session({})
    own = OwnJoin(f"{place}/own", join.own[0], join.own[1], WINDOW)
    own_rates = []
    for _ in range(2):
        shutil.rmtree(f"{place}/own-out", ignore_errors=True)
        seconds, rows = run_own(spark, own, f"{place}/own-out", 1)
        own_rates.append(rows / seconds)
        _log.info("%s: Spark's own joins: %.0f rows/s", join.name, own_rates[-1])
    of_floor, times_own = best["eddyline"] / best["floor"], best["eddyline"] / max(own_rates)
    assert len(found) == 1, f"{join.name}: results differ: {found}"
    return [
        Result(join.name, "throughput", best["eddyline"], "rows/s"),
        Result(join.name, "transport floor", best["floor"], "rows/s"),
        Result(join.name, "Spark's own joins", max(own_rates), "rows/s"),
        Result(join.name, "eddyline / floor", of_floor, "", FLOOR, of_floor >= FLOOR),
        Result(join.name, "eddyline / Spark's own joins", times_own, "", TIMES, times_own >= TIMES),
    ]


def _small(join: Join, place: str) -> list[Result]:
    """Micro-batches of few rows: files of so many rows each."""
    few = f"{place}/small"
    for name in join.columns:
        Path(few, name).mkdir(parents=True)
        whole = pq.read_table(f"{place}/{name}/0000.parquet")
        for number in range(40):
            rows = SMALL_ROWS // len(join.columns)
            pq.write_table(whole.slice(number * rows, rows), f"{few}/{name}/{number:04}.parquet")
    text = _script(join, few, f"{few}/out")
    settings = Settings(batch_rows=SMALL_ROWS, batch_rows_auto=False)
    sides: dict[str, list[float]] = {"eddyline": [], "floor": []}
    for round_ in range(3):
        for side, turn in (("eddyline", turn_task), ("floor", count_task)):
            times, _, _ = _job(text, few, settings, turn)
            if round_:
                sides[side] += times[4:]
    eddyline, floor = median(sides["eddyline"]), median(sides["floor"])
    case = f"micro-batch of {SMALL_ROWS:,} rows"
    return [
        Result(case, "eddyline", eddyline * 1000, "ms"),
        Result(case, "floor", floor * 1000, "ms"),
        Result(case, "eddyline / floor", eddyline / floor, "", SMALL_BAR, eddyline / floor <= SMALL_BAR),
    ]
