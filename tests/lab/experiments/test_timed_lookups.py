"""Servers and lookups in simulated time."""

from __future__ import annotations

import pyarrow as pa

from eddyline.engine.lookups.look_up import Answer, Request
from lab.experiments.timed_lookups import PAGE, Clock, Method, Outage, Server, Speed, TimedLookups, Work
from lab.experiments.timed_run import timed_job

KEYS = pa.record_batch({"x": [1, 2, 3]})
NO_KEYS = pa.record_batch([])


def work(method: Method, asked: float, seconds: float) -> Work:
    return Work(method, asked, seconds, Answer(*method, KEYS, KEYS))


def ends(server: Server, until: float) -> list[float]:
    return [at for at, _ in server.until(until)]


def test_a_server_does_one_piece_after_the_other() -> None:
    server = Server()
    for asked in (0.0, 0.5, 10.0):
        server.add(work(("t", 0), asked, 2.0))
    assert ends(server, 1.9) == [] and ends(server, 4.0) == [2.0, 4.0] and server.open == 1
    assert ends(server, 20.0) == [12.0] and server.open == 0


def test_a_server_does_several_pieces_at_a_time() -> None:
    server = Server(parallel=2)
    for _ in range(3):
        server.add(work(("t", 0), 0.0, 2.0))
    assert ends(server, 9.0) == [2.0, 2.0, 4.0]


def test_a_server_that_stalls_finishes_later() -> None:
    server = Server(outage=Outage(1.0, 5.0))
    for _ in range(2):
        server.add(work(("t", 0), 0.0, 2.0))
    assert ends(server, 9.0) == [6.0, 8.0]


def test_methods_share_a_server_by_time() -> None:
    server = Server()
    for _ in range(4):
        server.add(work(("t", 0), 0.0, 3.0))
        server.add(work(("t", 1), 0.0, 1.0))
    order = [answer.method for _, answer in server.until(99.0)]
    assert order == [0, 1, 1, 1, 0, 1, 0, 0]


def test_an_index_answers_key_by_key_and_a_scan_page_by_page() -> None:
    rows = pa.record_batch({"x": list(range(PAGE + 5))})
    select = "SELECT R.a, S.x FROM R, S WHERE R.a = S.x"
    job = timed_job(select, pa.record_batch({"a": [1]}), 1.0, {"S": (rows, "SCAN INDEX ON (x)")})
    server, clock = Server(), Clock()
    speeds = {("S", 0): Speed(0.1, lambda: server), ("S", 1): Speed(1.0, lambda: server)}
    lookups = TimedLookups(job.query, job.tables, speeds, clock)
    lookups.ask([Request("S", 1, pa.record_batch({"x": [3, 99]}))])
    clock.now = 1.0
    assert [answer.rows.to_pylist() for answer in lookups.answers(0.0)] == [[{"x": 3}]]
    clock.now = 2.0
    assert [answer.rows.num_rows for answer in lookups.answers(0.0)] == [0] and lookups.asked == 0
    lookups.ask([Request("S", 0, NO_KEYS)])
    clock.now = 9.0
    assert [(answer.rows.num_rows, answer.is_last) for answer in lookups.answers(0.0)] == [(PAGE, False), (5, True)]
    assert lookups.probes == [(1.0, ("S", 1), (3,)), (2.0, ("S", 1), (99,))] and lookups.scanned == {"S": PAGE + 5}
    lookups.ask([Request("S", 0, NO_KEYS)])
    lookups.close()
    assert lookups.asked == 0
