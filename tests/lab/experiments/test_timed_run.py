"""A query in simulated time."""

from __future__ import annotations

import pyarrow as pa

from eddyline.settings import Settings
from lab.experiments.timed_lookups import Server, Speed
from lab.experiments.timed_run import Course, course_of, timed_job


def test_results_come_when_the_index_has_answered() -> None:
    select = "SELECT R.a, S.y FROM R, S WHERE R.a = S.x"
    rows, table = pa.record_batch({"a": [1, 2, 1, 7]}), pa.record_batch({"x": [1, 2, 3], "y": [10, 20, 30]})
    job = timed_job(select, rows, 2.0, {"S": (table, "INDEX ON (x)")})
    server = Server()
    run = job.run({("S", 0): Speed(1.0, lambda: server)}, Settings(check=True), step=0.5)
    assert (run.results.times, run.results.counts) == ([1.5, 2.5], [2, 3])
    assert run.answered("S") == {1: 1.5, 2: 2.5, 7: 3.5}
    assert run.probes("S").times == [1.5, 2.5, 3.5]
    assert [job.arrived(job.arrival(row)) for row in range(4)] == [1, 2, 3, 4]


def test_a_course_counts() -> None:
    course = course_of([3.0, 1.0, 2.0])
    assert (course.at(0.5), course.at(2.0), course.at(9.0)) == (0, 2, 3)
    assert course.area(3.0) == 3.0 and course.area(4.0) == 6.0 and course.end == 3.0
    empty = Course()
    empty.add(1.0, 0)
    assert (empty.total, empty.end, empty.at(2.0)) == (0, 0.0, 0)
