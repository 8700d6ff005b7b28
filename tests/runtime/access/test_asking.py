"""Requests and answers, with tables in memory; on a clock that jumps where time matters."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.lookups.look_up import Answer, Lookups, Request
from eddyline.errors import InternalError
from eddyline.runtime.access.asking import Asking
from eddyline.runtime.access.client import FoundRows, KeysRefused, TableRefused, TryFailed
from eddyline.runtime.access.tuning import AccessTuning
from tests.support.properties import examples
from tests.support.scripted_client import ScriptedClient
from tests.support.threads import started_threads
from tests.support.virtual_loop import VirtualLoop

ROWS = pa.record_batch({"k": [i // 2 for i in range(200)], "v": [f"v{i}" for i in range(200)]})
NO_KEYS = pa.RecordBatch.from_arrays([], schema=pa.schema([]))


def keys(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"k": pa.array(values, pa.int64())})


def request(*values: int, table: str = "t", method: int = 0, rank: int = 0) -> Request:
    return Request(table, method, keys(*values), rank)


def collected(asking: Lookups, most: float = 10.0) -> list[Answer]:
    """All answers to what is asked."""
    found: list[Answer] = []
    end = time.monotonic() + most
    while asking.asked:
        assert time.monotonic() < end, "no answer came"
        found += asking.answers(1.0)
    return found


def answered(answers: Sequence[Answer]) -> dict[int, list[str] | str]:
    """For each key its values, or the reason why there is none."""
    found: dict[int, list[str] | str] = {}
    for answer in answers:
        assert answer.is_last
        for key in answer.keys.column(0).to_pylist():
            assert key not in found, "answered twice"
            found[key] = answer.error or [row["v"] for row in answer.rows.to_pylist() if row["k"] == key]
        assert not answer.error or not answer.rows.num_rows
    return found


def asking_of(client: ScriptedClient, jumping: bool = False, **options: float) -> Asking:
    table = client.table(**options)  # type: ignore[arg-type]
    loop = VirtualLoop if jumping else asyncio.new_event_loop
    return Asking({"t": table}, loop, Random(0))


def test_keys_with_rows_and_without() -> None:
    with asking_of(ScriptedClient(ROWS)) as asking:
        assert (asking.asked, asking.answers(100)) == (0, [])
        asking.ask([request(1, 2, 500)])
        assert asking.asked == 3
        assert answered(collected(asking)) == {1: ["v2", "v3"], 2: ["v4", "v5"], 500: []}
        assert asking.answers(100) == []


def test_answers_are_waited_for_without_an_end() -> None:
    """As at the end of the streams."""

    async def later(keys: pa.RecordBatch) -> None:
        await asyncio.sleep(0.05)

    with asking_of(ScriptedClient(ROWS, later)) as asking:
        asking.ask([request(1)])
        assert answered(asking.answers(float("inf"))) == {1: ["v2", "v3"]}


def test_large_requests_are_divided_and_small_ones_grouped() -> None:
    gate = threading.Event()

    async def wait(some: pa.RecordBatch) -> None:
        await asyncio.get_running_loop().run_in_executor(None, gate.wait)

    client = ScriptedClient(ROWS, wait)
    with asking_of(client, batch=10, concurrency=2) as asking:
        asking.ask([request(*range(25))])
        for key in range(25, 50):
            asking.ask([request(key)])
        gate.set()
        assert answered(collected(asking)) == {k: [f"v{2 * k}", f"v{2 * k + 1}"] for k in range(50)}
        assert [batch.num_rows for batch in client.requests] == [10] * 5
        assert client.most_under_way == 2


def test_a_key_in_flight_is_shared() -> None:
    gate = threading.Event()

    async def wait(some: pa.RecordBatch) -> None:
        while not gate.is_set():
            await asyncio.sleep(0.001)

    client = ScriptedClient(ROWS, wait)
    with asking_of(client) as asking:
        asking.ask([request(1, 2)])
        asking.ask([request(2, 3), request(3), request(1)])
        asking.ask([request(2, method=1)])
        assert asking.asked == 4
        gate.set()
        found = collected(asking)
        assert sorted(answered([a for a in found if a.method == 0])) == [1, 2, 3]
        assert sorted(key for some in client.requests for key in some.column(0).to_pylist()) == [1, 2, 2, 3]
        asking.ask([request(1)])
        assert sorted(answered(collected(asking))) == [1]
        assert len(client.requests) == 4


def test_each_place_has_a_client_and_limits_of_its_own() -> None:
    """The first place hangs with all its requests; methods 1 and 3 share the other one."""

    async def hang(some: pa.RecordBatch) -> None:
        await asyncio.sleep(100)

    async def answer(some: pa.RecordBatch) -> None:
        await asyncio.sleep(1)

    here, there = ScriptedClient(ROWS, hang), ScriptedClient(ROWS, answer)
    replica = replace(there.table(batch=4, concurrency=2), place=1)
    table = replace(here.table(concurrency=1, timeout=3, retries=0), elsewhere={1: replica, 3: replica})
    with Asking({"t": table}, VirtualLoop, Random(0)) as asking:
        asking.ask([request(1, 2), request(*range(10), method=1), request(5, method=2), request(7, method=3)])
        assert asking.asked == 14
        found = collected(asking)
        by_method = [answered([answer for answer in found if answer.method == method]) for method in range(4)]
        assert by_method[1] == {key: [f"v{2 * key}", f"v{2 * key + 1}"] for key in range(10)}
        assert by_method[3] == {7: ["v14", "v15"]}
        assert {**by_method[0], **by_method[2]} == dict.fromkeys((1, 2, 5), "no answer within 3 s")
        assert sorted(some.num_rows for some in here.requests) == [1, 2] and here.most_under_way == 1
        assert sorted(some.num_rows for some in there.requests) == [1, 2, 4, 4] and there.most_under_way == 2
    assert here.closed and there.closed


def test_a_scan_of_another_place_goes_on() -> None:
    here, there = ScriptedClient(ROWS), ScriptedClient(ROWS)
    table = replace(here.table(), elsewhere={1: replace(there.table(), place=1)})
    with Asking({"t": table}) as asking:
        asking.ask([Request("t", 1, NO_KEYS), request(3)])
        found = collected(asking)
    assert sum(answer.rows.num_rows for answer in found if answer.method == 1) == ROWS.num_rows
    assert len(here.requests) == 1 and not there.requests


def test_keys_of_a_larger_rank_go_first_and_keys_in_line_move_forward() -> None:
    gate = threading.Event()

    async def wait(some: pa.RecordBatch) -> None:
        while not gate.is_set():
            await asyncio.sleep(0.001)

    client = ScriptedClient(ROWS, wait)
    with asking_of(client, batch=2, concurrency=1) as asking:
        asking.ask([request(0, 1)])
        while not client.requests:
            time.sleep(0.001)
        asking.ask([request(*range(2, 8))])
        asking.ask([request(1, 6, 9, rank=1)])  # 1 is under way, 6 is in line, 9 is new
        asking.ask([request(3, rank=2)])
        assert asking.asked == 9
        gate.set()
        assert sorted(answered(collected(asking))) == [0, 1, 2, 3, 4, 5, 6, 7, 9]
        assert [some.column(0).to_pylist() for some in client.requests] == [[0, 1], [3, 6], [9, 2], [4, 5], [7]]


def test_a_key_is_in_flight_until_its_answer_was_taken() -> None:
    client = ScriptedClient(ROWS)
    with asking_of(client) as asking:
        asking.ask([request(1)])
        while not asking._answers:
            time.sleep(0.001)
        asking.ask([request(1)])
        assert asking.asked == 1
        assert len(collected(asking)) == len(client.requests) == 1


def test_keys_of_several_columns() -> None:
    client = ScriptedClient(ROWS)
    with asking_of(client) as asking:
        some = pa.record_batch({"v": ["v4", "v4", "v5"], "k": [2, 3, 2]})
        asking.ask([Request("t", 2, some), Request("t", 2, some.slice(1))])
        (answer,) = collected(asking)
        assert answer.keys.to_pylist() == some.to_pylist()
        assert answer.rows.to_pylist() == [{"k": 2, "v": "v4"}, {"k": 2, "v": "v5"}]


def test_columns_of_the_key_that_the_query_does_not_use() -> None:
    client = ScriptedClient(ROWS)
    with Asking({"t": client.table(columns=["v"])}) as asking:
        asking.ask([request(1)])
        assert [answer.rows.to_pylist() for answer in collected(asking)] == [[{"v": "v2"}, {"v": "v3"}]]


def test_rows_of_keys_that_were_not_asked_are_dropped() -> None:
    class Careless(ScriptedClient):
        async def lookup(self, columns: Sequence[str], keys: pa.RecordBatch) -> FoundRows:
            return FoundRows(self.rows.select(list(columns)))

    with asking_of(Careless(ROWS)) as asking:
        asking.ask([request(7)])
        assert answered(collected(asking)) == {7: ["v14", "v15"]}


def test_failures_are_answers() -> None:
    async def fail(some: pa.RecordBatch) -> None:
        if 3 in some.column(0).to_pylist():
            raise KeysRefused("no 3")

    with asking_of(ScriptedClient(ROWS, fail), jumping=True) as asking:
        asking.ask([request(*range(5))])
        found = answered(collected(asking))
        assert found.pop(3) == "no 3"
        assert found == {k: [f"v{2 * k}", f"v{2 * k + 1}"] for k in (0, 1, 2, 4)}


def test_retries_and_deadlines_on_a_clock_that_jumps() -> None:
    tries = 0

    async def at_last(some: pa.RecordBatch) -> None:
        nonlocal tries
        tries += 1
        if 9 in some.column(0).to_pylist():
            await asyncio.sleep(1e6)
        if tries < 4:
            raise TryFailed("busy")

    with asking_of(ScriptedClient(ROWS, at_last), jumping=True, timeout=60) as asking:
        asking.ask([request(1)])
        assert answered(collected(asking)) == {1: ["v2", "v3"]}
        asking.ask([request(9)])
        assert answered(collected(asking)) == {9: "no answer within 60 s"}


def test_answers_wait_for_others_while_more_is_asked() -> None:
    left, is_last = dict[int, int](), threading.Event()

    async def later(some: pa.RecordBatch) -> None:
        (second,) = some.column(0).to_pylist()
        await asyncio.sleep(second)
        left[second] = len(asking._answers)
        if second == 28:
            is_last.set()

    table = ScriptedClient(ROWS, later).table(concurrency=8, batch=1, timeout=60)
    with Asking({"t": table}, VirtualLoop, Random(0), AccessTuning(gather=25.0)) as asking:
        asking.ask([request(1, 10, 20, 28)])
        assert is_last.wait(300)
        assert sorted(answered(collected(asking))) == [1, 10, 20, 28], "nothing is asked after the last: it leaves"
    assert left == {1: 0, 10: 0, 20: 0, 28: 3}


def test_a_hung_table_holds_nothing_up_for_ever() -> None:
    async def hang(some: pa.RecordBatch) -> None:
        await asyncio.sleep(1e9)

    client = ScriptedClient(ROWS, hang)
    with asking_of(client, jumping=True, concurrency=2, batch=1, timeout=10) as asking:
        asking.ask([request(*range(100))])
        found = answered(collected(asking))
        assert len(found) == 100 and all("no answer within 10 s" in str(reason) for reason in found.values())
        assert len(client.requests) < 20, "the breaker is open"


def test_a_table_that_is_refused_fails_at_once() -> None:
    async def refuse(some: pa.RecordBatch) -> None:
        raise TableRefused("no such table")

    client = ScriptedClient(ROWS, refuse)
    with asking_of(client, batch=5) as asking:
        asking.ask([request(*range(20))])
        assert set(map(str, answered(collected(asking)).values())) == {"no such table"}
        assert len(client.requests) == 4


def test_the_rate_limit() -> None:
    times: list[float] = []

    async def note(some: pa.RecordBatch) -> None:
        times.append(asyncio.get_running_loop().time())

    client = ScriptedClient(ROWS, note)
    with asking_of(client, jumping=True, batch=1, rate=5, timeout=1) as asking:
        asking.ask([request(*range(50))])
        assert len(answered(collected(asking))) == 50
        assert times[-1] == pytest.approx((50 - 5) / 5)


def test_a_scan_comes_in_parts_and_waits_for_the_slot() -> None:
    client = ScriptedClient(ROWS, scan_rows=10)
    with asking_of(client) as asking:
        asking.ask([Request("t", 1, NO_KEYS), Request("t", 1, NO_KEYS)])
        assert asking.asked == 1
        time.sleep(0.05)
        assert len(asking._answers) <= AccessTuning().scan_parts
        found = collected(asking)
        assert [answer.is_last for answer in found] == [False] * 20 + [True]
        assert pa.Table.from_batches([a.rows for a in found]).to_pylist() == ROWS.to_pylist()
        assert all(answer.keys.num_columns == 0 and answer.method == 1 for answer in found)
        asking.ask([Request("t", 1, NO_KEYS)])
        assert len(collected(asking)) == 21


def test_a_scan_that_fails() -> None:
    parts = 0

    async def fail(some: pa.RecordBatch) -> None:
        nonlocal parts
        parts += 1
        if parts == 3:
            raise TryFailed("lost")

    with asking_of(ScriptedClient(ROWS, fail, scan_rows=10)) as asking:
        asking.ask([Request("t", 0, NO_KEYS)])
        *rows, last = collected(asking)
        assert len(rows) == 2 and (last.is_last, last.error, last.rows.num_rows) == (True, "lost", 0)


def test_several_tables() -> None:
    one, two = ScriptedClient(ROWS), ScriptedClient(ROWS.slice(0, 2))
    tables = {name: client.table(name) for name, client in (("a", one), ("b", two))}
    with Asking(tables) as asking:
        asking.ask([request(0, 1, table="a"), request(0, 1, table="b")])
        found = collected(asking)
        assert answered([a for a in found if a.table == "b"]) == {0: ["v0", "v1"], 1: []}


def test_answers_wait_for_no_longer_than_said() -> None:
    async def hang(some: pa.RecordBatch) -> None:
        await asyncio.sleep(1e9)

    with asking_of(ScriptedClient(ROWS, hang)) as asking:
        asking.ask([request(1)])
        begin, cpu = time.monotonic(), time.thread_time()  # other threads of this process may be busy
        assert asking.answers(0.2) == []
        assert time.monotonic() - begin > 0.19 and time.thread_time() - cpu < 0.1


def test_close_leaves_nothing_behind() -> None:
    async def hang(some: pa.RecordBatch) -> None:
        await asyncio.sleep(1e9)

    threads = started_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client = ScriptedClient(ROWS, hang)
        asking = asking_of(client, batch=1)
        asking.ask([request(*range(20)), Request("t", 1, NO_KEYS)])
        while client.under_way < 8:
            time.sleep(0.001)
        asking.close()
        asking.close()
        assert client.closed and client.under_way == 0
        del asking
        gc.collect()
    assert started_threads() == threads
    with pytest.raises(InternalError, match="closed"), asking_of(ScriptedClient(ROWS)) as asking:
        asking.close()
        asking.ask([request(1)])


def test_a_bug_is_not_a_wait_for_ever() -> None:
    class Broken(ScriptedClient):
        def scan(self, columns: Sequence[str]) -> None:  # type: ignore[override]
            raise ZeroDivisionError

    with asking_of(Broken(ROWS)) as asking:
        asking.ask([Request("t", 1, NO_KEYS)])
        with pytest.raises(InternalError, match="broke"):
            collected(asking)


@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(1, 4))
@examples(30)
def test_every_key_is_answered_once_whatever_happens(seed: int, batch: int, concurrency: int) -> None:
    random = Random(seed)
    bad = {random.randrange(100) for _ in range(3)}

    async def script(some: pa.RecordBatch) -> None:
        await asyncio.sleep(random.choice([0, 0.1, 5, 100]) if random.random() < 0.2 else 0.01)
        if random.random() < 0.3:
            raise TryFailed("busy")
        if bad & set(some.column(0).to_pylist()):
            raise KeysRefused("bad")

    client = ScriptedClient(ROWS, script)
    with asking_of(client, jumping=True, batch=batch, concurrency=concurrency, timeout=50) as asking:
        found, wanted = list[Answer](), set[int]()
        for _ in range(20):
            some = random.sample(range(100), random.randrange(1, 12))
            new = [key for key in some if key not in wanted]
            wanted |= set(some)
            asking.ask([request(*new)] if new else [])
            found += asking.answers(0.001)
        found += collected(asking)
        done = answered(found)
        assert set(done) == wanted
        for key, what in done.items():
            assert isinstance(what, str) or (key not in bad and what == [f"v{2 * key}", f"v{2 * key + 1}"])
        assert client.most_under_way <= concurrency + len(client.requests)  # abandoned tries may go on


def test_keys_that_wait_in_line_are_taken_back() -> None:
    gate = threading.Event()

    async def wait(some: pa.RecordBatch) -> None:
        await asyncio.get_running_loop().run_in_executor(None, gate.wait)

    client = ScriptedClient(ROWS, wait)
    with asking_of(client, batch=2, concurrency=1) as asking:
        asking.ask([request(*range(9))])
        asking.ask([replace(request(), takes_back=True)])
        withdrawn = asking.answers(100)
        assert [(a.keys.column(0).to_pylist(), a.is_withdrawn) for a in withdrawn] == [(list(range(2, 9)), True)]
        asking.ask([request(8), replace(request(method=1), takes_back=True)])
        gate.set()
        assert sorted(answered(collected(asking))) == [0, 1, 8] and asking.asked == 0
        assert [batch.num_rows for batch in client.requests] == [2, 1]
