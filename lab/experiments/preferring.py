"""Preferred rows of an index and a scan of one table: figure 13 of paper 001 (query Q5).

Q5 is Q4 (hybrid.py), and the user prefers the twentieth of the rows for which W.key is divisible by 20. The paper
groups by W.key % 20; here the two kinds of rows are counted, which does not change when they come.
"""

from __future__ import annotations

import numpy as np

from lab.experiments import Figure, Say
from lab.experiments.hybrid import INDEX, SCAN, run
from lab.experiments.index_joins import R_RATE, compared
from lab.experiments.timed_run import Course, TimedRun

PREFERRED = "W.key % 20 = 0"
EARLY_RATE = 200.0
"""Rows of R a second, where R is there early: all 1000 come within 5 seconds."""
LATER = 20.0
"""Seconds after which the user says what is preferred."""


def figure_13(quick: bool, say: Say) -> Figure:
    """Results by time, preferred ones and others; R comes in 59 seconds."""
    return _figure(quick, say, R_RATE)


def early(quick: bool, say: Say) -> Figure:
    """The same, but R comes within 5 seconds."""
    return _figure(quick, say, EARLY_RATE)


def _figure(quick: bool, say: Say, rate: float) -> Figure:
    said: dict[str, dict[float, str]] = {
        "no preference": {},
        "preference": {0.0: PREFERRED},
        "preference later": {LATER: PREFERRED},
    }
    sides: dict[str, Course] = {}
    without = 0.0
    for side, prefer in said.items():
        one = run(quick, f"{SCAN} {INDEX}", rate=rate, prefer=prefer)
        preferred, others = divided(one)
        without, since = without or preferred.end, min(prefer, default=0.0)
        share = (preferred.end - since) / (without - since)
        say(
            f"{side}: {preferred.total} preferred after {preferred.end:.1f} s, {share:.2f} of the time without,"
            f" from second {since:g} on; {others.total} others after {others.end:.1f} s; {one.probes('W').total} probes"
        )
        sides |= {f"{side}, preferred": preferred, f"{side}, others": others}
    return compared(sides, "Q5: preferred results, and others", "results so far")


def divided(run: TimedRun) -> tuple[Course, Course]:
    """The preferred results of a run, and the others."""
    preferred, others = Course(), Course()
    for at, batch in run.rows:
        first = int((np.asarray(batch.column("w")) % 20 == 0).sum())
        preferred.add(at, first)
        others.add(at, batch.num_rows - first)
    return preferred, others
