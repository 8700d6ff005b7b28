"""HTTP services as they are: numbers, redirects, answers that ask to wait, wrong options, a process that is stopped."""

from __future__ import annotations

import json
import os
import signal
import socketserver
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pyarrow as pa
import pytest

from eddyline.errors import SettingError
from eddyline.runtime.access.client import TableRefused, TryFailed
from eddyline.runtime.access.tables import AccessTable
from tests.support.access import all_answers, declared, failures, looked_up, unreadable

pytest.importorskip("aiohttp")
INTEGER = pa.int64()
Answer = Callable[["Handler", Any], None]


class Handler(BaseHTTPRequestHandler):
    """Answers as the server's function says, which gets the handler and the body."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        self.answer(None)

    def do_POST(self) -> None:
        self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def answer(self, body: Any) -> None:
        server: Any = self.server
        server.seen.append((self.command, self.path, body, self.headers.get("Authorization")))
        server.function(self, body)

    def say(self, status: int, body: object = b"", **headers: str) -> None:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(text))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(text)


class Server(socketserver.ThreadingMixIn, HTTPServer):
    daemon_threads = True
    seen: list[tuple[str, str, Any, str | None]]
    function: Answer

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], Server]]:
    running = []

    def serve(function: Answer) -> Server:
        server = Server(("127.0.0.1", 0), Handler)
        server.seen, server.function = [], function
        running.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
        return server

    yield serve
    for server in running:
        server.shutdown()
        server.server_close()


Serve = Callable[[Answer], Server]


def one(server: Server, type_: pa.DataType = INTEGER, **options: object) -> AccessTable:
    return declared("http", pa.schema([("k", pa.int64()), ("v", type_)]), url=f"{server.url}/x?k={{k}}", **options)


def many(server: Server, type_: pa.DataType = INTEGER, **options: object) -> AccessTable:
    return declared("http", pa.schema([("k", pa.int64()), ("v", type_)]), batch_url=f"{server.url}/b", **options)


def keys(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"k": pa.array(values, pa.int64())})


def values(answers: Any) -> list[Any]:
    return sorted(row["v"] for answer in answers for row in answer.rows.to_pylist())


def decimal(digits: int, scale: int) -> pa.DataType:
    return pa.decimal128(digits, scale)


NUMBERS: list[tuple[str, pa.DataType, Any]] = [
    ("12345678901234567.12", decimal(20, 2), Decimal("12345678901234567.12")),
    ("12345678901234567.1234567891", decimal(38, 10), Decimal("12345678901234567.1234567891")),
    ("0.1", decimal(38, 10), Decimal("0.1000000000")),
    ("1e5", decimal(38, 10), Decimal("100000.0000000000")),
    ('"1.5000000001"', decimal(38, 10), Decimal("1.5000000001")),
    ("99999999999999999999999999999.5", decimal(38, 10), None),
    ("12345678901234567890123456789", decimal(38, 0), Decimal("12345678901234567890123456789")),
    ("1.005", decimal(10, 2), None),
    ("9007199254740993", pa.int64(), 9007199254740993),
    ("1.5", pa.int64(), None),
    ("9223372036854775808", pa.int64(), None),
    ("18446744073709551615", pa.uint64(), 18446744073709551615),
    ("1.00", pa.string(), "1.00"),
    ("12345678901234567890123", pa.string(), "12345678901234567890123"),
    ('{"a": 1.50, "b": [1, "x"], "a": 2}', pa.string(), '{"a": 1.50, "b": [1, "x"], "a": 2}'),
    ("true", pa.string(), "true"),
    ("NaN", pa.float64(), float("inf")),
    ("[1.5, 1]", pa.list_(pa.int64()), None),
    ("[1e-10]", pa.list_(decimal(20, 10)), [Decimal("0.0000000001")]),
    ('"\\ud800"', pa.string(), None),
]


@pytest.mark.parametrize("text, type_, value", NUMBERS)
def test_numbers_never_pass_a_float(text: str, type_: pa.DataType, value: Any, serve: Serve) -> None:
    """One key and many: the value, or (None) its row is dead and no other is."""

    def answer(handler: Handler, body: Any) -> None:
        rows = [f'{{"k": {k}, "v": {text if k == 1 else "null"}}}' for k in body or [int(handler.path[-1])]]
        handler.say(200, f"[{', '.join(rows)}]".encode())

    server = serve(answer)
    for table in (one(server, type_, retries=0), many(server, type_, retries=0)):
        answers = all_answers(table, keys(1, 2))
        found = {row["k"]: row["v"] for a in answers for row in a.rows.to_pylist()}
        assert len(unreadable(answers)) == (1 if value is None else 0) and not failures(answers)
        expected = {2: None} if value is None else {1: value, 2: None}
        assert found == expected or (text == "NaN" and repr(sorted(found.items())) == "[(1, nan), (2, None)]"), found


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_keeps_method_and_body(status: int, serve: Serve) -> None:
    def answer(handler: Handler, body: Any) -> None:
        if handler.path[:2] in ("/b", "/x"):
            handler.say(status, Location=handler.path.replace("/b", "/new/b").replace("/x", "/new/x"))
        else:
            asked = [int(handler.path[-1])] if body is None else body
            handler.say(200, [{"k": k, "v": k * 10} for k in asked])

    server = serve(answer)
    assert values(all_answers(many(server), keys(1, 2, 3))) == [10, 20, 30]
    assert [seen[:3] for seen in server.seen] == [("POST", "/b", [1, 2, 3]), ("POST", "/new/b", [1, 2, 3])]
    assert values(all_answers(one(server), keys(4))) == [40]
    assert [seen[:2] for seen in server.seen[2:]] == [("GET", "/x?k=4"), ("GET", "/new/x?k=4")]


def test_a_redirect_that_would_change_the_method_fails(serve: Serve) -> None:
    server = serve(lambda handler, body: handler.say(303, Location="/other"))
    with pytest.raises(TableRefused, match="the service answered 303 See Other"):
        looked_up(many(server).open, keys(1), "v")
    assert [seen[0] for seen in server.seen] == ["POST"]


def test_redirects_without_an_end_fail(serve: Serve) -> None:
    server = serve(lambda handler, body: handler.say(302, Location="/x?k=1"))
    answers = all_answers(one(server, retries=0), keys(1))
    assert failures(answers) == {1: "the service answered 302 Found"} and len(server.seen) == 11


def test_a_redirect_to_another_host_gets_no_secret(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "Bearer hidden")
    other = serve(lambda handler, body: handler.say(200, {"v": 7}))

    def answer(handler: Handler, body: Any) -> None:
        to = "/y" if handler.path.startswith("/x") else f"{other.url}/z"
        handler.say(302, Location=to)

    server = serve(answer)
    assert values(all_answers(one(server, authorization_env="TOKEN"), keys(1))) == [7]
    assert [seen[3] for seen in server.seen] == ["Bearer hidden"] * 2
    assert [seen[3] for seen in other.seen] == [None]


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_honoured(status: int, serve: Serve) -> None:
    asked = Counter[int]()
    times: dict[int, list[float]] = {}

    def answer(handler: Handler, body: Any) -> None:
        k = int(handler.path[-1])
        asked[k] += 1
        times.setdefault(k, []).append(time.monotonic())
        later = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
        wait = {1: "1", 2: later, 3: "3600", 4: "soon"}[k]
        if k == 3 or asked[k] == 1:
            handler.say(status, Retry_After=wait)
        else:
            handler.say(200, {"v": k})

    server = serve(answer)
    answers = all_answers(one(server), keys(1, 2, 3, 4))
    assert values(answers) == [1, 2, 4]
    assert failures(answers)[3].startswith(f"the service answered {status}") and asked[3] == 1
    assert times[1][1] - times[1][0] >= 0.99 and times[2][1] - times[2][0] >= 0.9
    assert times[4][1] - times[4][0] < 0.9


def test_halves_of_a_batch_wait_too(serve: Serve) -> None:
    begin, early = time.monotonic(), []

    def answer(handler: Handler, body: Any) -> None:
        if time.monotonic() - begin < 1:
            early.append(body)
            handler.say(503, Retry_After="1")
        else:
            handler.say(200, [{"k": k, "v": k} for k in body])

    assert values(all_answers(many(serve(answer), retries=0), keys(1, 2, 3, 4))) == [1, 2, 3, 4]
    assert early == [[1, 2, 3, 4]]


@pytest.mark.parametrize("value", ["Bearer a\nb", "Bearer a\n", "a\r\nX: y", "a\0", "\x7f"])
def test_a_header_that_cannot_be_sent_is_refused_at_the_start(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "TOKEN", value) if "\0" not in value else monkeypatch.setattr(
        "eddyline.runtime.access.http.secret", lambda option, name: value
    )
    with pytest.raises(SettingError, match="the environment variable TOKEN has a line break or another") as refused:
        declared("http", pa.schema([("k", pa.int64())]), url="http://h/{k}", authorization_env="TOKEN")
    assert refused.value.at == "option authorization_env" and value not in str(refused.value)


@pytest.mark.parametrize("value", ["", " ", "0", "-1", "nan", "inf", "1e3", "5 fortnights", "1.2.3", "٣", "9" * 30])
def test_a_wrong_timeout_is_refused_at_the_start(value: str) -> None:
    with pytest.raises(SettingError, match=r"^option timeout ") as refused:
        declared("http", pa.schema([("k", pa.int64())]), url="http://h/{k}", timeout=value)
    assert refused.value.at == "option timeout"


def test_a_process_that_was_stopped_gives_nothing_up(serve: Serve) -> None:
    """It is stopped for longer than the timeout, while requests are under way and others wait."""

    def answer(handler: Handler, body: Any) -> None:
        time.sleep(0.2)
        handler.say(200, {"v": int(handler.path.split("=")[1])})

    server = serve(answer)
    program = f"""
        import pyarrow as pa
        from tests.support.access import all_answers, declared, failures, unreadable
        schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
        table = declared("http", schema, url="{server.url}/x?k={{k}}", timeout="2 s", concurrency=4, retries=0)
        answers = all_answers(table, pa.record_batch({{"k": range(24)}}))
        print(failures(answers), sum(a.rows.num_rows for a in answers))
    """
    running = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    try:
        while not server.seen:
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(signal.SIGSTOP)
        time.sleep(3)
        running.send_signal(signal.SIGCONT)
        output, _ = running.communicate(timeout=60)
    finally:
        running.kill()
        running.wait()
    assert output == "{} 24\n"


def test_a_service_that_is_gone_is_named(serve: Serve) -> None:
    server = serve(lambda handler, body: handler.say(200))
    gone = one(server)
    server.shutdown()
    server.server_close()
    with pytest.raises(TryFailed, match=rf"127\.0\.0\.1.*{server.server_port}"):
        looked_up(gone.open, keys(1), "v")
