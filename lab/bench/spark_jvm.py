"""`bench spark --part jvm`: rows that must pass through the JVM, beside Spark's own stream-stream joins.

Both sides read ORC files with Spark's own file source. Eddyline has no reader for ORC, so every row comes from the JVM
to Python before it is split. The sides take turns, after a first round that does not count.
"""

from __future__ import annotations

import logging
import shutil
from statistics import median

from eddyline.errors import InternalError
from eddyline.settings import Settings
from eddyline.spark.session import session
from eddyline.spark.tasks import turn_task
from lab.bench import Result
from lab.bench.spark_jobs import WINDOW, SparkJoin, run_job, script, write
from lab.peers.native_joins import OwnJoin, files_of
from lab.peers.native_joins import run as run_own

FORMAT = "orc"
TIMES = 6.5
ROUNDS = 2
BATCH_FILES = (4, 7)
"""Files of each stream in a batch with which Eddyline is fastest. Spark's own joins are fastest with one."""

_log = logging.getLogger(__name__)


def jvm(join: SparkJoin, place: str) -> list[Result]:
    """Rows a second of both sides, from commit to commit, without the first batch."""
    write(join, place, FORMAT)
    spark, _ = session({})
    own = OwnJoin(files_of(f"{place}/own", FORMAT), join.own[0], join.own[1], WINDOW)
    ours: dict[int, list[float]] = {files: [] for files in BATCH_FILES}
    theirs: list[float] = []
    found = set()
    for round_ in range(ROUNDS + 1):
        for files, rates in ours.items():
            text = script(join, place, f"{place}/out", FORMAT, f", maxFilesPerTrigger '{files}'")
            _, rate, results = run_job(text, place, Settings(), turn_task)
            found.add(results)
            rates += [rate] if round_ else []
            _log.info("%s through the JVM: %d files a batch: %.0f rows/s", join.name, files, rate)
        shutil.rmtree(f"{place}/own-out", ignore_errors=True)
        seconds, rows = run_own(spark, own, f"{place}/own-out", 1)
        theirs += [rows / seconds] if round_ else []
        _log.info("%s through the JVM: Spark's own joins: %.0f rows/s", join.name, rows / seconds)
    if len(found) != 1:
        raise InternalError(f"{join.name} through the JVM: results differ: {found}")
    best, own_best = max(median(rates) for rates in ours.values()), max(theirs)
    case = f"{join.name} through the JVM"
    return [
        Result(case, "throughput", best, "rows/s"),
        Result(case, "Spark's own joins", own_best, "rows/s"),
        Result(case, "eddyline / Spark's own joins", best / own_best, "", TIMES, best / own_best >= TIMES),
    ]
