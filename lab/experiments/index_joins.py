"""Index joins through SteMs and as modules: figure 8 of paper 001 (queries Q1 and Q2 of its figure 5).

R has 1000 rows with 250 values of a, and comes in 59 seconds; a probe of an index of S takes one second, and an index
answers one probe at a time. The paper gives the numbers of rows; we took the seconds from what its text says about its
curves. Q2 may use either of two indexes. For the first 200 rows of R each is used at random, then only the second one.
"""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
import pyarrow as pa

from eddyline.settings import Settings
from lab.experiments import Figure, Say
from lab.experiments.chart import Chart
from lab.experiments.encapsulated import Cache, IndexJoin, joined
from lab.experiments.table import Table
from lab.experiments.timed_lookups import Server, Speed
from lab.experiments.timed_run import Course, TimedJob, TimedRun, bend, course_of, timed_job

R_RATE, PROBE_SECONDS = 1000 / 59, 1.0
OTHER_SECONDS = (0.1, 0.2, 0.5, 2.0)
STEMS, MODULE, MODULES, ONE_CACHE = "SteMs", "index join", "index joins", "index joins, shared cache"
MOMENTS = 10

Q1 = "SELECT R.key, R.a, S.x, S.y FROM R, S WHERE R.a = S.x"
Q2 = f"{Q1} AND R.a = S.y"
TWICE = "SELECT R.key, s1.y AS y1, s2.y AS y2 FROM R, S AS s1, S AS s2 WHERE R.a = s1.x AND R.b = s2.x"
Lines = dict[str, list[tuple[str | int, float]]]


