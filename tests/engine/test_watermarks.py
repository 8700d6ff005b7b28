"""Watermarks and lateness, exactly as in docs/semantics.md."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eddyline.bound.model import BoundStream
from eddyline.codec import as_json, of_json
from eddyline.engine.watermarks import Reached, Silence, Watermarks
from eddyline.plan.bounds import FOREVER
from eddyline.settings import Settings
from eddyline.testing.clock import ManualClock
from tests.support.jobs import TIME, Job

SCHEMA = pa.schema([("ts", TIME)])


def streams(**lateness: int) -> Watermarks:
    return Watermarks([BoundStream(name, SCHEMA, "ts", late) for name, late in lateness.items()])


def test_a_watermark_is_the_newest_time_less_the_lateness() -> None:
    marks = streams(a=3)
    assert marks.late_before("a") is None and marks.query is None and marks.newest is None
    marks.finish_batch({"a": 10}, ())
    assert marks.late_before("a") == marks.query == 7
    marks.finish_batch({"a": 4}, ())
    assert marks.query == 7 and marks.newest == 10
    marks.finish_batch({}, ())
    assert marks.query == 7


def test_the_query_is_as_far_as_its_slowest_stream() -> None:
    marks = streams(a=0, b=0)
    marks.finish_batch({"a": 10}, ())
    assert marks.query is None
    assert marks.by_stream == {"a": 10, "b": None}
    marks.finish_batch({"b": 4}, ())
    assert marks.query == 4
    assert marks.by_stream == {"a": 10, "b": 4}


def test_a_stream_that_ended_counts_as_infinity() -> None:
    marks = streams(a=0, b=0)
    marks.finish_batch({"a": 10, "b": 4}, ["b"])
    assert marks.query == 10
    assert marks.by_stream == {"a": 10, "b": FOREVER}
    marks.finish_batch({"a": 12}, ["a"])
    assert marks.query == 10
    assert marks.by_stream == {"a": FOREVER, "b": FOREVER}


def test_a_stream_may_end_without_a_row() -> None:
    marks = streams(a=0, b=0)
    marks.finish_batch({"a": 10}, ["b"])
    assert marks.query == 10


def test_times_before_1970() -> None:
    marks = streams(a=5)
    marks.finish_batch({"a": -10}, ())
    marks.finish_batch({"a": -20}, ())
    assert marks.query == -15 and marks.newest == -10


def test_an_idle_stream_holds_nothing_back_and_the_watermark_never_falls() -> None:
    marks = streams(a=0, b=2, c=0)
    marks.finish_batch({"a": 10, "b": 4}, (), quiet="c")
    assert marks.query == 2 and marks.by_stream == {"a": 10, "b": 2, "c": 2}  # c never had a row
    marks.finish_batch({"a": 12}, (), quiet="abc")
    assert marks.query == 12 and marks.by_stream == {"a": 12, "b": 12, "c": 12}
    again = streams(a=0, b=2, c=0)
    again.restore(of_json(as_json(marks.reached), Reached))
    assert again.reached == marks.reached and marks.reached.idle == ("b", "c")
    for come_back in (marks, again):
        come_back.finish_batch({"b": 9, "c": 13}, ())
        assert come_back.query == 12 and come_back.late_before("b") == 12 and come_back.late_before("c") == 13
        come_back.finish_batch({}, (), quiet="abc")
        assert come_back.query == 12  # no stream tells how far the query is
        come_back.finish_batch({"a": 20, "b": 16}, ())
        assert come_back.query == 13


def test_silence_is_counted_between_the_beginnings_of_batches(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    silence = Silence(["a", "b"], 5.0, clock)
    clock.advance(100.0)  # time before the first batch does not count

    def batch(waited: float, *heard: str, took: float = 0.0, unread: str = "", ended: str = "") -> set[str]:
        clock.advance(waited)
        idle = set(silence.begin(unread)).difference(heard, ended)
        clock.advance(took)
        silence.after(heard, idle, ended)
        return idle

    assert batch(0.0, "a", took=4.5) == set()
    assert batch(0.25, "a", took=60.0) == set()  # rows of b may have arrived meanwhile
    assert batch(0.0, "a") == {"b"}
    assert batch(1.0, "b") == set()
    assert batch(5.0, unread="ab") == set()  # the reader had other streams to read first
    assert batch(4.0) == set()
    assert batch(1.0) == {"a", "b"}
    assert batch(1.0, ended="a") == {"b"}
    assert [record.getMessage() for record in caplog.records] == [
        "b is idle: no row for 5 s; it does not hold the watermark back",
        "b is not idle any more: it has rows again",
        "a is idle: no row for 5 s; it does not hold the watermark back",
        "b is idle: no row for 5 s; it does not hold the watermark back",
    ]
    decided = silence.decisions()
    assert [f"{d.what}: {d.why}" for d in decided] == caplog.messages
    assert decided[0].measured == {"silent": 64.75, "idle_timeout": 5.0} and silence.decisions() == []
    never = Silence(["a", "b"], None, clock)
    clock.advance(1e9)
    assert not never.begin() and not never.begin()


# On the engine


def late_rows(job: Job) -> list[tuple]:
    assert job.last is not None
    return [(name, *row.values()) for name, batch in job.last.late for row in batch.to_pylist()]


ONE = "SELECT a.k FROM a"


def lateness_of(job: Job, *batches: list[int]) -> list[list[int]]:
    """The times of late rows, batch by batch."""
    result = []
    for times in batches:
        job.feed(a=[(t, t) for t in times])
        result.append([row[2] for row in late_rows(job)])
    return result


def test_within_a_batch_nothing_is_late_and_a_row_at_the_watermark_is_not() -> None:
    assert lateness_of(Job(ONE, a="k"), [10, 3, 7], [10, 9, 11], [10, 11]) == [[], [9], [10]]


def test_lateness_gives_rows_time() -> None:
    assert lateness_of(Job(ONE, lateness={"a": 4}, a="k"), [10], [6, 5, 20], [16, 15]) == [[], [5], [15]]


def test_a_late_row_moves_no_watermark_back_and_counts_as_read() -> None:
    job = Job(ONE, a="k")
    assert lateness_of(job, [10], [2], [9]) == [[], [2], [9]]
    counts = job.engine.counts
    assert (counts.rows_in, counts.rows_used, counts.rows_late, counts.rows_dead) == (3, 1, 2, 0)


def test_every_readable_row_counts_before_any_filter() -> None:
    job = Job("SELECT a.k FROM a WHERE a.k < 5", a="k")
    assert job.feed(a=[(100, 9)]) == []
    assert job.feed(a=[(50, 1)]) == []
    assert late_rows(job) == [("a", pa.scalar(50, TIME).as_py(), 1)]


def test_a_dead_row_moves_no_watermark() -> None:
    job = Job(ONE, a="k")
    job.feed(a=[(None, 1), (2**61, 2), (5, 3)])
    assert job.feed(a=[(5, 4)]) == [(4,)]
    assert job.engine.counts.rows_dead == 2


def test_an_idle_stream_holds_state_back() -> None:
    job = Job("SELECT a.k FROM a [RANGE 5 MICROSECONDS], b [RANGE 5 MICROSECONDS] WHERE a.k = b.k", a="k", b="k")
    for t in range(0, 100, 10):
        job.feed(a=[(t, t)])
    assert job.engine.held.rows == 10
    assert job.feed(b=[(3, 0)]) == [(0,)]
    job.feed(b=[(92, 0)])
    assert job.engine.held.rows == 2  # a row of a at 90 may match a b from 92 on, and the b at 92 an a from 90 on
    assert job.feed(b=[(95, 90)]) == [(90,)]


def test_with_a_timeout_an_idle_stream_holds_no_state_back() -> None:
    clock = ManualClock()
    select = "SELECT a.k FROM a [RANGE 5 MICROSECONDS], b [RANGE 5 MICROSECONDS] WHERE a.k = b.k"
    job = Job(select, settings=Settings(idle_timeout=30.0), clock=clock, a="k", b="k")
    for t in range(0, 100, 10):
        job.feed(a=[(t, t)])
        clock.advance(10.0)
    assert job.engine.held.rows == 1  # the row at 90: the next row of b may be at 90, too
    assert job.feed(b=[(85, 90), (90, 90)]) == [(90,)]
    assert late_rows(job) == [("b", pa.scalar(85, TIME).as_py(), 90)]
    clock.advance(10.0)
    job.feed(a=[(200, 0)])
    assert job.engine.held.rows == 2  # b is back: it holds back the row of a at 90 again


def test_the_clock_of_one_alias_is_that_of_its_stream() -> None:
    job = Job("SELECT p.k, q.k AS j FROM a [RANGE 3 MICROSECONDS] p, a [RANGE 3 MICROSECONDS] q WHERE p.k < q.k", a="k")
    job.feed(a=[(10, 1)])
    assert job.feed(a=[(9, 2), (12, 3)]) == [(1, 3)]
    assert len(late_rows(job)) == 1


@pytest.mark.parametrize("ended", ["a", "b"])
def test_the_end_of_one_stream_lets_the_rest_expire(ended: str) -> None:
    job = Job("SELECT a.k FROM a, b WHERE a.k = b.k", a="k", b="k")
    job.feed(a=[(1, 1)], b=[(1, 2)])
    assert job.engine.held.rows == 2
    job.feed(ended=[ended])
    assert job.engine.held.rows == 1
    left = {"a": "b", "b": "a"}[ended]
    assert job.feed(**{left: [(2, {"a": 1, "b": 2}[ended])]}) == [({"a": 1, "b": 2}[ended],)]
