"""An index and a scan of one table at the same time: figure 12 of paper 001 (query Q4).

R and W have 1000 rows each, in different orders, and every row has one partner. R comes in 59 seconds. The scan of W
takes 120 seconds, and its index answers four probes a second: that is where the paper's curves cross, after about 30
seconds. Sides differ in the access methods that W is declared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from eddyline.settings import Settings
from lab.experiments import Figure, Say
from lab.experiments.index_joins import R_RATE, compared
from lab.experiments.timed_lookups import Server, Speed
from lab.experiments.timed_run import Course, TimedRun, timed_job

Q4 = "SELECT R.key, W.key AS w FROM R, W WHERE R.key = W.key"
SCAN_SECONDS, PROBE_SECONDS = 0.12, 0.25
"""Of a row of the scan, and of a probe."""
SCAN, INDEX = "SCAN", "INDEX ON (key)"
HYBRID, ONE_SERVER = "both", "both, one server"
EARLY = 0.05
"""The share of the results before which a page more or less is a large part of them."""


def figure_12(quick: bool, say: Say) -> Figure:
    """Results by time: by index, by scan, and by both."""
    runs = {
        "index": run(quick, INDEX),
        "scan": run(quick, SCAN),
        HYBRID: run(quick, f"{SCAN} {INDEX}"),
        ONE_SERVER: run(quick, f"{SCAN} {INDEX}", is_one_server=True),
    }
    sides = {side: one.results for side, one in runs.items()}
    for side, one in runs.items():
        probes, scanned = one.probes("W").total, one.lookups.scanned["W"]
        say(f"{side}: {one.results.end:.0f} s, {probes} probes, {scanned} rows scanned")
    for side in (HYBRID, ONE_SERVER):
        of_all, later = (behind(sides[side], (sides["index"], sides["scan"]), share) for share in (0.0, EARLY))
        say(f"{side}: at worst {of_all:.2f} of the better of the two, {later:.2f} once that has {EARLY:.0%}")
    return compared(sides, "Q4: results, by access methods of W", "results so far")


def run(
    quick: bool,
    methods: str,
    is_one_server: bool = False,
    rate: float = R_RATE,
    prefer: Mapping[float, str] | None = None,
) -> TimedRun:
    """Q4 with these access methods; the scan and the index are answered by one server or by two. `rate` is that of R,
    and `prefer` has preferences by time."""
    rows = 100 if quick else 1000
    r, w = (np.random.default_rng(seed).permutation(rows) for seed in (1, 2))
    job = timed_job(Q4, pa.record_batch({"key": r}), rate, {"W": (pa.record_batch({"key": w}), methods)})
    first, second = Server(), Server()
    scan = Speed(SCAN_SECONDS, lambda: first)
    index = Speed(PROBE_SECONDS, lambda: first if is_one_server else second)
    declared = job.query.sources[1].stream.methods
    speeds = {("W", number): scan if method.is_scan else index for number, method in enumerate(declared)}
    return job.run(speeds, Settings(check=quick), prefer=prefer)


def behind(hybrid: Course, others: Sequence[Course], share: float) -> float:
    """The results of the hybrid over those of the best of the others, at the worst moment at which that has more than
    this share of all results."""
    moments = sorted({at for course in (hybrid, *others) for at in course.times})
    best = [max(course.at(at) for course in others) for at in moments]
    least = share * hybrid.total
    return min(hybrid.at(at) / most for at, most in zip(moments, best, strict=True) if most > least)