def r_rows(quick: bool) -> pa.RecordBatch:
    """The rows of R. b has the values of a, in another order."""
    rows, random = (100, np.random.default_rng(1)) if quick else (1000, np.random.default_rng(1))
    a = random.integers(0, rows // 4, rows)
    return pa.record_batch({"key": np.arange(rows), "a": a, "b": random.permutation(a)})


def same_rows(quick: bool) -> pa.RecordBatch:
    """The rows of S, T and U: x and y have the same values."""
    keys = np.arange(25 if quick else 250)
    return pa.record_batch({"x": keys, "y": keys})


def figure_8_output(quick: bool, say: Say) -> Figure:
    """Results of Q1 by time."""
    stems, modules, probes = q1(quick)
    say(f"area under the curve: {gain(stems, modules):.2f} times that of the index join")
    say(f"probes: {stems.probes('S').total} with SteMs, {probes.total} of the index join")
    say(f"farthest from a straight line: {bend(stems.results):+.2f} with SteMs, {bend(modules):+.2f} of the index join")
    for seconds in OTHER_SECONDS:
        say(f"area if a probe takes {seconds:g} s: {gain(*q1(quick, seconds)[:2]):.2f} times")
    return compared({STEMS: stems.results, MODULE: modules}, "Q1: results", "results so far")


def figure_8_probes(quick: bool, say: Say) -> Figure:
    """Probes of the index of S by time, for Q1."""
    stems, _, probes = q1(quick)
    mine = stems.probes("S")
    apart = max(abs(mine.at(at) - probes.at(at)) for at in probes.times)
    say(f"{mine.total} and {probes.total} probes, at most {apart} apart at any time")
    return compared({STEMS: mine, MODULE: probes}, "Q1: probes into the index of S", "probes so far")


def gain(stems: TimedRun, modules: Course) -> float:
    """The area under the curve of results over that of the index joins, until both have ended."""
    end = max(stems.results.end, modules.end)
    return stems.results.area(end) / modules.area(end)


@cache
def q1(quick: bool, seconds: float = PROBE_SECONDS) -> tuple[TimedRun, Course, Course]:
    """Q1 with SteMs; the results of the index join; its probes."""
    rows, server = r_rows(quick), Server()
    job = timed_job(Q1, rows, R_RATE, {"S": (same_rows(quick), "INDEX ON (x)")})
    run = job.run({("S", 0): Speed(seconds, lambda: server)}, Settings(check=quick))
    join = IndexJoin(seconds)
    done = joined([join], *keys_and_arrivals(job, "a"), lambda row: 0)
    return run, course_of(done), course_of(join.probes)


def figure_8_caches(quick: bool, say: Say) -> Figure:
    """Results of Q2 by time: two indexes of one table, one cache or two."""
    rows, random = r_rows(quick), Random(2)
    learning = rows.num_rows // 5
    job = timed_job(Q2, rows, R_RATE, {"S": (same_rows(quick), "INDEX ON (x) INDEX ON (y)")})
    servers = Server(), Server()

    def route(row: int) -> int:
        return random.randrange(2) if row < learning else 1

    speeds = {
        ("S", 0): Speed(PROBE_SECONDS, lambda: servers[0]),
        ("S", 1): Speed(PROBE_SECONDS, lambda: servers[1]),
    }
    run = job.run(speeds, Settings(check=quick))
    sides = {STEMS: run.results}
    probes = {STEMS: run.probes("S").total}
    routes = [route(row) for row in range(rows.num_rows)]
    shared: Cache = {}
    for side, caches in ((MODULES, (Cache(), Cache())), (ONE_CACHE, (shared, shared))):
        joins = [IndexJoin(PROBE_SECONDS, cache=one) for one in caches]
        sides[side] = course_of(
            joined(joins, *keys_and_arrivals(job, "a"), lambda row: routes[min(row, len(routes) - 1)])
        )
        probes[side] = sum(len(join.probes) for join in joins)
    for side, course in sides.items():
        say(f"{side}: {probes[side]} probes, {course.end:.0f} s, {course.end / run.results.end:.2f} times SteMs")
    return compared(sides, "Q2: results, two indexes of S", "results so far")


def caches_of_aliases(quick: bool, say: Say) -> Figure:
    """Results by time where two joins ask one index of one table: one cache, or one for each join."""
    rows, server = r_rows(quick), Server()
    job = timed_job(TWICE, rows, R_RATE, {"S": (same_rows(quick), "INDEX ON (x)")})
    run = job.run({("S", 0): Speed(PROBE_SECONDS, lambda: server)}, Settings(check=quick))
    sides = {STEMS: run.results}
    # The index answers one probe at a time, so two joins that both ask have half of it each
    first, second = IndexJoin(2 * PROBE_SECONDS), IndexJoin(2 * PROBE_SECONDS)
    between = joined([first], *keys_and_arrivals(job, "a"), lambda row: 0)
    sides[MODULES] = course_of(joined([second], keys_and_arrivals(job, "b")[0], between, lambda row: 0))
    probes = len(first.probes) + len(second.probes)
    say(f"{run.probes('S').total} probes with SteMs, {probes} of the index joins")
    mine, theirs = run.results.end, sides[MODULES].end
    say(f"{mine:.0f} s with SteMs; {theirs:.0f} s of the index joins, {theirs / mine:.2f} times")
    return compared(sides, "Two joins with S: results", "results so far")


def keys_and_arrivals(job: TimedJob, column: str) -> tuple[list[int], list[float]]:
    """The keys of the rows of R, and when they come."""
    return job.rows.column(column).to_pylist(), [job.arrival(row) for row in range(job.rows.num_rows)]


def compared(sides: dict[str, Course], title: str, y: str, until: float | None = None) -> Figure:
    """A figure with a line for each side, and a table with every moment of the lines."""
    end = until or max(course.end for course in sides.values())
    table, lines = Table(("side", "second", "count")), Lines()
    for side, course in sides.items():
        for number in range(10 * MOMENTS + 1):
            at = end * number / (10 * MOMENTS)
            table.add(side, at, course.at(at))
        moments = [end * number / MOMENTS for number in range(MOMENTS + 1)]
        lines[side] = [(f"{at:.3g}", course.at(at)) for at in moments]
    return Figure(table, Chart(title, "second (simulated)", y, lines))
