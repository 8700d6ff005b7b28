"""Access methods of one table compete: which is asked, and what becomes of one that stalls or fails."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa

from eddyline.bound.model import AccessMethod
from eddyline.engine.lookups.method_chooser import MethodPace
from eddyline.engine.tuning import DEFAULT
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.experiments.timed_lookups import Clock, Outage, Server, Speed
from lab.experiments.timed_run import TimedJob, TimedRun, timed_job
from lab.fuzz.simulated_lookups import SimulatedLookups
from tests.support.asked import AskedJob, asked
from tests.support.jobs import batch_of, bound, schema, tuples

SELECT = "SELECT a.v, t.x FROM a [RANGE 50 MICROSECONDS], t WHERE a.k = t.k"
KEYS = 400


def replicas(*servers: tuple[float, Server]) -> TimedRun:
    """400 keys come in 40 seconds, and each replica of an index takes some seconds for one."""
    keys = pa.record_batch({"key": np.random.default_rng(1).permutation(KEYS)})
    job = timed_job("SELECT R.key, W.key AS w FROM R, W WHERE R.key = W.key", keys, 10.0, {"W": (keys, "SCAN")})
    stream = job.query.sources[1].stream
    many = replace(stream, methods=(AccessMethod(("key",)),) * len(servers))
    query = replace(job.query, sources=(job.query.sources[0], replace(job.query.sources[1], stream=many)))
    speeds = {("W", n): Speed(seconds, lambda s=server: s) for n, (seconds, server) in enumerate(servers)}  # type: ignore[misc]
    run = replace(job, query=query).run(speeds, Settings(check=True))
    assert run.results.total == KEYS
    return run


def probes(run: TimedRun, begin: float = 0.0, end: float = 1e9) -> Counter[int]:
    """How many probes each method has answered between two times."""
    return Counter(method for at, (_, method), _ in run.lookups.probes if begin <= at < end)


def test_an_answer_takes_longer_the_more_is_asked() -> None:
    pace = MethodPace(0.5)
    assert pace.wait(0.0) is None
    for second in range(10):
        pace.ask([(second,)], float(second))
        pace.answered([(second,)], second + 1.0, None)
    assert pace.wait(10.0) == 1.0
    pace.ask([(n,) for n in range(20)], 10.0)
    assert pace.wait(10.0) == 21.0
    pace.answered([(n,) for n in range(20)], 12.0, None)
    assert pace.wait(12.0) is not None and (pace.wait(12.0) or 9) < 1.5, "all were answered together"


def test_the_faster_of_two_replicas_is_asked() -> None:
    found = probes(replicas((2.0, Server()), (0.05, Server())))
    assert found[1] >= KEYS - 64 and found[0] <= 64


def test_two_replicas_share_what_is_too_much_for_one() -> None:
    assert replicas((0.5, Server()), (0.5, Server())).results.end < 0.6 * replicas((0.5, Server())).results.end


def test_a_replica_that_stalls_is_left_and_comes_back() -> None:
    run = replicas((0.02, Server(outage=Outage(10.0, 20.0))), (0.2, Server()))
    assert run.results.end < 45.0
    assert probes(run, 0.0, 10.0)[0] > 80 and probes(run, 12.0, 20.0)[1] > 30
    assert probes(run, 30.0, 40.0)[0] > 60, "it is the faster one again"


def test_what_a_replica_owes_that_never_answers_is_asked_of_another() -> None:
    assert replicas((0.05, Server(outage=Outage(10.0, 200.0))), (0.05, Server())).results.end < 45.0


class _Failing:
    """A table with two replicas, of which some fail for all keys. The second is asked for `few` keys beside the
    first."""

    def __init__(self, *failing: int, few: int = 0) -> None:
        columns = {"a": "k v", "t": "k x"}
        rows = batch_of(schema("k x", False), [(k, 10 * k) for k in range(9)])
        self.query = asked(bound(SELECT, None, {"t": []}, **columns), {"t": [("k",), ("k",)]})
        self.lookups = SimulatedLookups(
            self.query, {"t": rows}, Random(1), 0.0, fails_with=lambda table, method, key: method in failing
        )
        tuning = replace(DEFAULT, engine=replace(DEFAULT.engine, trial_keys=few))
        self.engine = BatchDriver(self.query, Settings(check=True), tuning=tuning, lookups=lambda: self.lookups)
        self.schema = schema("k v")

    def feed(self, *rows: tuple[int, ...]) -> tuple[list[tuple[object, ...]], int]:
        found = self.engine.batch([("a", batch_of(self.schema, rows))])
        return tuples(found.results), sum(one.keys.num_rows for one in found.failed)


def test_a_lookup_has_failed_if_it_failed_with_all_replicas() -> None:
    for failing in ((0,), (1,)):
        for few in (0, 64):  # one is asked, or both
            assert _Failing(*failing, few=few).feed((1, 1, 5), (1, 2, 6)) == ([(5, 10), (6, 20)], 0)
    job = _Failing(0, 1)
    assert job.feed((1, 1, 5), (1, 2, 6)) == ([], 2)
    assert {(r.method, key) for r in job.lookups.requests for key in r.keys.column(0).to_pylist()} == {
        (method, key) for method in (0, 1) for key in (1, 2)
    }


def test_a_choice_leaves_a_record() -> None:
    keys = pa.record_batch({"x": np.arange(200), "y": np.arange(200)})
    select = "SELECT R.x AS r, S.y FROM R, S WHERE R.x = S.x AND R.y = S.y"
    job: TimedJob = timed_job(select, keys, 10.0, {"S": (keys, "INDEX ON (x) INDEX ON (y)")})
    first, second, clock = Server(), Server(), Clock()
    speeds = {("S", 0): Speed(1.0, lambda: first), ("S", 1): Speed(0.01, lambda: second)}
    run = job.run(speeds, Settings(check=True), clock)
    assert run.results.total == 200 and probes(run)[1] > 120
    told = [d for d in run.engine.slot.executor.eddy.decisions.recent if d.kind == "access"]
    assert told and told[0].what == "table S is asked by index 2 on (y)" and "index 1 on (x) takes" in told[0].why


def left(prefer: dict[float, str] | None = None) -> TimedRun:
    """A scan that stalls from second 15 to 100, and an index. With a gain that large the index is left as soon as the
    scan brings anything that is wanted."""
    keys = pa.record_batch({"key": np.arange(200)})
    job = timed_job(
        "SELECT R.key, W.key AS w FROM R, W WHERE R.key = W.key", keys, 20.0, {"W": (keys, "SCAN INDEX ON (key)")}
    )
    scan, index = Server(outage=Outage(15.0, 100.0)), Server()
    tuning = replace(DEFAULT, engine=replace(DEFAULT.engine, scan_gain=1e9))
    speeds = {("W", 0): Speed(0.1, lambda: scan), ("W", 1): Speed(0.5, lambda: index)}
    return job.run(speeds, Settings(check=True), tuning=tuning, prefer=prefer)


def test_keys_wait_for_the_scan_and_are_sent_when_it_stalls() -> None:
    run = left()
    assert run.results.total == 200
    assert run.lookups.withdrawn > 0
    assert not probes(run, 10.0, 15.0) and probes(run, 30.0, 100.0)[1] > 100


def test_keys_that_preferred_rows_ask_for_do_not_wait_for_the_scan() -> None:
    run = left({0.0: "R.key % 5 = 0"})
    assert run.results.total == 200 and run.lookups.withdrawn > 0
    asked = [key for at, _, (key,) in run.lookups.probes if 10.0 <= at < 15.0]
    assert len(asked) > 5 and set(asked) <= set(range(0, 200, 5))


def test_what_is_asked_when_the_scan_ends_is_taken_back() -> None:
    rows = [(k, 10 * k) for k in range(9)]
    job = AskedJob(SELECT, {"t": rows}, {"t": [("k",), ()]}, a="k v", t="k x")
    job.lookups[0].holds = True
    job.feed(a=[(1, k, k) for k in range(9)])
    job.lookups[0].holds = False
    job.feed(a=[(2, 1, 1)])
    assert len(job.end()) == 0 and job.lookups[0].requests[-1].takes_back
