"""`bench start`: how long an `eddyline` command takes, on both engines, for a small script and for a wrong one.

On Spark it is compared with plain PySpark (plain_spark.py): a session and one micro-batch of a streaming query that
does nothing with the same rows. Both take turns. The first round of each is not counted, because it fills caches of the
machine. The very first run of a user, with our caches empty, is measured separately.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from eddyline.errors import SettingError
from lab.bench import Result

LOCAL_BAR, WRONG_BAR, RATIO = 1.5, 2.0, 1.5
"""Seconds of a small and of a wrong script; a small script on Spark as a multiple of plain PySpark."""
ROUNDS, SPARK_ROUNDS = 5, 3
PARTS = ("local", "spark", "first")

FILES = """
CREATE STREAM a (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 1000, rate 100, k.domain '0..99') TIMESTAMP BY ts;
CREATE SINK files USING parquet OPTIONS (path 'in');
INSERT INTO files SELECT ts, k FROM a;
"""
SMALL = """
CREATE STREAM a USING parquet OPTIONS (path 'in') TIMESTAMP BY ts;
CREATE STREAM b USING parquet OPTIONS (path 'in') TIMESTAMP BY ts;
SELECT a.k, b.ts FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k AND a.k < 10;
"""
_log = logging.getLogger(__name__)


def run(part: str | None = None) -> list[Result]:
    """Measure all parts, or one."""
    if part is not None and part not in PARTS:
        raise SettingError(f"--part {part}: the parts of this benchmark are {', '.join(PARTS)}")
    with TemporaryDirectory() as folder:
        for name, text in (("files", FILES), ("small", SMALL), ("wrong", SMALL.replace("a.k < 10", "a.kk < 10"))):
            Path(folder, f"{name}.sql").write_text(text)
        _eddyline(folder, "files", "local")
        parts = {"local": _local, "spark": _spark, "first": _first}
        return [result for name in PARTS if part in (None, name) for result in parts[name](folder)]


def _local(folder: str) -> list[Result]:
    wrong, small = _in_turns(ROUNDS, ["wrong", "small"], lambda name: _eddyline(folder, name, "local"))
    return [
        Result("local", "wrong script", wrong, "s", WRONG_BAR, wrong <= WRONG_BAR),
        Result("local", "small script", small, "s", LOCAL_BAR, small <= LOCAL_BAR),
    ]


def _spark(folder: str) -> list[Result]:
    wrong, small, plain = _in_turns(
        SPARK_ROUNDS,
        ["wrong", "small", "plain"],
        lambda name: _plain(folder) if name == "plain" else _eddyline(folder, name, "spark"),
    )
    return [
        Result("Spark", "wrong script", wrong, "s", WRONG_BAR, wrong <= WRONG_BAR),
        Result("Spark", "small script", small, "s"),
        Result("Spark", "plain PySpark", plain, "s"),
        Result("Spark", "small script / plain PySpark", small / plain, "times", RATIO, small / plain <= RATIO),
    ]


def _first(folder: str) -> list[Result]:
    """Measure a start with empty caches: kernels are compiled, and on Spark the archive of classes is written."""
    caches = {"NUMBA_CACHE_DIR": f"{folder}/numba", "XDG_CACHE_HOME": f"{folder}/cache"}
    local = _eddyline(folder, "small", "local", caches)
    spark = _eddyline(folder, "small", "spark", caches)
    return [Result("local", "first run", local, "s"), Result("Spark", "first run after that", spark, "s")]


def _in_turns(rounds: int, names: Sequence[str], timed: Callable[[str], float]) -> list[float]:
    """The median time of each, without the first round."""
    times: dict[str, list[float]] = {name: [] for name in names}
    for round_ in range(rounds + 1):
        for name in names:
            times[name].append(timed(name))
            _log.info("round %d: %s took %.2f s", round_, name, times[name][-1])
    return [median(times[name][1:]) for name in names]


def _eddyline(folder: str, name: str, engine: str, environment: Mapping[str, str] | None = None) -> float:
    command = [sys.executable, "-m", "eddyline.cli", "run", f"{name}.sql", "--engine", engine]
    return _timed(folder, command, 2 if name == "wrong" else 0, environment or {})


def _plain(folder: str) -> float:
    return _timed(folder, [sys.executable, "-m", "lab.bench.plain_spark"], 0, {"PYSPARK_PYTHON": sys.executable})


def _timed(folder: str, command: list[str], status: int, environment: Mapping[str, str]) -> float:
    """The seconds until a command has ended. Its output goes to files: a child process that outlives it for a moment
    would keep a pipe open."""
    with open(Path(folder, "said"), "w+", encoding="utf-8") as said:
        begin = perf_counter()
        done = subprocess.run(command, cwd=folder, stdout=said, stderr=said, env={**os.environ, **environment})
        took = perf_counter() - begin
        if done.returncode != status:
            said.seek(0)
            raise SettingError(f"{' '.join(command[1:])} ended with status {done.returncode}: {said.read()[-300:]}")
    return took
