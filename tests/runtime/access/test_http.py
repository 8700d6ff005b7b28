"""Rows of an HTTP service that answers, waits, fails and hangs as a test says."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from eddyline.bound.model import AccessMethod
from eddyline.engine.lookups.look_up import Request
from eddyline.errors import SettingError
from eddyline.runtime.access.asking import Asking
from eddyline.runtime.access.client import KeysRefused, TableRefused, TryFailed
from eddyline.runtime.access.tables import AccessTable
from lab.servers.valkey import free_port
from tests.support.access import all_answers, declared, failures, looked_up, unreadable
from tests.support.threads import started_threads

aiohttp = pytest.importorskip("aiohttp")
SCHEMA = pa.schema([("sku", pa.string()), ("price", pa.float64()), ("tags", pa.list_(pa.string()))])


class Service:
    """Prices by `sku`. `status` and `delay` say how a key is answered; `flaky` fails so many times first."""

    def __init__(self) -> None:
        self.prices: dict[str, Any] = {}
        self.status: dict[str, int] = {}
        self.delay: dict[str, float] = {}
        self.flaky = Counter[str]()
        self.under_way = self.most_under_way = 0
        self.seen: list[tuple[str, Any]] = []
        self.headers: Any = {}
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._started.wait(300)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        from aiohttp import web

        app = web.Application()
        app.router.add_get("/price/{sku}", self._one)
        app.router.add_get("/price", self._one)
        app.router.add_post("/prices", self._many)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        self.port = runner.addresses[0][1]
        self._started.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    async def _answered(self, sku: str) -> int:
        self.flaky[sku] -= 1
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(self.delay.get(sku, 0))
        self.under_way -= 1
        return 503 if self.flaky[sku] >= 0 else self.status.get(sku, 200)

    async def _one(self, request: Any) -> Any:
        from aiohttp import web

        sku = request.match_info.get("sku") or request.query["sku"]
        self.seen.append(("GET", sku))
        self.headers = request.headers
        status = await self._answered(sku)
        if status == 200 and sku not in self.prices:
            status = 404
        price = self.prices.get(sku)
        body = price if isinstance(price, bytes) else json.dumps(price).encode()
        return web.Response(status=status, body=body, content_type="application/json")

    async def _many(self, request: Any) -> Any:
        from aiohttp import web

        keys = await request.json()
        self.seen.append(("POST", keys))
        skus = [key["sku"] if isinstance(key, dict) else key for key in keys]
        statuses = [await self._answered(sku) for sku in skus]
        found = [{"sku": sku, **self.prices[sku]} for sku in skus if sku in self.prices]
        return web.Response(status=max(statuses), text=json.dumps(found))


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service()
    yield running
    running.stop()


def table(service: Service, path: str = "price?sku={sku}", **options: object) -> AccessTable:
    return declared("http", SCHEMA, url=f"http://127.0.0.1:{service.port}/{path}", **options)


def batched(service: Service, **options: object) -> AccessTable:
    return declared("http", SCHEMA, batch_url=f"http://127.0.0.1:{service.port}/prices", **options)


def skus(*keys: str) -> pa.RecordBatch:
    return pa.record_batch({"sku": list(keys)})


def prices(answers: Any) -> list[tuple[str, float]]:
    return sorted((row["sku"], row["price"]) for answer in answers for row in answer.rows.to_pylist())


def test_objects_lists_and_nothing(service: Service) -> None:
    service.prices = {
        "a": {"price": 1, "tags": ["x"], "more": {}}, "b": [{"price": 2.5}, {"price": 3, "sku": "b"}], "c": [],
        "d": None, "é/ &?#": {"price": 4}, "f": [{"price": 5, "sku": "other"}],
    }  # fmt: skip
    answers = all_answers(table(service), skus("a", "b", "c", "d", "é/ &?#", "f", "nobody"))
    assert prices(answers) == [("a", 1), ("b", 2.5), ("b", 3), ("é/ &?#", 4)]
    assert not failures(answers) and len(answers) == 7
    found = looked_up(table(service, "price/{sku}").open, skus("é/ &?#"), "price")
    assert found == [{"price": 4}]
    assert looked_up(table(service).open, skus("a"), "tags") == [{"tags": ["x"]}]


def test_what_failures_become(service: Service) -> None:
    service.prices = {"a": {"price": "cheap"}, "b": "text", "latin": b'"\xe9"', "deep": b"[" * 100_000}
    service.status = {"late": 429, "broken": 500, "bad": 400, "mine": 403, "gone": 204}
    opened = table(service).open
    for sku, error, message in [
        ("late", TryFailed, "the service answered 429 Too Many Requests"),
        ("broken", TryFailed, "the service answered 500 Internal Server Error"),
        ("bad", KeysRefused, "the service answered 400 Bad Request"),
        ("mine", TableRefused, "the service answered 403 Forbidden"),
        ("latin", KeysRefused, "the answer is not JSON"),
        ("deep", KeysRefused, "the answer is not JSON"),
        ("b", KeysRefused, "the answer is neither an object nor a list of objects"),
    ]:
        with pytest.raises(error) as caught:
            looked_up(opened, skus(sku), "price")
        assert str(caught.value) == message
    assert looked_up(opened, skus("gone"), "price") == []
    assert unreadable(all_answers(table(service), skus("a"))) == ["column price: 'cheap' is not a value of type DOUBLE"]
    nowhere = declared("http", SCHEMA, url=f"http://127.0.0.1:{free_port()}/{{sku}}")
    with pytest.raises(TryFailed):
        looked_up(nowhere.open, skus("a"), "price")


def test_many_requests_at_once_and_retries(service: Service) -> None:
    keys = [f"s{i}" for i in range(60)]
    service.prices = {key: {"price": i} for i, key in enumerate(keys)}
    service.delay = dict.fromkeys(keys, 0.2)
    service.flaky = Counter(s3=1, s4=2)
    answers = all_answers(table(service, concurrency=30), skus(*keys))
    assert prices(answers) == sorted((key, float(i)) for i, key in enumerate(keys))
    assert 1 < service.most_under_way <= 30
    assert Counter(key for _, key in service.seen)["s4"] == 3


def test_a_hang_is_left_at_the_deadline_and_harms_nobody_else(service: Service) -> None:
    service.prices = {"a": {"price": 1}, "hang": {"price": 2}}
    service.delay = {"hang": 60}
    answers = all_answers(table(service, timeout=3, concurrency=2), skus("hang", "a"))
    assert failures(answers) == {"hang": "no answer within 3 s"} and prices(answers) == [("a", 1)]


def test_a_batch_endpoint(service: Service) -> None:
    keys = [f"s{i}" for i in range(25)]
    service.prices = {key: {"price": 1} for key in keys[:20]}
    service.status = {"s7": 422}
    answers = all_answers(batched(service, batch=10, concurrency=1, retries=0), skus(*keys))
    assert failures(answers) == {"s7": "the service answered 422 Unprocessable Entity"}
    assert len(prices(answers)) == 19
    assert [len(keys) for _, keys in service.seen[:1]] == [10]
    two = pa.record_batch({"sku": ["s1"], "price": [1.0]})
    assert looked_up(batched(service).open, two, "sku") == [{"sku": "s1"}]
    assert service.seen[-1] == ("POST", [{"sku": "s1", "price": 1.0}])


def test_keys_that_json_cannot_say(service: Service) -> None:
    service.prices = {"a": {"price": 0.5}}
    numbers = pa.record_batch({"price": [0.5, float("nan"), float("inf")]})
    answers = all_answers(batched(service, retries=0), numbers)
    assert {str(key): why for key, why in failures(answers).items() if key != 0.5} == dict.fromkeys(
        ("nan", "inf"), "JSON has no NaN and no infinite numbers"
    )
    bytes_ = declared("http", pa.schema([("k", pa.binary())]), url="http://localhost/{k}")
    with pytest.raises(SettingError, match="http has no keys of bytes"):
        bytes_.check([AccessMethod(("k",))])


def test_the_header_comes_from_the_environment(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "Bearer hidden")
    shop = table(service, authorization_env="SHOP_TOKEN")
    looked_up(shop.open, skus("a"), "price")
    assert service.headers["Authorization"] == "Bearer hidden"
    assert "hidden" not in repr(shop)


def test_close_while_the_service_hangs(service: Service) -> None:
    service.delay = {"hang": 60}
    threads = started_threads()
    asking = Asking({"t": table(service)})
    asking.ask([Request("t", 0, skus("hang"))])
    while not service.seen:
        time.sleep(0.01)
    begin = time.monotonic()
    asking.close()
    assert time.monotonic() - begin < 50 and started_threads() == threads
