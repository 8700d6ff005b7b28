"""A source stalls, in a cyclic query: figure 11 of paper 001 (query Q3).

R joins T and U, which also join each other. T does not answer from second 100 to second 200. The baseline is a fixed
spanning tree of index joins as modules: R with T, and then with U. SteMs need no tree: a row of R asks both.

A partial result is a row of R for which a row of T or U is there. They are counted from the answers that came: SELECT
PARTIAL gives them out at the end of a batch. In the tree a partial result is a row of R with its row of T.
"""

from __future__ import annotations

from eddyline.settings import Settings
from lab.experiments import Figure, Say
from lab.experiments.encapsulated import IndexJoin, joined
from lab.experiments.index_joins import PROBE_SECONDS, R_RATE, compared, keys_and_arrivals, r_rows, same_rows
from lab.experiments.timed_lookups import Outage, Server, Speed
from lab.experiments.timed_run import Course, TimedJob, TimedRun, course_of, timed_job

Q3 = "SELECT R.key, T.y, U.y AS z FROM R, T, U WHERE R.a = T.x AND R.a = U.x AND T.y = U.x"
SLOW_RATE = 4.0
"""Rows of R a second, so that they come during the stall, too."""
FULL, PARTIAL, STEMS, TREE = "full", "partial", "SteMs", "tree"


def figure_11(quick: bool, say: Say) -> Figure:
    """Full and partial results by time; R has come before the stall."""
    return _stalled(quick, say, R_RATE, "Q3: T stalls")


def slow(quick: bool, say: Say) -> Figure:
    """The same where rows of R come during the stall, too."""
    return _stalled(quick, say, SLOW_RATE, "Q3: T stalls, R comes slowly")


def outage(quick: bool) -> Outage:
    """When T stalls: with a tenth of the rows after a tenth of the time."""
    return Outage(10.0, 20.0) if quick else Outage(100.0, 200.0)


def _stalled(quick: bool, say: Say, rate: float, title: str) -> Figure:
    stall, sides = outage(quick), dict[str, Course]()
    asked = same_rows(quick), "INDEX ON (x)"
    job = timed_job(Q3, r_rows(quick), rate, {"T": asked, "U": asked})
    run = job.run(speeds(stall), Settings(check=quick))
    sides[f"{STEMS}, {FULL}"], sides[f"{STEMS}, {PARTIAL}"] = run.results, partial_results(job, run)
    keys, arrivals = keys_and_arrivals(job, "a")
    with_t, with_u = IndexJoin(PROBE_SECONDS, stall), IndexJoin(PROBE_SECONDS)
    between = joined([with_t], keys, arrivals, lambda row: 0)
    sides[f"{TREE}, {FULL}"] = course_of(joined([with_u], keys, between, lambda row: 0))
    sides[f"{TREE}, {PARTIAL}"] = course_of(between)
    for side, course in sides.items():
        during = course.at(stall.end) - course.at(stall.begin)
        say(f"{side}: {course.at(stall.begin)} before the stall, {during} during it, all after {course.end:.0f} s")
    return compared(sides, title, "rows so far")


def speeds(stall: Outage) -> dict[tuple[str, int], Speed]:
    """T stalls, U does not."""
    t, u = Server(outage=stall), Server()
    return {("T", 0): Speed(PROBE_SECONDS, lambda: t), ("U", 0): Speed(PROBE_SECONDS, lambda: u)}


def partial_results(job: TimedJob, run: TimedRun) -> Course:
    """When the first row of T or U is there for each row of R."""
    answered = run.answered("T"), run.answered("U")
    first = [min(known[key] for known in answered if key in known) for key in job.rows.column("a").to_pylist()]
    return course_of([max(at, job.arrival(row)) for row, at in enumerate(first)])
