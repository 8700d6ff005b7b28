"""`bench spark`: jobs on local Spark beside the transport floor and Spark's own stream-stream joins, in one session.

The floor is the same scan, split, replication, shuffle and hand-over, with a task that only counts rows. All sides read
the same parquet files; the JVM is warm: every side runs once uncounted, and then they take turns. spark_jvm.py measures
sources that only Spark can read, spark_attach.py the cost of handing over the state of a slot, and spark_placement.py
whether slots stay where their state is.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq

from eddyline.errors import SettingError
from eddyline.settings import Settings
from eddyline.spark.session import session
from eddyline.spark.tasks import count_task, turn_task
from lab.bench import Result
from lab.bench.spark_attach import attach
from lab.bench.spark_jobs import JOINS, WINDOW, SparkJoin, run_job, script, write
from lab.bench.spark_jvm import jvm
from lab.bench.spark_placement import placement
from lab.peers.native_joins import OwnJoin, files_of
from lab.peers.native_joins import run as run_own

ROUNDS = 4
BATCHES = (2_000_000, 4_000_000)
"""Rows of a batch. Each side is reported with its better size. A job never chooses more than the larger one
(spark/runner.py)."""
FLOOR, TIMES = 0.7, 8.0
SMALL_ROWS, SMALL_BAR = 1000, 1.5
PARTS = ("throughput", "small", "jvm", "attach", "placement")

_log = logging.getLogger(__name__)


def run(part: str | None = None) -> list[Result]:
    """Measure all parts, or one."""
    if part is not None and part not in PARTS:
        raise SettingError(f"--part {part}: the parts of this benchmark are {', '.join(PARTS)}")
    results = attach() if part in (None, "attach") else []
    results += [] if part in ("attach", "placement") else _on_spark(part)
    return results + (placement() if part in (None, "placement") else [])


def _on_spark(part: str | None) -> list[Result]:
    folder = tempfile.mkdtemp(prefix="eddyline-bench-")
    try:
        results: list[Result] = []
        for join in JOINS if part in (None, "throughput") else JOINS[:1]:
            place = f"{folder}/{join.name.replace(' ', '-')}"
            write(join, place)
            if part in (None, "throughput"):
                results += _throughput(join, place)
            if part in (None, "small") and join is JOINS[0]:
                results += _small(join, place)
            if part in (None, "jvm") and join is JOINS[0]:
                results += jvm(join, f"{folder}/jvm")
        return results
    finally:
        session({})[0].stop()
        shutil.rmtree(folder, ignore_errors=True)


def _throughput(join: SparkJoin, place: str) -> list[Result]:
    text = script(join, place, f"{place}/out")
    sides: dict[tuple[str, int], list[float]] = {}
    found = set()
    for round_ in range(ROUNDS + 1):
        for size in BATCHES:
            settings = Settings(batch_rows=size)
            for side, turn in (("eddyline", turn_task), ("floor", count_task)):
                _, rate, results = run_job(text, place, settings, turn)
                if round_:
                    sides.setdefault((side, size), []).append(rate)
                if side == "eddyline":
                    found.add(results)
                _log.info("%s: %s, %d rows a batch: %.0f rows/s", join.name, side, size, rate)
    best = {side: max(median(rates) for (s, _), rates in sides.items() if s == side) for side in ("eddyline", "floor")}
    spark, _ = session({})
    own = OwnJoin(files_of(f"{place}/own"), join.own[0], join.own[1], WINDOW)
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


def _small(join: SparkJoin, place: str) -> list[Result]:
    """Measure micro-batches of few rows, each one file."""
    few = f"{place}/small"
    for name in join.columns:
        Path(few, name).mkdir(parents=True)
        whole = pq.read_table(f"{place}/{name}/0000.parquet")
        for number in range(40):
            rows = SMALL_ROWS // len(join.columns)
            pq.write_table(whole.slice(number * rows, rows), f"{few}/{name}/{number:04}.parquet")
    text = script(join, few, f"{few}/out")
    settings = Settings(batch_rows=SMALL_ROWS)
    sides: dict[str, list[float]] = {"eddyline": [], "floor": []}
    for round_ in range(3):
        for side, turn in (("eddyline", turn_task), ("floor", count_task)):
            times, _, _ = run_job(text, few, settings, turn)
            if round_:
                sides[side] += times[4:]
    eddyline, floor = median(sides["eddyline"]), median(sides["floor"])
    case = f"micro-batch of {SMALL_ROWS:,} rows"
    return [
        Result(case, "eddyline", eddyline * 1000, "ms"),
        Result(case, "floor", floor * 1000, "ms"),
        Result(case, "eddyline / floor", eddyline / floor, "", SMALL_BAR, eddyline / floor <= SMALL_BAR),
    ]
