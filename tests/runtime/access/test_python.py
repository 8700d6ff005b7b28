"""Tables that functions answer."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eddyline.runtime.access.client import KeysRefused, TableRefused
from eddyline.runtime.access.tables import AccessTable
from tests.support.access import all_answers, declared, failures, looked_up
from tests.support.threads import started_threads

SCHEMA = pa.schema([("id", pa.int64()), ("score", pa.float64())])
KEYS = pa.record_batch({"id": [1, 2, 3]})


def plain(keys: pa.RecordBatch) -> pa.RecordBatch:
    assert threading.current_thread().name.startswith("eddyline-access")
    return keys.append_column("score", pc.multiply(keys.column("id"), 10))


async def waiting(keys: pa.RecordBatch) -> pa.Table:
    await asyncio.sleep(0)
    return pa.Table.from_batches([plain(keys), plain(keys)])


class Callable_:
    async def __call__(self, keys: pa.RecordBatch) -> pa.RecordBatch:
        return keys.append_column("score", pa.array([0.5] * keys.num_rows))


an_object = Callable_()


def odd(keys: pa.RecordBatch) -> pa.RecordBatch:
    if 2 in keys.column("id").to_pylist():
        raise ValueError("2 is even")
    return plain(keys)


def nothing(keys: pa.RecordBatch) -> None:
    return None


def lacking(keys: pa.RecordBatch) -> pa.RecordBatch:
    return keys


def without_next(keys: pa.RecordBatch) -> object:
    return next(iter(()))


def exits(keys: pa.RecordBatch) -> None:
    sys.exit("no licence")


async def exits_too(keys: pa.RecordBatch) -> None:
    sys.exit("no licence")


async def cancelled(keys: pa.RecordBatch) -> None:
    raise asyncio.CancelledError


def table(name: str, **options: object) -> AccessTable:
    return declared("python", SCHEMA, function=f"{__name__}:{name}", **options)


def rows(answers: list[Any]) -> list[tuple[int, float]]:
    return sorted((row["id"], row["score"]) for answer in answers for row in answer.rows.to_pylist())


def test_plain_and_async_functions() -> None:
    before = started_threads()
    assert rows(all_answers(table("plain"), KEYS)) == [(1, 10), (2, 20), (3, 30)]
    assert rows(all_answers(table("waiting"), KEYS)) == sorted([(1, 10), (2, 20), (3, 30)] * 2)
    assert looked_up(table("an_object").open, KEYS.slice(2), "score") == [{"score": 0.5}]
    assert started_threads() == before


def test_an_exception_fails_its_key_only() -> None:
    answers = all_answers(table("odd", retries=0), KEYS)
    assert failures(answers) == {2: "the function raised ValueError: 2 is even"}
    assert rows(answers) == [(1, 10), (3, 30)]


@pytest.mark.parametrize(
    "name, reason",
    [
        ("without_next", "the function raised StopIteration"),
        ("exits", "the function raised SystemExit: no licence"),
        ("exits_too", "the function raised SystemExit: no licence"),
        ("cancelled", "CancelledError"),
    ],
)
def test_whatever_a_function_raises_its_keys_are_answered(name: str, reason: str) -> None:
    assert failures(all_answers(table(name, retries=0), KEYS)) == dict.fromkeys((1, 2, 3), reason)


def test_batches() -> None:
    answers = all_answers(table("odd", batch=1, retries=0), KEYS)
    assert len(answers) == 3 and failures(answers) == {2: "the function raised ValueError: 2 is even"}


def test_what_is_no_answer() -> None:
    with pytest.raises(TableRefused, match="the function returned None, not a record batch"):
        looked_up(table("nothing").open, KEYS, "score")
    with pytest.raises(TableRefused, match="the rows have no column score"):
        looked_up(table("lacking").open, KEYS, "score")
    with pytest.raises(KeysRefused, match="2 is even"):
        looked_up(table("odd").open, KEYS, "score")
